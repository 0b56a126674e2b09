"""The time-tracking task: rewards for entering the target on time, and exact clocks made of units."""

from __future__ import annotations

from hashlib import sha256

import pytest
import torch

from study.plugins.packed_tasks import builder_of
from study.stream.stream import Purpose
from study.stream.trial_stream import Stream, evaluation_stream
from tasks.time_tracking.task import ACTIONS, Agent, Countdown, Episodes, TimeTracking, Walks, _sampled

TASK = TimeTracking(evaluation_rows=40)
UP, DOWN, LEFT, RIGHT, STAY = range(ACTIONS)


def episodes(task: TimeTracking = TASK, iteration: int = 0, seed: int = 3) -> Episodes:
    return task.draw(Stream([seed], iteration, Purpose.TRAIN))


def evaluated(task: TimeTracking, purpose: Purpose = Purpose.TEST) -> Episodes:
    return task.evaluation(evaluation_stream(purpose), purpose)


def distance(drawn: Episodes) -> torch.Tensor:
    return (drawn.agents - drawn.targets).abs().sum(-1)


class Walker:
    """A policy that waits until the remaining steps are just enough, and then goes to the target.

    Args:
        side: side length of the world.
        late: steps of delay; None to go at once.
    """

    def __init__(self, side: int = 5, late: int | None = 0) -> None:
        self.side, self.late = side, late

    def __call__(self, world, told, state):
        agent, target = (position.argmax(-1) for position in world.unflatten(-1, (2, self.side**2)).unbind(-2))
        down, right = target // self.side - agent // self.side, target % self.side - agent % self.side
        time_left = told[:, 0] if state is None else state
        action = torch.where(down > 0, DOWN, torch.where(down < 0, UP, torch.where(right > 0, RIGHT, LEFT)))
        if self.late is not None:
            action = torch.where(down.abs() + right.abs() < time_left + self.late, STAY, action)
        logits = 1e4 * torch.nn.functional.one_hot(action, ACTIONS).float()
        return torch.cat([logits, torch.zeros(len(agent), 1)], -1), time_left - 1


def always(action: int):
    def walk(world, told, state):
        logits = torch.full((len(world), ACTIONS + 1), -1e4)
        logits[:, action] = 1e4
        return logits, torch.zeros(len(world))

    return walk


def test_targets_can_be_reached_in_time():
    """Targets differ from the agent's place and are within T steps; both occur at every place of the world."""
    drawn = [episodes(iteration=i) for i in range(60)]
    for batch in drawn:
        assert ((distance(batch) >= 1) & (distance(batch) <= batch.times)).all()
    for name in ("agents", "targets"):
        places = {tuple(place) for batch in drawn for place in getattr(batch, name).tolist()}
        assert places == {(row, column) for row in range(5) for column in range(5)}
    assert {int(time) for batch in drawn for time in batch.times} == set(TASK.train_times)
    near = TimeTracking(train_times=(1,))
    assert set(distance(episodes(near)).tolist()) == {1.0}


def test_tests_have_each_time():
    """Tests have equally many episodes of each T; validation has the trained times only."""
    test, validation = evaluated(TASK), evaluated(TASK, Purpose.VALIDATION)
    assert test.times.tolist() == [float(time) for time in range(5, 25) for _ in range(40)]
    assert validation.times.tolist() == [float(time) for time in range(5, 13) for _ in range(40)]
    assert (test.chances.shape[1], validation.chances.shape[1]) == (24 + 8, 12 + 8)


def test_episodes_are_the_same_everywhere():
    """The first training and test episodes are the same on every machine and version."""
    drawn = [episodes(), evaluated(TASK, Purpose.VALIDATION), evaluated(TASK)]
    content = [b"".join(numbers.contiguous().numpy().astype("<f4").tobytes() for numbers in batch) for batch in drawn]
    assert [sha256(numbers).hexdigest()[:16] for numbers in content] == [
        "14f8162e5598103a",
        "1c99d6eb204c9744",
        "8c07229874b1693a",
    ]


def test_agents_in_time_are_rewarded():
    """An agent in time is always rewarded, one that goes at once only if T is the distance, a late one never."""
    drawn = evaluated(TASK)
    walks = TASK.predict(Walker(), drawn)
    assert walks.returns.eq(1).all()
    assert torch.equal(walks.is_on.sum(-1), drawn.times)
    early = TASK.predict(Walker(late=None), drawn)
    assert torch.equal(early.returns, (distance(drawn) == drawn.times).float())
    assert torch.equal(early.is_on.sum(-1), distance(drawn))
    late = TASK.predict(Walker(late=1), drawn)
    assert late.returns.eq(0).all()
    assert torch.equal(late.is_on.sum(-1), drawn.times + 1)


def test_agents_that_never_arrive_walk_to_the_end():
    """An episode without arrival lasts T + 8 steps, independently of the others."""
    drawn = evaluated(TASK)
    walks = TASK.predict(always(STAY), drawn)
    assert walks.returns.eq(0).all()
    assert torch.equal(walks.is_on.sum(-1), drawn.times + 8)
    assert (walks.is_on.diff(dim=-1) <= 0).all()


def test_agents_stay_in_the_world():
    """An agent at the border stays inside the world, and so reaches only targets on its way."""
    drawn = evaluated(TASK)
    walks = TASK.predict(always(UP), drawn)
    down, right = (drawn.agents - drawn.targets).unbind(-1)
    is_above = (right == 0) & (down > 0)
    assert torch.equal(walks.is_on.sum(-1), torch.where(is_above, down, drawn.times + 8))


