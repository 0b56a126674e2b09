"""Train a small network to read digits; save it, and draw its learning curve."""

import argparse
import csv
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--optimizer", choices=["adam", "sgd"], default="adam", help="default: adam")
parser.add_argument("--lr", type=float, default=0.01, help="learning rate (default: 0.01)")
parser.add_argument("--width", type=int, default=16, help="hidden units (default: 16)")
parser.add_argument("--epochs", type=int, default=20, help="epochs (default: 20)")
parser.add_argument("--seed", type=int, default=0, help="default: 0")
parser.add_argument("--out", type=Path, default=Path("runs"), help="folder for the results (default: runs)")
args = parser.parse_args()

torch.manual_seed(args.seed)
torch.set_num_threads(1)
digits = load_digits()
images = torch.tensor(digits.images / 16, dtype=torch.float32).flatten(1)
labels = torch.tensor(digits.target)
shuffled = torch.randperm(len(labels))
training, test = shuffled[:1200], shuffled[1200:]
model = nn.Sequential(nn.Linear(64, args.width), nn.ReLU(), nn.Linear(args.width, 10))
optimizers = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
optimizer = optimizers[args.optimizer](model.parameters(), lr=args.lr)

args.out.mkdir(parents=True, exist_ok=True)
losses = []
with (args.out / "metrics.csv").open("w", newline="") as file:
    rows = csv.DictWriter(file, ["epoch", "train_loss", "test_accuracy"])
    rows.writeheader()
    for epoch in range(args.epochs):
        for batch in training[torch.randperm(len(training))].split(40):
            loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            accuracy = (model(images[test]).argmax(1) == labels[test]).float().mean().item()
        losses.append(loss.item())
        rows.writerow({"epoch": epoch, "train_loss": loss.item(), "test_accuracy": accuracy})
        file.flush()
        print(f"epoch {epoch}: train_loss {loss.item():.4f}, test_accuracy {accuracy:.4f}")
torch.save(model.state_dict(), args.out / "model.pt")
plt.plot(losses)
plt.savefig(args.out / "loss.png")
