"""Puts a blessed model into the registry, whole or not at all."""

from components.pusher.component import Pusher

__all__ = ["Pusher"]
