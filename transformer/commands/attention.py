"""`python -m transformer attention`: prints one head as a table or saves it as a file."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from transformer.commands.arguments import (
    Json,
    add_beam,
    model_command,
    open_model,
    option,
    output_file,
    warn,
    write,
)
from transformer.config import AttentionKind
from transformer.run import Translation
from transformer.storage.files import write_atomically
from transformer.storage.packed import write_arrays
from transformer.text.words import readable
from transformer.translator import Translator
from transformer.view import HeadView

CELL_WIDTH = 8


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    attention = model_command(commands, "attention", show_attention, "print or save one head's attention")
    attention.add_argument("text", metavar="TEXT")
    attention.add_argument("--kind", default="cross", choices=[kind.value for kind in AttentionKind])
    attention.add_argument("--layer", type=int, default=1, help="layer, counted from 1")
    attention.add_argument("--head", type=int, default=1, help="head, counted from 1")
    option(attention, "--target", str, "TEXT", "force this translation instead of the model's own")
    option(attention, "--output", output_file, "FILE", "file to save to, .npz or .json")
    add_beam(attention)


def show_attention(arguments: argparse.Namespace) -> int:
    """`attention`: prints one head as a table or saves it as a file."""
    if arguments.output is not None and arguments.output.suffix not in (".npz", ".json"):
        raise ValueError(f"The output {arguments.output} must end in .npz or .json.")
    translator = open_model(arguments)
    _check_head(translator, arguments)
    if arguments.target is None:
        translation = translator.translate(arguments.text, beam_size=arguments.beam_size)
    else:
        translation = translator.force(arguments.text, arguments.target)
    warn(translation.notes)
    view = translation.head(arguments.kind, arguments.layer - 1, arguments.head - 1)
    if arguments.output is not None:
        _save_view(arguments.output, view)
        print(f"Wrote {arguments.output}.", file=sys.stderr)
    elif arguments.json:
        write(arguments, _view_values(view), "")
    else:
        print(_table(translation, view))
    return 0


def _check_head(translator: Translator, arguments: argparse.Namespace) -> None:
    config, kind = translator.config, AttentionKind(arguments.kind)
    sizes = {"layer": config.sites[kind].n_layers, "head": config.n_heads}
    for name, most in sizes.items():
        value = getattr(arguments, name)
        if not 1 <= value <= most:
            known = f"this model has {name}s 1 to {most}"
            raise ValueError(f"There is no {arguments.kind} {name} {value}; {known}.")


def _view_values(view: HeadView) -> Json:
    return {
        "kind": view.kind.value,
        "layer": view.layer,
        "head": view.head,
        "query_tokens": view.query_tokens,
        "predicted_tokens": view.predicted_tokens,
        "key_tokens": view.key_tokens,
        "scores": np.round(view.scores.astype(float), 6).tolist(),
        "mask": view.mask.tolist(),
        "weights": np.round(view.weights.astype(float), 6).tolist(),
        "audit_passed": view.audit.passed,
    }


def _save_view(path: Path, view: HeadView) -> None:
    values = _view_values(view)
    if path.suffix == ".json":
        write_atomically(path, json.dumps(values, ensure_ascii=False).encode())
        return
    arrays = {name: getattr(view, name) for name in ("scores", "mask", "weights")}
    arrays |= {name: np.array(values[name]) for name in ("kind", "layer", "head")}
    for name in ("query_tokens", "predicted_tokens", "key_tokens"):
        arrays[name] = np.array(values[name] or (), dtype=str)
    write_arrays(path, arrays)


def _table(translation: Translation, view: HeadView) -> str:
    rows = view.query_tokens
    lines = [
        f"{translation.source_text} → {translation.text}",
        f"{view.kind.value} attention, layer {view.layer + 1}, head {view.head + 1}: weights; "
        "rows are queries" + ("" if view.predicted_tokens is None else " (token read → token predicted)"),
    ]
    if view.predicted_tokens is None:
        labels = [_short(row) for row in rows]
    else:
        labels = [f"{_short(r)} → {_short(p)}" for r, p in zip(rows, view.predicted_tokens, strict=True)]
    width = max(map(len, labels))
    lines.append(" " * width + "".join(f" {_short(key):>{CELL_WIDTH}}" for key in view.key_tokens))
    for label, weights, mask in zip(labels, view.weights, view.mask, strict=True):
        cells = (f"{weight:.2f}" if seen else "-" for weight, seen in zip(weights, mask, strict=True))
        lines.append(f"{label:<{width}}" + "".join(f" {cell:>{CELL_WIDTH}}" for cell in cells))
    lines.append(f"audit: {'passed' if view.audit.passed else 'FAILED'}")
    return "\n".join(lines)


def _short(piece: str) -> str:
    text = readable(piece)
    return text if len(text) <= CELL_WIDTH else text[: CELL_WIDTH - 1] + "…"
