"""A scikit-learn classifier as a training function: it returns its metrics at the end, without a curve."""

from typing import Literal

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from study import seeded


@seeded
def train(seed: int, *, width: int = 8, activation: Literal["relu", "tanh"] = "relu"):
    """Train a classifier, and return its accuracy on held-out digits and its training loss."""
    digits, labels = load_digits(return_X_y=True)
    seen, unseen, known, unknown = train_test_split(digits / 16, labels, test_size=0.3, random_state=seed)
    model = MLPClassifier((width,), activation=activation, max_iter=100, random_state=seed)
    model.fit(seen, known)
    return {"accuracy": model.score(unseen, unknown), "loss": model.loss_}
