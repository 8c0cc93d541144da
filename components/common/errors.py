"""The errors of users, under the name by which components and pipeline import them."""

from regard.models.errors import UserError

__all__ = ["UserError"]
