"""Language task: translate the words of a number, such as "two hundred and thirty five", into the number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from study.interface.declarations import Metric
from study.interface.task import Task
from study.stream.device import on_device, use_device
from study.stream.stream import Purpose
from study.stream.trial_stream import Stream
from tasks.shared.cells import LSTM
from units import Unit

_ONES = [
    *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen"),
    *("fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]

TOKENS = (*_ONES, *_TENS, "hundred", "and")
"""The vocabulary of 29 words; a word's index is its token."""

LARGEST, MOST_WORDS = 999, 5
_ALWAYS_TRAINED = len(_ONES)
TRAIN, VALIDATION, TEST = 169, 200, 630
"""Sizes of the parts of the split."""


def words(number: int) -> list[str]:
    """Write a number in words, as a list.

    Args:
        number: 1 <= number <= 999.

    Example:
        >>> " ".join(words(235)), " ".join(words(900)), " ".join(words(17))
        ('two hundred and thirty five', 'nine hundred', 'seventeen')
    """
    hundreds, remainder = divmod(number, 100)
    tokens = [_ONES[hundreds - 1], "hundred"] if hundreds else []
    if hundreds and remainder:
        tokens.append("and")
    if 0 < remainder <= _ALWAYS_TRAINED:
        return [*tokens, _ONES[remainder - 1]]
    tens, ones = divmod(remainder, 10)
    return tokens + ([_TENS[tens - 2]] if tens else []) + ([_ONES[ones - 1]] if ones else [])


def _word_tensors() -> tuple[Tensor, Tensor]:
    """Return the words of all numbers, one-hot [999, 5, 29], and the mask of words, [999, 5]."""
    one_hot, mask = _word_tensors_on_cpu()
    return on_device(one_hot), on_device(mask)


@cache
def _word_tensors_on_cpu() -> tuple[Tensor, Tensor]:
    with use_device("cpu"):
        one_hot, mask = torch.zeros(LARGEST, MOST_WORDS, len(TOKENS)), torch.zeros(LARGEST, MOST_WORDS)
    for number in range(1, LARGEST + 1):
        for place, word in enumerate(words(number)):
            one_hot[number - 1, place, TOKENS.index(word)] = 1
            mask[number - 1, place] = 1
    return one_hot, mask


class Reader(nn.Module):
    """Network of an embedding, an LSTM and a last layer, from the words of a number to the number.

    Args:
        last: builds the last layer, given its input size, `hidden_size`, and its output size, 1.
        embedding_size: size of a word's embedding, >= 1.
        hidden_size: size of the LSTM's hidden state, >= 1.

    Example:
        >>> one_hot, mask = _word_tensors()
        >>> Reader(nn.Linear)(one_hot, mask).shape
        torch.Size([999, 1])
    """

    def __init__(
        self, last: Callable[[int, int], nn.Module], *, embedding_size: int = 32, hidden_size: int = 32
    ) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(len(TOKENS), embedding_size))
        self.cell = LSTM(embedding_size, hidden_size)
        self.last = last(hidden_size, 1)

    def forward(self, one_hot: Tensor, mask: Tensor) -> Tensor:
        """Compute the numbers.

        Args:
            one_hot: token of each word, [batch, words, tokens].
            mask: 1 for words, 0 for padding, [batch, words].

        Returns:
            Numbers, [batch, 1].
        """
        cell = self.cell
        word_weight, state_weight = cell.weight[:, : cell.input_size], cell.weight[:, cell.input_size :]
        # Folding the embedding into the gates' weights leaves one product per word.
        weight = torch.cat([nn.functional.linear(self.embedding, word_weight, cell.bias), state_weight.mT])
        state = cell.start(one_hot[:, 0])
        for t in range(one_hot.shape[1]):
            gates = torch.cat([one_hot[:, t], cell.hidden(state)], -1) @ weight
            state = torch.where(mask[:, t : t + 1] > 0, cell.step(gates, state), state)
        output: Tensor = self.last(cell.hidden(state))
        return output


