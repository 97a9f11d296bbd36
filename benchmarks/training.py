"""Compares our training step with a plain ``nn.Transformer`` loop of the same shape, data and precision.

    python benchmarks/training.py            # on a CUDA device if there is one

Both train the bundled model's shape on the same batches of made-up sentences, whose lengths are spread like
Tatoeba's, with AdamW, dropout 0.1 and label smoothing 0.1. The reference computes in float32 on a CPU and
under bf16 autocast on CUDA; ours with float32 products, with bfloat16 products, and with those and the
attention kernels that training does without: the fused one on a CPU, cuDNN's on CUDA.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import warnings
from array import array
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from pathlib import Path
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.interleave import interleaved, report
from transformer import Transformer, TransformerConfig
from transformer.encodings import sinusoidal_table
from transformer.training import objective
from transformer.training.batches import Batch, EncodedPairs
from transformer.training.options import Precision, TrainingOptions
from transformer.training.trainer import Trainer

CONFIG = TransformerConfig(
    vocab_size=8000, d_model=256, d_ff=1024, n_encoder_layers=3, n_decoder_layers=3, norm="pre"
)


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
            config.d_model,
            config.n_heads,
            config.n_encoder_layers,
            config.n_decoder_layers,
            config.d_ff,
            config.dropout,
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

    def __init__(self, options: TrainingOptions, batches: list[Batch], device: torch.device) -> None:
        self.model = PlainTransformer(CONFIG).to(device).train()
        self.options, self.batches, self.device = options, batches, device
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=1e-3, betas=(options.beta1, options.beta2)
        )
        self.done = 0

    def step(self) -> None:
        """Trains on the next batch."""
        batch = self.batches[self.done % len(self.batches)].to(self.device)
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.device.type == "cuda"):
            logits = self.model(batch)
        loss = F.cross_entropy(
            logits.float().flatten(0, 1),
            batch.tgt_ids.flatten(),
            ignore_index=CONFIG.pad_id,
            label_smoothing=self.options.label_smoothing,
        )
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(self.model.parameters(), self.options.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.done += 1
        loss.item()


def made_up_pairs(count: int) -> EncodedPairs:
    """Pairs of random ids with lengths like Tatoeba's, about 9 ± 4 pieces per side."""
    draw = random.Random(0)
    source: list[array[int]] = []
    target: list[array[int]] = []
    for _ in range(count):
        length = max(2, round(draw.lognormvariate(2.2, 0.4)))
        for side in (source, target):
            size = max(2, length + draw.randint(-2, 2))
            side.append(array("i", [draw.randrange(4, CONFIG.vocab_size) for _ in range(size)]))
    return EncodedPairs(source, target)


def main() -> None:
    """Prints one ratio per way of computing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    warnings.filterwarnings("ignore", message="enable_nested_tensor")
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    options = TrainingOptions(steps=10_000)
    data = made_up_pairs(20_000)
    batches = list(islice(data.batches(options.batch_positions, options.seed, 0, 1), arguments.steps + 2))
    runs: dict[str, Callable[[], object]] = {"nn.Transformer": PlainLoop(options, batches, device).step}
    names: dict[str, Precision] = {
        "float32": "float32",
        "bfloat16": "bfloat16",
        "bfloat16, every attention kernel": "bfloat16",
    }
    for name, precision in names.items():
        chosen = replace(options, precision=precision)
        step = Trainer(Transformer(CONFIG).to(device), data, chosen).advance
        runs[name] = every_kernel(step) if "every" in name else step
    seconds = interleaved(runs, arguments.steps)
    tokens = sum(int((batch.tgt_ids != CONFIG.pad_id).sum()) for batch in batches[2:])
    for name, spent in seconds.items():
        print(f"{name}: {tokens / sum(spent):,.0f} target tokens/s on {device}")
    for name in list(runs)[1:]:
        report("one training step", seconds, "nn.Transformer", name, "above 1: ours is faster")


def every_kernel(step: Callable[[], object]) -> Callable[[], object]:
    """The same step with PyTorch's own choice of what computes attention."""

    def run() -> object:
        with mock.patch.object(objective, "sdpa_kernel", return_value=nullcontext()):
            return step()

    return run


if __name__ == "__main__":
    main()
