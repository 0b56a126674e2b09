"""A tiny BERT that finds the first of two marks in a sequence, trained by Hugging Face's Trainer."""

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from study import Trial, seeded
from study.integrations.huggingface import ReportTo, last_checkpoint

TOKENS, LENGTH = 8, 12
START, FIRST, SECOND = 0, 1, 2


def sequences(count: int) -> list[dict[str, torch.Tensor]]:
    """Draw sequences with two marks; the label is 1 if the first mark is before the second, else 0."""
    tokens = torch.randint(SECOND + 1, TOKENS, (count, LENGTH))
    places = 1 + torch.rand(count, LENGTH - 1).argsort(1)[:, :2]
    tokens[:, 0] = START
    tokens.scatter_(1, places, torch.tensor([FIRST, SECOND]).expand(count, 2))
    labels = (places[:, 0] < places[:, 1]).long()
    return [{"input_ids": row, "labels": label} for row, label in zip(tokens, labels, strict=True)]


def accuracy(prediction):
    """Return the accuracy of predictions, as a metric called ``accuracy``."""
    return {"accuracy": (prediction.predictions.argmax(1) == prediction.label_ids).mean()}


@seeded
def train(seed: int, *, initializer_range: float = 0.02, trial: Trial):
    """Train for 4 epochs of 2,000 sequences, from the last checkpoint if there is one, and report the accuracies."""
    config = BertConfig(
        vocab_size=TOKENS,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=LENGTH,
        initializer_range=initializer_range,
    )
    every_epoch = {"logging_strategy": "epoch", "eval_strategy": "epoch", "save_strategy": "epoch"}
    arguments = TrainingArguments(
        trial.folder,
        seed=seed,
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
        save_total_limit=1,
        num_train_epochs=4,
        per_device_train_batch_size=50,
        learning_rate=3e-3,
        **every_epoch,
    )
    trainer = Trainer(
        BertForSequenceClassification(config),
        arguments,
        train_dataset=sequences(2000),
        eval_dataset=sequences(1000),
        compute_metrics=accuracy,
        callbacks=[ReportTo(trial, {"eval_accuracy": "accuracy"})],
    )
    trainer.train(resume_from_checkpoint=last_checkpoint(trial))