def test_actions_have_the_policys_probabilities():
    """Actions for equally spaced uniform numbers have the policy's probabilities, logarithms and entropy."""
    logits, chances = torch.tensor([0.0, 1.0, -1.0, 2.0, 0.5]), torch.arange(1000) / 1000
    action, log_probability, entropy = _sampled(logits.expand(1000, -1), chances)
    probabilities = torch.softmax(logits, -1)
    torch.testing.assert_close(action.mean(0), probabilities, rtol=0, atol=2e-3)
    torch.testing.assert_close(log_probability, (action @ probabilities).log())
    torch.testing.assert_close(entropy[0], torch.distributions.Categorical(logits=logits).entropy())


def test_the_gradients_are_those_of_actor_and_critic():
    """Gradients cover steps within episodes only, and the actor's advantage is treated as a constant."""
    task = TimeTracking(value_strength=0.3, entropy_strength=0.2)
    leaves = [torch.rand(2, 3, requires_grad=True) for _ in range(3)]
    is_on, returns = torch.tensor([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]), torch.tensor([1.0, 0.0])
    log_probability, entropy, value = leaves
    task.loss(Walks(log_probability, entropy, value, is_on, returns), episodes()).backward()
    advantage = returns[:, None] - value.detach()
    torch.testing.assert_close(log_probability.grad, -advantage * is_on / 5)
    torch.testing.assert_close(entropy.grad, -0.2 * is_on / 5)
    torch.testing.assert_close(value.grad, -2 * 0.3 * advantage * is_on / 5)


def test_units_can_be_an_exact_clock():
    """A NAU with weights of 1, -1 and 1 is an exact clock at any time."""
    reference, agent = builder_of(TASK, "reference")(), builder_of(TASK, "NAU")()
    assert isinstance(reference.clock, Countdown)
    agent.load_state_dict(reference.state_dict() | {"clock.unit.weight": torch.tensor([[1.0, -1.0, 1.0]])})
    drawn = evaluated(TASK)
    for exact, learned in zip(TASK.predict(reference, drawn), TASK.predict(agent, drawn), strict=True):
        torch.testing.assert_close(exact, learned)


def test_only_the_first_input_has_the_time():
    """Inputs have both positions and a constant 1; only the first step's input has T."""
    inputs = []

    def look(world, told, state):
        inputs.append((world.unflatten(-1, (2, 25)), told))
        return always(STAY)(world, told, state)

    drawn = evaluated(TASK)
    TASK.predict(look, drawn)
    assert torch.equal(inputs[0][1], torch.stack([drawn.times, torch.ones_like(drawn.times)], -1))
    assert all(torch.equal(told, torch.tensor([0.0, 1.0]).expand(len(told), -1)) for _, told in inputs[1:])
    for world, _ in inputs:
        assert world.sum(-1).eq(1).all()
        places = world.argmax(-1)
        assert torch.equal(torch.stack([places // 5, places % 5], -1).float(), torch.stack(drawn[1:3], 1))
    assert isinstance(builder_of(TASK, "GRU")(), Agent)


def test_metrics_are_as_defined():
    """Metrics are the mean return over all times, at each time, and at times far from the trained ones."""
    drawn = evaluated(TASK)
    walks = TASK.predict(always(STAY), drawn)
    returns = (torch.arange(len(drawn.times)) % 40 < drawn.times).float()
    metrics = TASK.measure(walks._replace(returns=returns), drawn)
    assert {f"test_{name}" for name in metrics} <= set(TASK.measured()) | {"test_return"}
    for time in TASK.test_times:
        assert metrics[f"return_at_{time}"] == pytest.approx(time / 40)
    assert metrics["return_far"] == pytest.approx(16 / 40)
    validation = evaluated(TASK, Purpose.VALIDATION)
    assert TASK.measure(TASK.predict(Walker(), validation), validation) == {"return": 1.0}


def test_an_agent_learns_a_small_world():
    """In a world of four places with T = 2, an agent learns to arrive on time within a few hundred updates."""
    task = TimeTracking(side=2, train_times=(2,), test_times=(2, 3), far_times=(3,), batch_size=64, extra_steps=2)
    torch.manual_seed(0)
    agent = builder_of(task, "GRU")(hidden_size=16)
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-2)
    drawn = evaluated(task)
    before = task.measure(task.predict(agent, drawn), drawn)["return_at_2"]
    for iteration in range(300):
        batch = episodes(task, iteration)
        optimizer.zero_grad()
        task.loss(task.predict(agent, batch), batch).backward()
        optimizer.step()
    after = task.measure(task.predict(agent, drawn), drawn)["return_at_2"]
    assert before < 0.5
    assert after > 0.8


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"far_times": (13, 30)}, r"far_times must be among test_times, but \[30\] aren't"),
        ({"train_times": (5, 5)}, r"train_times must be one or more distinct times, but got \[5, 5\]"),
        ({"test_times": ()}, r"test_times must be one or more distinct times, but got \[\]"),
    ],
)
def test_inconsistent_times_are_refused(fields, message):
    """Times must be unique, and far times must be among the test times."""
    with pytest.raises(ValueError, match=message):
        TimeTracking(**fields)
