"""A Lightning module that separates two spirals, with one of several normalisations."""

import math
from typing import Literal

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from study import Trial, seeded
from study.integrations.lightning import ReportTo, last_checkpoint

NORMS = {"none": nn.Identity, "batch": nn.BatchNorm1d, "layer": nn.LayerNorm}


def spirals(count: int) -> TensorDataset:
    """Draw points of two spirals, with their labels."""
    labels = torch.randint(2, (count,))
    angles = 3 * math.pi * torch.rand(count).sqrt()
    turned = angles + math.pi * labels
    points = torch.stack([angles * turned.cos(), angles * turned.sin()], 1) / (3 * math.pi)
    return TensorDataset(points + 0.02 * torch.randn(count, 2), labels.float())


class Spirals(lightning.LightningModule):
    """A network with two hidden layers."""

    def __init__(self, norm: str) -> None:
        super().__init__()
        sizes = (2, 32, 32)
        hidden = [(nn.Linear(*sizes[i : i + 2]), NORMS[norm](32), nn.ReLU()) for i in range(2)]
        self.layers = nn.Sequential(*hidden[0], *hidden[1], nn.Linear(32, 1), nn.Flatten(0))

    def training_step(self, batch, index):
        """Log and return the loss."""
        loss = nn.functional.binary_cross_entropy_with_logits(self.layers(batch[0]), batch[1])
        self.log("train/loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, index):
        """Log the accuracy."""
        self.log("val/accuracy", ((self.layers(batch[0]) > 0) == batch[1]).float().mean())

    def configure_optimizers(self):
        """Build the optimizer."""
        return torch.optim.Adam(self.parameters(), lr=0.01)


@seeded
def train(seed: int, *, norm: Literal["none", "batch", "layer"] = "none", trial: Trial):
    """Train for 20 epochs, from the last checkpoint if there is one, and report the logged metrics."""
    trainer = lightning.Trainer(
        max_epochs=20,
        callbacks=[ReportTo(trial)],
        default_root_dir=trial.folder,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    loaders = DataLoader(spirals(1000), 50, shuffle=True), DataLoader(spirals(1000), 1000)
    trainer.fit(Spirals(norm), *loaders, ckpt_path=last_checkpoint(trial))
