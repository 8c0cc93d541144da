"""Scores the predictions and decides whether the model may be pushed."""

from components.evaluator.component import Evaluator

__all__ = ["Evaluator"]
