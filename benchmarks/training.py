"""Our training step beside a plain ``nn.Transformer`` loop of the same shape, data and precision.

Both train on the same made-up sentences, whose lengths are spread like Tatoeba's, with AdamW,
dropout 0.1 and label smoothing 0.1. The reference computes in float32 on a CPU and under bf16
autocast on CUDA; ours with float32 and bfloat16 products on a CPU, and on CUDA with bfloat16
products, also compiled. The share of the device's peak counts the matrix products of a step,
forward and backward, with their padding.
"""

import math
import random
import warnings
from array import array
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Annotated, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.timing import Threads, interleaved, report
from transformer import Transformer, TransformerConfig
from transformer.devices import choose_device
from transformer.encodings import sinusoidal_table
from transformer.text.kinds import one_of
from transformer.training.data import Batch, EncodedPairs
from transformer.training.options import TrainingOptions
from transformer.training.progress import peak
from transformer.training.trainer import Trainer, TrainingStep

SHAPES = {
    "bundled": (
        {"vocab_size": 8000, "d_model": 256, "d_ff": 1024, "n_layers": 3, "n_heads": 8},
        2_500,
    ),
    "base": (
        {"vocab_size": 37_000, "d_model": 512, "d_ff": 2048, "n_layers": 6, "n_heads": 8},
        25_000,
    ),
    "big": (
        {"vocab_size": 37_000, "d_model": 1024, "d_ff": 4096, "n_layers": 6, "n_heads": 16},
        25_000,
    ),
}
"""Sizes of a model, and positions of a batch: the bundled model's, and the paper's two (table
3)."""


class PlainTransformer(nn.Module):
    """``nn.Transformer`` with tied embeddings and sinusoids, as in its tutorials."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model, padding_idx=config.pad_id)
        nn.init.normal_(self.embedding.weight, std=config.d_model**-0.5)
        self.dropout = nn.Dropout(config.dropout)
        self.table: Tensor
        self.register_buffer("table", sinusoidal_table(256, config.d_model).float())
        self.stacks = nn.Transformer(
            d_model=config.d_model,
            nhead=config.n_heads,
            num_encoder_layers=config.n_encoder_layers,
            num_decoder_layers=config.n_decoder_layers,
            dim_feedforward=config.d_ff,
            dropout=config.dropout,
            batch_first=True,
            norm_first=True,
        )

    def forward(self, batch: Batch) -> Tensor:
        """Logits (batch, target, vocab_size)."""
        src_padding = batch.src_ids == self.config.pad_id
        tgt_padding = batch.tgt_input_ids == self.config.pad_id
        features = self.stacks(
            self.embed(batch.src_ids),
            self.embed(batch.tgt_input_ids),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(
                batch.tgt_ids.shape[1], device=batch.src_ids.device, dtype=torch.bool
            ),
            src_key_padding_mask=src_padding,
            memory_key_padding_mask=src_padding,
            tgt_key_padding_mask=tgt_padding,
            tgt_is_causal=True,
        )
        return F.linear(features, self.embedding.weight)

    def embed(self, ids: Tensor) -> Tensor:
        """Embeds ids (batch, length) → (batch, length, d_model)."""
        scaled = self.embedding(ids) * math.sqrt(self.config.d_model)
        return self.dropout(scaled + self.table[: ids.shape[1]])


class PlainLoop:
    """The reference: a plain loop with one optimiser step per batch."""

    def __init__(
        self,
        config: TransformerConfig,
        options: TrainingOptions,
        batches: list[Batch],
        device: torch.device,
    ) -> None:
        self.model = PlainTransformer(config).to(device).train()
        self.options, self.batches, self.device = options, batches, device
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=1e-3, betas=(options.beta1, options.beta2)
        )
        self.done = 0

    def step(self) -> None:
        """Trains on the next batch."""
        batch = self.batches[self.done % len(self.batches)].to(self.device)
        with torch.autocast(
            self.device.type, dtype=torch.bfloat16, enabled=self.device.type == "cuda"
        ):
            logits = self.model(batch)
        loss = F.cross_entropy(
            logits.float().flatten(0, 1),
            batch.tgt_ids.flatten(),
            ignore_index=self.model.config.pad_id,
            label_smoothing=self.options.label_smoothing,
        )
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(self.model.parameters(), self.options.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.done += 1
        loss.item()


def made_up_pairs(count: int, vocab_size: int) -> EncodedPairs:
    """Pairs of random ids with lengths like Tatoeba's, about 9 ± 4 pieces per side."""
    draw = random.Random(0)
    source: list[array[int]] = []
    target: list[array[int]] = []
    for _ in range(count):
        length = max(2, round(draw.lognormvariate(2.2, 0.4)))
        for side in (source, target):
            size = max(2, length + draw.randint(-2, 2))
            side.append(array("i", [draw.randrange(4, vocab_size) for _ in range(size)]))
    return EncodedPairs(source, target)


def training(
    *,
    shape: Annotated[str, one_of(*SHAPES), "sizes of the model"] = "bundled",
    steps: Annotated[int, "steps that count"] = 20,
    warm_up: int = 2,
    threads: Threads = 2,
    compile: bool = False,
) -> int:
    """Speed of a training step, its share of the device's peak, and its ratio to the plain loop.

    warm_up: steps that do not count; on CUDA, shapes are recorded in them
    compile: on CUDA, also with compiled layers
    """
    torch.set_num_threads(threads)
    warnings.filterwarnings("ignore", message="enable_nested_tensor")
    torch.manual_seed(0)
    device = choose_device()
    (sizes, positions) = SHAPES[shape]
    depths = dict.fromkeys(("n_encoder_layers", "n_decoder_layers"), sizes["n_layers"])
    values: dict[str, Any] = depths | {
        name: size for name, size in sizes.items() if name != "n_layers"
    }
    config = TransformerConfig(**values, norm="pre")
    options = TrainingOptions(steps=100_000, batch_positions=positions)
    data = made_up_pairs(4 * positions, config.vocab_size)
    first = list(islice(data.batches(positions, options.seed), steps + warm_up))
    runs: dict[str, Callable[[], object]] = {
        "nn.Transformer": PlainLoop(config, options, first, device).step
    }
    ways = {"float32": replace(options, precision="float32")} if device.type == "cpu" else {}
    ways["bfloat16"] = replace(options, precision="bfloat16")
    if compile:
        ways["bfloat16, compiled"] = replace(options, precision="bfloat16", compile=True)
    done: dict[str, list[TrainingStep]] = {name: [] for name in ways}
    for name, chosen in ways.items():
        trainer = Trainer(Transformer(config).to(device), data, chosen)
        runs[name] = partial(
            lambda name, trainer: done[name].append(trainer.advance()), name, trainer
        )
    seconds = interleaved(runs, steps, warm_up)
    speed, source = peak(device, torch.bfloat16)
    tokens = sum(batch.tokens for batch in first[warm_up:])
    print(
        f"nn.Transformer: {tokens / sum(seconds['nn.Transformer']):,.0f} target tokens/s on "
        f"{device}"
    )
    for name, log in done.items():
        spent = sum(seconds[name])
        counted = log[warm_up:]
        share = f"{100 * sum(step.flops for step in counted) / spent / speed:.1f} % of {source}"
        print(
            f"{name}: {sum(step.tokens for step in counted) / spent:,.0f} target tokens/s, {share}"
        )
        report("one training step", seconds, "nn.Transformer", name, "above 1: ours is faster")
    return 0
