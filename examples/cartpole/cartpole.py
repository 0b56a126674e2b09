"""REINFORCE on gymnasium's CartPole-v1: a training function that reports by calls."""

from typing import Literal

import gymnasium
import numpy as np
import torch
from gymnasium.vector import VectorEnv
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from study import Trial, seeded

EPISODES = 2  # per update
DISCOUNT = 0.99
EVALUATE_EVERY = 6  # updates
MOST_UPDATES = 10**6


@seeded
def train(
    seed: int,
    *,
    baseline: Literal["none", "mean", "value"] = "mean",
    learning_rate: float = 0.03,
    weights_seed: int | None = None,
    environment_seed: int | None = None,
    action_seed: int | None = None,
    trial: Trial,
) -> None:
    """Train a policy, and report the mean return of 20 greedy episodes every few updates.

    Args:
        seed: seed of each source of randomness whose own seed is None.
        baseline: the baseline of a return: none, the batch's mean, or the output of a value network.
        learning_rate: Adam's learning rate, for both networks.
        weights_seed: seed of the initial weights.
        environment_seed: seed of the start states of training episodes.
        action_seed: seed of the sampled actions.
        trial: receives the reports; its last step is the last update.
    """
    seeds = (weights_seed, environment_seed, action_seed)
    weights_seed, environment_seed, action_seed = (seed if own is None else own for own in seeds)
    torch.manual_seed(2 * weights_seed)
    generator = torch.Generator().manual_seed(2 * action_seed + 1)  # a stream other than that of the weights
    policy, value = network(), network()
    optimizer = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr=learning_rate)
    training, evaluation = cart_poles(EPISODES), cart_poles(20)
    update = 0
    while not trial.should_stop:
        update += 1
        start = environment_seed * MOST_UPDATES + update
        observations, actions, rewards = play(training, policy, start, generator)
        returns = discounted(rewards)
        taken = rewards > 0  # each step of an episode is rewarded
        observed, target = observations[taken], returns[taken]
        surprise = binary_cross_entropy_with_logits(policy(observed), actions[taken], reduction="none")
        expected = {"none": torch.zeros(1), "mean": target.mean(), "value": value(observed)}[baseline]
        advantage = target - expected
        loss = (advantage.detach() * surprise).mean() + advantage.square().mean() / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update % EVALUATE_EVERY == 0:
            trial.report(update, mean_return=play(evaluation, policy, start=0)[2].sum(0).mean())


def network() -> nn.Module:
    """Build a network with one hidden layer, from CartPole's four observations to one number."""
    return nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1), nn.Flatten(0))


def cart_poles(count: int) -> VectorEnv:
    """Make `count` CartPoles that are stepped together."""
    return gymnasium.make_vec("CartPole-v1", num_envs=count, vectorization_mode="vector_entry_point")


@torch.no_grad()
def play(
    environments: VectorEnv, policy: nn.Module, start: int, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Play one episode in each environment.

    Args:
        environments: environments to play in; they are reset first.
        policy: computes the logit of a push to the right.
        start: the seed of the start states.
        generator: samples actions; None takes the more probable ones.

    Returns:
        Observations [steps, environments, 4], actions [steps, environments], and rewards of the same shape, which are 0
        after an episode's end.
    """
    observations, _ = environments.reset(seed=start)
    steps, playing = [], np.ones(environments.num_envs, dtype=bool)
    while playing.any():
        seen = torch.from_numpy(observations)
        logits = policy(seen)
        actions = (logits > 0).float() if generator is None else logits.sigmoid().bernoulli(generator=generator)
        observations, rewards, terminated, truncated, _ = environments.step(actions.long().numpy())
        steps.append((seen, actions, torch.from_numpy(rewards * playing)))
        playing = playing & ~(terminated | truncated)
    observed, taken, rewarded = zip(*steps, strict=True)
    return torch.stack(observed), torch.stack(taken), torch.stack(rewarded)


def discounted(rewards: Tensor) -> Tensor:
    """Return the discounted return of each step, from rewards [steps, environments]."""
    returns = rewards.clone()
    for step in reversed(range(len(rewards) - 1)):
        returns[step] += DISCOUNT * returns[step + 1]
    return returns
