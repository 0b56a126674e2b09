"""A small network that separates two half moons, configured by Hydra, without any reference to studies."""

import json
from pathlib import Path

import hydra
import torch
from omegaconf import DictConfig
from torch import nn


def half_moons(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw points on two interleaved half circles, with noise, and their labels, 0 or 1."""
    label = torch.randint(2, (rows,))
    angle = torch.pi * torch.rand(rows)
    x = torch.where(label == 0, angle.cos(), 1 - angle.cos())
    y = torch.where(label == 0, angle.sin(), 0.5 - angle.sin())
    return torch.stack([x, y], 1) + 0.15 * torch.randn(rows, 2), label.float()


@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def main(config: DictConfig) -> None:
    """Train, and write the accuracy after each epoch to metrics.jsonl."""
    torch.set_num_threads(1)
    torch.manual_seed(config.seed)
    (inputs, labels), (test_inputs, test_labels) = half_moons(300), half_moons(1000)
    network = nn.Sequential(nn.Linear(2, config.width), nn.ReLU(), nn.Linear(config.width, 1), nn.Flatten(0))
    optimizer = hydra.utils.instantiate(config.optimizer, network.parameters())
    with Path("metrics.jsonl").open("w") as file:
        for epoch in range(config.epochs):
            for rows in torch.randperm(len(labels)).split(30):
                optimizer.zero_grad()
                nn.functional.binary_cross_entropy_with_logits(network(inputs[rows]), labels[rows]).backward()
                optimizer.step()
            accuracy = ((network(test_inputs) > 0) == (test_labels > 0.5)).float().mean()
            print(json.dumps({"epoch": epoch, "accuracy": accuracy.item()}), file=file)


if __name__ == "__main__":
    main()
