"""Time-tracking task: an agent must enter a cell of a grid world at a given time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Annotated, Any, ClassVar, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from study.interface.declarations import Metric
from study.interface.task import Task
from study.stream.device import on_device, use_device
from study.stream.stream import Purpose
from study.stream.trial_stream import Stream
from tasks.shared.cells import GRU, Cell, UnitCell
from units import Unit

Count = Annotated[int, Field(ge=1)]
Strength = Annotated[float, Field(ge=0)]

ACTIONS = 5
"""Number of actions: up, down, left, right, and stay."""

_MOVES = ((-1.0, 0.0), (1.0, 0.0), (0.0, -1.0), (0.0, 1.0), (0.0, 0.0))


class Episodes(NamedTuple):
    """Random setup of episodes, and the numbers that sample their actions.

    Args:
        times: step T at which to enter the target, float32 [episodes].
        agents: initial row and column of each agent, float32 [episodes, 2].
        targets: row and column of each target, float32 [episodes, 2].
        chances: numbers that sample the actions, uniform on [0, 1), float32 [episodes, steps].
    """

    times: Tensor
    agents: Tensor
    targets: Tensor
    chances: Tensor


class Walks(NamedTuple):
    """Actions and returns of an agent in episodes.

    Args:
        log_probability: log probability of each chosen action, [episodes, steps].
        entropy: entropy of each action's distribution, in nats, [episodes, steps].
        value: return that the agent predicted before each action, [episodes, steps].
        is_on: 1 for each step until the episode ends, else 0, [episodes, steps].
        returns: 1 if the target was first entered at its time, else 0, [episodes].
    """

    log_probability: Tensor
    entropy: Tensor
    value: Tensor
    is_on: Tensor
    returns: Tensor


class Countdown(Cell):
    """Exact countdown from the given time: c_t = c_{t-1} + [T if t = 0 else 0] - 1.

    Example:
        >>> cell = Countdown()
        >>> cell(torch.tensor([[7.0, 1.0]]), torch.zeros(1, 1))
        tensor([[6.]])
    """

    def __init__(self) -> None:
        super().__init__(2, 1)

    def forward(self, x: Tensor, state: Tensor) -> Tensor:
        """Compute the next count from the pairs of given time and 1."""
        return state + x[:, :1] - x[:, 1:]


class Agent(nn.Module):
    """Network from the observed world and a clock to a policy and a predicted return.

        c_t = clock([T if t = 0 else 0, 1], c_{t-1}),   h_t = GRU([world, c_t], h_{t-1}),   [policy, v] = W h_t + b

    Without a clock, the clock's input goes to the GRU.

    Args:
        clock: cell with two inputs and one output; None for no clock.
        world_size: size of the world's observation, >= 1.
        hidden_size: size of the GRU's state, >= 1.

    Example:
        >>> output, state = Agent(Countdown(), 50)(torch.ones(16, 50), torch.ones(16, 2), None)
        >>> output.shape, state.shape
        (torch.Size([16, 6]), torch.Size([16, 33]))
    """

    def __init__(self, clock: Cell | None, world_size: int, *, hidden_size: int = 32) -> None:
        super().__init__()
        self.clock = clock
        self.cell = GRU(world_size + (2 if clock is None else 1), hidden_size)
        self.output = nn.Linear(hidden_size, ACTIONS + 1)

    def forward(self, world: Tensor, told: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        """Compute the next output and state.

        Args:
            world: observation of the world, [episodes, world_size].
            told: pairs of the time in the first step, else 0, and the constant 1, [episodes, 2].
            state: previous state; None in the first step.

        Returns:
            Logits of the actions and the predicted return, [episodes, 6], and the state, [episodes, hidden_size + 1].
        """
        hidden = self.cell.start(world) if state is None else state[:, :-1]
        count = world.new_zeros(world.shape[0], 1) if state is None else state[:, -1:]
        if self.clock is not None:
            count = told = self.clock(told, count)
        hidden = self.cell(torch.cat([world, told], -1), hidden)
        return self.output(hidden), torch.cat([hidden, count], -1)


def agent_of_clock(clock: Callable[[], Cell] | None, world_size: int, *, hidden_size: Count = 32) -> Agent:
    """Build an agent with a clock, or without one.

    Args:
        clock: builds the clock; None for no clock.
        world_size: size of the world's observation.
        hidden_size: size of the GRU's state.

    Example:
        >>> agent_of_clock(None, 50).cell.input_size
        52
    """
    return Agent(None if clock is None else clock(), world_size, hidden_size=hidden_size)


@dataclass(frozen=True, kw_only=True)
class TimeTracking(Task):
    """Enter a target cell of a grid world exactly at the time T given before the first step.

        R = 1 if the target is first entered after T actions, else 0
        L = mean over steps of -(R - v) log p + value_strength (R - v)² - entropy_strength H

    The first R - v isn't differentiated. This is an actor-critic method with updates at the end of episodes. An action
    moves the agent up, down, left or right, or not at all; it can't leave the world. An episode ends when the target
    is entered, or after T + `extra_steps` actions. Agents start in a random cell; the target is another random cell, at
    most T steps away. The agent observes all positions at each step, but T only at the first.

    Source: after Trask et al., "Neural Arithmetic Logic Units", NeurIPS 2018. The published agent sees pixels; its
    sizes, rewards and training aren't public.

    Args:
        side: cells along a side of the square world.
        train_times: values of T in training and validation, equally likely, without duplicates.
        test_times: values of T in tests, without duplicates.
        far_times: values of T in `test_times` whose mean return is a separate metric.
        extra_steps: steps of an episode beyond T.
        batch_size: episodes per update.
        evaluation_rows: episodes of each T in an evaluation set.
        value_strength: weight of the critic's loss.
        entropy_strength: weight of the entropy bonus; the entropy is in nats.

    Raises:
        ValueError: if a tuple of times is empty or has duplicates, or one of `far_times` isn't among `test_times`.

    Example:
        >>> task = TimeTracking()
        >>> episodes = task.draw(Stream([0], 0, Purpose.TRAIN))
        >>> walks = task.predict(task.model("GRU")(), episodes)
        >>> tuple(walks.is_on.shape), task.loss(walks, episodes).shape
        ((16, 20), torch.Size([]))
    """

    model_names: ClassVar[tuple[str, ...]] = ("GRU", "reference")

    side: Annotated[int, Field(ge=2)] = 5
    train_times: tuple[Count, ...] = tuple(range(5, 13))
    test_times: tuple[Count, ...] = tuple(range(5, 25))
    far_times: tuple[Count, ...] = tuple(range(13, 20))
    extra_steps: Annotated[int, Field(ge=0)] = 8
    batch_size: Count = 16
    evaluation_rows: Count = 100
    value_strength: Strength = 0.5
    entropy_strength: Strength = 0.01

    def __post_init__(self) -> None:
        for name in ("train_times", "test_times", "far_times"):
            times = getattr(self, name)
            if not times or len(set(times)) < len(times):
                raise ValueError(f"{name} must be one or more distinct times, but got {list(times)}")
        if missing := sorted(set(self.far_times) - set(self.test_times)):
            raise ValueError(f"far_times must be among test_times, but {missing} aren't")

    @property
    def update_us(self) -> float:
        """Estimated time of an update, whose episodes run step by step, in microseconds."""
        return 300.0 * self._steps(self.train_times)

    def _steps(self, times: tuple[int, ...]) -> int:
        return max(times) + self.extra_steps

    def measured(self) -> Mapping[str, Metric]:
        """Return the metrics: mean returns in validation, over `far_times` and by T, and the sparsity error."""
        share = partial(Metric, higher_is_better=True, low=0.0, high=1.0)
        at_times = {
            f"test_return_at_{time}": share(
                title=f"mean return at T = {time}",
                series="mean return",
                along="T",
                at=time,
                is_trained=time in self.train_times,
            )
            for time in self.test_times
        }
        return {
            "validation_return": share(title="validation return"),
            "test_return_far": share(title="mean return beyond training"),
            **at_times,
            "test_sparsity_error": Metric(title="sparsity error", low=0.0, high=0.5),
        }

    def for_proof(self) -> TimeTracking:
        """Return the task with shorter episodes, for the proof of packs, since all steps take the same operations."""
        rows = self.evaluation_rows * len(self.test_times)
        return replace(self, train_times=(2,), test_times=(2,), far_times=(2,), extra_steps=1, evaluation_rows=rows)

    def draw(self, stream: Stream, *setup: Any) -> Episodes:
        """Draw a batch of episodes, with equally likely times."""
        times = torch.tensor(self.train_times)[stream.integers(len(self.train_times), self.batch_size)]
        return self._episodes(stream, times, self._steps(self.train_times))

    def evaluation(self, stream: Stream, purpose: Purpose, *setup: Any) -> Episodes:
        """Draw `evaluation_rows` episodes for each of `test_times` if ``TEST``, else for each of `train_times`."""
        possible_times = self.test_times if purpose is Purpose.TEST else self.train_times
        times = torch.tensor(possible_times).repeat_interleave(self.evaluation_rows)
        return self._episodes(stream, times, self._steps(possible_times))

    def _episodes(self, stream: Stream, times: Tensor, steps: int) -> Episodes:
        """Draw episodes: agents' cells, targets within reach, each equally likely, and numbers that sample actions."""
        cells, reachable = map(on_device, _distances(self.side))
        agents = stream.integers(len(cells), len(times))
        possible = reachable[agents, times.clamp(max=reachable.shape[1] - 1)].cumsum(-1)
        places = stream.uniform(len(times))[:, None] * possible[:, -1:]
        targets = (possible <= places).sum(-1)
        return Episodes(times.float(), cells[agents], cells[targets], stream.uniform(len(times), steps))

    def predict(self, model: Callable[..., Any], batch: Episodes) -> Walks:
        """Run the agent in all episodes at once; `chances` sample the actions."""
        times, position, targets, chances = batch
        moves, ones = torch.tensor(_MOVES), torch.ones_like(times)
        walked, state, is_on, returns = [], None, ones, torch.zeros_like(times)
        for step in range(chances.shape[1]):
            told = torch.stack([times if step == 0 else 0 * times, ones], -1)
            output, state = model(self._one_hot(position, targets), told, state)
            action, log_probability, entropy = _sampled(output[:, :-1], chances[:, step])
            walked.append((log_probability, entropy, output[:, -1], is_on))
            position = (position + action @ moves).clamp(0, self.side - 1)
            is_there = is_on * (position == targets).all(-1)
            returns = returns + is_there * (times == step + 1)
            is_on = (is_on - is_there) * (times + self.extra_steps > step + 1)
        log_probability, entropy, value, was_on = (torch.stack(values, -1) for values in zip(*walked, strict=True))
        return Walks(log_probability, entropy, value, was_on, returns)

    def _one_hot(self, *positions: Tensor) -> Tensor:
        """Return the cells of positions, one-hot [episodes, positions * cells]."""
        places = torch.stack([position @ torch.tensor([self.side, 1.0]) for position in positions], -1)
        return (places[..., None] == torch.arange(self.side**2)).float().flatten(-2)

    def loss(self, outputs: Walks, batch: Episodes) -> Tensor:
        """Compute the loss of actor and critic with the entropy bonus, averaged over the steps until episodes end."""
        advantage = outputs.returns[:, None] - outputs.value
        losses = (
            self.value_strength * advantage.square()
            - advantage.detach() * outputs.log_probability
            - self.entropy_strength * outputs.entropy
        )
        return (losses * outputs.is_on).sum() / outputs.is_on.sum()

    def measure(self, outputs: Walks, batch: Episodes) -> dict[str, Tensor]:
        """Compute the mean return over all times, and in tests at each time and over `far_times`.

        The batch counts as a test if it has as many times as `test_times`.
        """
        at_times = outputs.returns.reshape(-1, self.evaluation_rows).mean(-1)
        metrics = {"return": at_times.mean()}
        if len(at_times) == len(self.test_times):
            by_time = dict(zip(self.test_times, at_times, strict=True))
            metrics |= {f"return_at_{time}": value for time, value in by_time.items()}
            metrics["return_far"] = torch.stack([by_time[time] for time in self.far_times]).mean()
        return metrics

    def model(self, name: str) -> Callable[..., nn.Module]:
        """Return the builder of an agent with an exact clock for ``reference``, else without a clock."""
        return partial(agent_of_clock, Countdown if name == "reference" else None, 2 * self.side**2)

    def network(self, first: type[Unit], second: type[Unit]) -> Callable[..., nn.Module]:
        """Return the builder of an agent with a cell of the second unit as its clock."""
        return partial(agent_of_clock, partial(UnitCell, second, 2, 1), 2 * self.side**2)


@cache
def _distances(side: int) -> tuple[Tensor, Tensor]:
    """Return each cell's row and column, float32 [cells, 2], and the mask of other cells within reach.

    The mask is bool [cells, steps, cells], for 0 ... 2 (side - 1) steps.
    """
    with use_device("cpu"):
        cells = torch.cartesian_prod(torch.arange(side), torch.arange(side))
        distance = (cells[:, None] - cells).abs().sum(-1)[:, None]
        return cells.float(), (distance > 0) & (distance <= torch.arange(2 * side - 1)[:, None])


def _sampled(logits: Tensor, chances: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Sample an action for each row of logits [episodes, actions] by the numbers `chances`, [episodes], in [0, 1).

    Returns:
        The actions, one-hot [episodes, actions], their log probabilities, and the entropies, each [episodes].
    """
    log_probabilities = torch.log_softmax(logits, -1)
    probabilities = log_probabilities.exp()
    place = (probabilities[:, :-1].detach().cumsum(-1) <= chances[:, None]).sum(-1, keepdim=True)
    action = (place == torch.arange(logits.shape[-1])).float()
    return action, (action * log_probabilities).sum(-1), -(probabilities * log_probabilities).sum(-1)
