"""`python -m transformer train-masked`: trains an encoder alone on lines of text, some of whose
pieces are masked, and writes a model directory."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import torch

from transformer.commands.train import OPTIONS, RunOptions, take_steps
from transformer.config import EncoderConfig
from transformer.devices import choose_device
from transformer.model import EncoderModel, count_parameters
from transformer.storage.card import training_card
from transformer.text.pairs import read_lines
from transformer.text.tokenizer import Tokenizer
from transformer.text.words import MASK
from transformer.training.distributed import joined
from transformer.training.masked import encode_texts
from transformer.training.options import TrainingOptions
from transformer.training.run import Exported, RunDirectory
from transformer.training.trainer import Trainer

_CONFIG = get_type_hints(EncoderConfig, include_extras=True)
_TEXTS = {
    "vocab_size": "pieces of the vocabulary",
    "d_model": "width of the residual stream",
    "d_ff": "inner width of the feed-forward network",
    "n_heads": "heads per layer",
    "n_layers": "layers",
    "dropout": "probability",
    "norm": "post (as in the paper) or pre",
    "positions": "name of the positional encoding",
}
SIZES = {name: Annotated[_CONFIG[name], text] for name, text in _TEXTS.items()}
DEFAULTS = {"vocab_size": 6000, "d_model": 160, "d_ff": 640, "n_heads": 8, "n_layers": 4}


def train_masked(
    *,
    text: Annotated[tuple[str, ...], "FILE", "lines of text to train on"],
    valid: Annotated[Path, "FILE", "lines of text to evaluate on"],
    max_length: Annotated[int, "leave out texts with more than N tokens"] = 64,
    run: RunOptions,
    tokenizer: Annotated[
        Path | None, "use this sentencepiece model, with a mask, instead of training one"
    ] = None,
    sizes: Annotated[dict[str, Any], SIZES],
    settings: Annotated[dict[str, Any], OPTIONS],
) -> int:
    """Train an encoder alone on texts with masked pieces."""
    with joined(choose_device(run.device)) as (workers, device):
        options = TrainingOptions(**{"label_smoothing": 0.0, **settings})
        config = EncoderConfig(
            **{**DEFAULTS, "max_positions": max_length, "output_bias": True, **sizes}
        )
        resumed = workers.agree(run.resumed)
        torch.manual_seed(options.seed)
        lines = [line for path in text for _, line in read_lines(path)]

        def vocabulary() -> Exported:
            if resumed:
                return resumed
            if tokenizer is not None:
                return Exported(Tokenizer.load(tokenizer))
            return Exported(Tokenizer.train(lines, config.vocab_size, masks=True))

        exported = workers.agree(vocabulary)
        data = encode_texts(lines, exported.tokenizer).up_to(max_length)
        held_out = encode_texts([line for _, line in read_lines(valid)], exported.tokenizer)
        config = replace(
            config,
            vocab_size=exported.tokenizer.vocab_size,
            mask_id=exported.tokenizer.source.ids[MASK],
            trained_length=data.longest,
        )
        model = EncoderModel(config).to(device)
        if not exported.card:
            exported.card = training_card(
                run.output.name,
                ["en"],
                command=shlex.join(["python", "-m", "transformer", *sys.argv[1:]]),
                files=list(text),
                config=config,
                parameters=count_parameters(model),
            )
        trainer = Trainer(model, data, options, workers)
        directory = RunDirectory(run.output, trainer, exported, data.fingerprint())
        directory.begin(resumed is not None, run.new_data)
        return take_steps(directory, held_out.up_to(max_length), None, run)
