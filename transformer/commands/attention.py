"""`python -m transformer attention`: prints one head as a table or saves it as a file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import numpy as np

from transformer.commands.lines import warn
from transformer.commands.models import BeamOptions, Json, TranslatorOptions
from transformer.commands.program import OutputFile
from transformer.config import AttentionKind
from transformer.run import Translation
from transformer.storage.files import write_atomically
from transformer.storage.packed import write_arrays
from transformer.text.kinds import one_of
from transformer.text.words import readable
from transformer.view import HeadView

CELL_WIDTH = 8


def attention(
    text: Annotated[str, "TEXT", "text to translate"],
    *,
    model: TranslatorOptions,
    kind: Annotated[str, one_of(*(each.value for each in AttentionKind)), "which attention"] = "cross",
    layer: Annotated[int, "layer, counted from 1"] = 1,
    head: Annotated[int, "head, counted from 1"] = 1,
    target: Annotated[str | None, "TEXT", "force this translation instead of the model's own"] = None,
    output: Annotated[OutputFile | None, "FILE", "file to save to, .npz or .json"] = None,
    beam: BeamOptions,
) -> int:
    """Print or save one head's attention."""
    if output is not None and output.suffix not in (".npz", ".json"):
        raise ValueError(f"The output {output} must end in .npz or .json.")
    translator = model.open(beam)
    config = translator.config
    counts = (("layer", layer, config.sites[AttentionKind(kind)].n_layers), ("head", head, config.n_heads))
    for name, place, most in counts:
        if not 1 <= place <= most:
            raise ValueError(f"There is no {kind} {name} {place}; this model has {name}s 1 to {most}.")
    if target is None:
        translation = translator.translate(text, beam_size=beam.beam_size)
    else:
        translation = translator.force(text, target)
    warn(translation.notes)
    view = translation.head(kind, layer - 1, head - 1)
    if output is not None:
        _save_view(output, view)
        print(f"Wrote {output}.", file=sys.stderr)
    elif model.json:
        model.write(translator, _view_values(view), "")
    else:
        print(_table(translation, view))
    return 0


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
    labels, predicted = list(map(_short, view.query_tokens)), view.predicted_tokens
    if predicted is not None:
        labels = [f"{label} → {_short(token)}" for label, token in zip(labels, predicted, strict=True)]
    lines = [
        f"{translation.source_text} → {translation.text}",
        f"{view.kind.value} attention, layer {view.layer + 1}, head {view.head + 1}: weights; "
        "rows are queries" + ("" if predicted is None else " (token read → token predicted)"),
    ]
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
