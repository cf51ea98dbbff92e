"""Training: recipes, the loop, checkpoints and records."""

from quadspike.training.datasets import make_data
from quadspike.training.evaluate import Evaluation, evaluate
from quadspike.training.finish import Result
from quadspike.training.observer import Observer
from quadspike.training.recipe import Recipe
from quadspike.training.scoring import Score, score
from quadspike.training.sources import TrainingData, from_splits
from quadspike.training.start import train

__all__ = [
    "Evaluation",
    "Observer",
    "Recipe",
    "Result",
    "Score",
    "TrainingData",
    "evaluate",
    "from_splits",
    "make_data",
    "score",
    "train",
]
