"""Decodes the test split with the new model and with the one in production."""

from components.predictor.component import Predictor

__all__ = ["Predictor"]