@dataclass(frozen=True)
class Language(Task):
    """Translate the words of 1 ... 999 into numbers, with all trained numbers in each batch.

        L = mean over the trained numbers of (f(words) - number)²

    Each trial draws its own split: 169 training, 200 validation and 630 test numbers. The numbers 1 ... 19 are training
    numbers. The others are drawn in random order, and each number with a new word is a training number. The first 630
    of the remaining numbers are for the test, the next 200 for validation, the last for training.

    Source: Trask et al., "Neural Arithmetic Logic Units", NeurIPS 2018. The split follows the published program of
    Madsen & Johansen, "Neural Arithmetic Units", ICLR 2020.

    Example:
        >>> from study.stream.trial_stream import Stream
        >>> task = Language()
        >>> {part: len(numbers) for part, numbers in task.setup(Stream([0], 0, Purpose.SETUP)).items()}
        {'train': 169, 'validation': 200, 'test': 630}
    """

    model_names: ClassVar[tuple[str, ...]] = ("linear",)
    metrics: ClassVar[Mapping[str, Metric]] = {
        "validation_mae": Metric(title="validation MAE", low=0.0),
        "train_mae": Metric(title="train MAE", low=0.0),
        "test_mae": Metric(title="test MAE", low=0.0),
        "test_exact": Metric(title="test numbers that are exact, rounded", higher_is_better=True, low=0.0, high=1.0),
    }

    @property
    def update_us(self) -> float:
        """Estimated time of an update with all training numbers, read word by word, in microseconds."""
        return 1500.0

    def setup(self, stream: Stream) -> dict[str, Tensor]:
        """Draw the split: the numbers of ``train``, ``validation`` and ``test``, int64 [numbers]."""
        order = stream.permutation(LARGEST - _ALWAYS_TRAINED) + _ALWAYS_TRAINED  # indices of 20 ... 999
        one_hot, _ = _word_tensors()
        has_word = one_hot.amax(1)[:, _ALWAYS_TRAINED:].index_select(0, order)
        is_first = (has_word.cumsum(0) == 1) & (has_word == 1)
        is_trained = is_first.any(1)
        rank = (~is_trained).cumsum(0)
        part = torch.where(is_trained | (rank > TEST + VALIDATION), 0, torch.where(rank > TEST, 1, 2))
        numbers = order.index_select(0, torch.argsort(part, stable=True)) + 1
        drawn = TRAIN - _ALWAYS_TRAINED
        return {
            "train": torch.cat([torch.arange(1, _ALWAYS_TRAINED + 1), numbers[:drawn]]),
            "validation": numbers[drawn : drawn + VALIDATION],
            "test": numbers[drawn + VALIDATION :],
        }

    def draw(self, stream: Stream, *setup: Any) -> tuple[Tensor, ...]:
        """Return the training numbers: words, one-hot [169, 5, 29], mask, [169, 5], and numbers, float32 [169, 1]."""
        return self._part(setup[0]["train"])

    def evaluation(self, stream: Stream, purpose: Purpose, *setup: Any) -> tuple[Tensor, ...]:
        """Return the numbers of the part named by the purpose, in the form of `draw`."""
        return self._part(setup[0][purpose.name.lower()])

    def _part(self, numbers: Tensor) -> tuple[Tensor, ...]:
        one_hot, mask = _word_tensors()
        return one_hot.index_select(0, numbers - 1), mask.index_select(0, numbers - 1), numbers[:, None].float()

    def predict(self, model: Callable[..., Tensor], batch: tuple[Tensor, ...]) -> Tensor:
        """Apply the model to the words."""
        return model(*batch[:2])

    def loss(self, outputs: Tensor, batch: tuple[Tensor, ...]) -> Tensor:
        """Compute the mean squared error over the numbers."""
        return (outputs - batch[2]).square().mean()

    def measure(self, outputs: Tensor, batch: tuple[Tensor, ...]) -> dict[str, Tensor]:
        """Compute the mean absolute error, and the share of numbers that are exact when rounded: errors below 0.5."""
        errors = (outputs - batch[2]).abs()
        return {"mae": errors.mean(), "exact": (errors < 0.5).float().mean()}

    def model(self, name: str) -> Callable[..., nn.Module]:
        """Return the builder of a reader with a linear last layer, whatever the name."""
        return partial(Reader, nn.Linear)

    def network(self, first: type[Unit], second: type[Unit]) -> Callable[..., nn.Module]:
        """Return the builder of a reader with the second unit as its last layer."""
        return partial(Reader, second)
