"""The language task: English words, and the protocol's split of the numbers."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.func import vmap

from study.plugins.packed_tasks import builder_of
from study.stream.stream import Purpose
from study.stream.trial_stream import Stream
from tasks.language.task import LARGEST, TEST, TOKENS, TRAIN, VALIDATION, Language, Reader, words

TASK = Language()


def split(seed: int) -> dict[str, list[int]]:
    return {part: numbers.tolist() for part, numbers in TASK.setup(Stream([seed], 0, Purpose.SETUP)).items()}


def test_numbers_have_distinct_words():
    """All 999 numbers have different words, at most five each, from a vocabulary of 29."""
    spoken = [tuple(words(number)) for number in range(1, LARGEST + 1)]
    assert len(set(spoken)) == LARGEST
    assert max(map(len, spoken)) == 5
    assert {word for number in spoken for word in number} == set(TOKENS)
    assert len(TOKENS) == 29


def test_words_are_english():
    """Sample numbers have the right English words."""
    expected = {
        1: "one", 20: "twenty", 21: "twenty one", 100: "one hundred", 101: "one hundred and one",
        115: "one hundred and fifteen", 340: "three hundred and forty", 999: "nine hundred and ninety nine",
    }  # fmt: skip
    assert {number: " ".join(words(number)) for number in expected} == expected


def _walked(order: list[int]) -> dict[str, set[int]]:
    """Return the parts of a split made number by number, as in the protocol."""
    parts: dict[str, set[int]] = {"train": set(range(1, 20)), "validation": set(), "test": set()}
    known = {word for number in parts["train"] for word in words(number)}
    for number in order:
        if not set(words(number)) <= known:
            parts["train"].add(number)
            known |= set(words(number))
        elif len(parts["test"]) < TEST:
            parts["test"].add(number)
        elif len(parts["validation"]) < VALIDATION:
            parts["validation"].add(number)
        else:
            parts["train"].add(number)
    return parts


@pytest.mark.parametrize("seed", range(5))
def test_the_split_is_that_of_the_protocol(seed):
    """The task's split equals one made number by number in the drawn order."""
    order = (Stream([seed], 0, Purpose.SETUP).permutation(980) + 20).tolist()
    parts = split(seed)
    assert [len(parts[part]) for part in ("train", "validation", "test")] == [TRAIN, VALIDATION, TEST]
    assert {part: set(numbers) for part, numbers in parts.items()} == _walked(order)


def test_each_trial_has_its_own_split():
    """Seeds have different splits, and a pack has the splits of its trials alone."""
    seeds = [0, 1, 2]
    assert split(0) != split(1)
    packed = vmap(lambda trial: TASK.setup(Stream(seeds, 0, Purpose.SETUP, trial=trial)))(torch.arange(3))
    for row, seed in enumerate(seeds):
        assert {part: numbers[row].tolist() for part, numbers in packed.items()} == split(seed)


def test_the_model_reads_to_the_last_word():
    """Padding doesn't change an output: it equals that of the number's words alone."""
    reader = Reader(nn.Linear)
    one_hot, is_word, number = TASK.evaluation(
        Stream([0], 0, Purpose.TEST), Purpose.TEST, TASK.setup(Stream([0], 0, Purpose.SETUP))
    )
    row = next(i for i, n in enumerate(number.flatten().tolist()) if len(words(int(n))) == 4)
    alone = reader(one_hot[row : row + 1, :4], is_word[row : row + 1, :4])
    torch.testing.assert_close(reader(one_hot, is_word)[row : row + 1], alone)


def test_the_model_is_an_lstm():
    """With the same weights, torch's LSTM over the words and a linear layer give the same numbers."""
    reader = Reader(nn.Linear, embedding_size=4, hidden_size=3)
    lstm = nn.LSTM(4, 3, batch_first=True)
    # torch's gates are in the order i, f, g, o, with two biases
    order = torch.cat([torch.arange(0, 6), torch.arange(9, 12), torch.arange(6, 9)])
    with torch.no_grad():
        lstm.weight_ih_l0.copy_(reader.cell.weight[order, :4])
        lstm.weight_hh_l0.copy_(reader.cell.weight[order, 4:])
        lstm.bias_ih_l0.copy_(reader.cell.bias[order])
        lstm.bias_hh_l0.zero_()
    one_hot = torch.eye(len(TOKENS))[torch.tensor([[0, 27], [4, 27]])]
    expected = reader.last(lstm(one_hot @ reader.embedding)[0][:, -1])
    torch.testing.assert_close(reader(one_hot, torch.ones(2, 2)), expected)


def test_metrics_are_as_defined():
    """An output within 0.4 of the number counts as exact; one that is off by 3 doesn't."""
    batch = (torch.zeros(2, 5, 29), torch.zeros(2, 5), torch.tensor([[10.0], [20.0]]))
    metrics = TASK.measure(torch.tensor([[10.4], [23.0]]), batch)
    assert metrics["mae"].item() == pytest.approx(1.7)
    assert metrics["exact"].item() == 0.5


@pytest.mark.parametrize("name", ["linear", "NAC-add", "NALU", "NALU-separate", "NAU", "NMU"])
def test_last_layers(name):
    """Models share the reader, and differ in the last layer from the LSTM's state to one number."""
    reader = builder_of(TASK, name)(embedding_size=3, hidden_size=7)
    assert (reader.last.in_features, reader.last.out_features) == (7, 1)
