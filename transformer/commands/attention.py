"""`python -m transformer attention`: prints one head as a table or saves it as a file."""

import json
import sys
from typing import Annotated

import numpy as np

from transformer.commands.lines import warn
from transformer.commands.models import BeamOptions, Json, ModelOptions
from transformer.commands.program import OutputFile
from transformer.config import AttentionKind, ModelConfig, Site
from transformer.reader import READS_ONLY
from transformer.run import Translation
from transformer.storage.files import write_atomically
from transformer.storage.packed import write_arrays
from transformer.text.kinds import listed, one_of
from transformer.text.words import readable
from transformer.view import HeadView

CELL_WIDTH = 8


def attention(
    text: Annotated[str, "TEXT", "text that the model reads"],
    *,
    model: ModelOptions,
    kind: Annotated[
        str | None,
        one_of(*(kind.value for kind in AttentionKind)),
        "which attention; without it, what the output rests on",
    ] = None,
    layer: Annotated[int, "layer, counted from 1"] = 1,
    head: Annotated[int, "head, counted from 1"] = 1,
    target: Annotated[
        str | None, "TEXT", "force this translation instead of the model's own"
    ] = None,
    output: Annotated[OutputFile | None, "FILE", "file to save to, .npz or .json"] = None,
    beam: BeamOptions,
) -> int:
    """Print or save one head's attention."""
    if output is not None and output.suffix not in (".npz", ".json"):
        raise ValueError(f"The output {output} must end in .npz or .json.")
    translator = model.open(beam)
    config = translator.config
    site = _site(config, kind)
    counts = (
        ("layer", layer, site.n_layers),
        ("head", head, config.n_heads),
    )
    for name, place, most in counts:
        if not 1 <= place <= most:
            raise ValueError(
                f"There is no {site.kind} {name} {place}; this model has {name}s 1 to {most}."
            )
    if not config.writes:
        if target is not None:
            raise ValueError(READS_ONLY)
        translation = translator.fill(text)
    elif target is None:
        translation = translator.translate(text, beam_size=beam.beam_size)
    else:
        translation = translator.force(text, target)
    warn(translation.notes)
    view = translation.head(site.kind, layer - 1, head - 1)
    if output is None and not model.json:
        print(_table(translation, view))
        return 0
    names = ("layer", "head", "query_tokens", "predicted_tokens", "key_tokens")
    scores, weights = (
        np.round(matrix.astype(float), 6).tolist() for matrix in (view.scores, view.weights)
    )
    values: Json = {"kind": view.kind.value} | {name: getattr(view, name) for name in names}
    values |= {"scores": scores, "mask": view.mask.tolist(), "weights": weights}
    values |= {"audit_passed": view.audit.passed}
    if output is None:
        model.write(translator, values, "")
        return 0
    if output.suffix == ".json":
        write_atomically(output, json.dumps(values, ensure_ascii=False).encode())
    else:
        arrays = {name: np.array(values[name]) for name in ("kind", "layer", "head")}
        arrays |= {
            name: np.array(values[name] or (), str) for name in values if name.endswith("_tokens")
        }
        arrays |= {name: getattr(view, name) for name in ("scores", "mask", "weights")}
        write_arrays(output, arrays)
    print(f"Wrote {output}.", file=sys.stderr)
    return 0


def _site(config: ModelConfig, kind: str | None) -> Site:
    """The attention of a kind; ValueError if the model has none of it."""
    if kind is None:
        return config.sites[config.last_kind]
    asked_for = AttentionKind(kind)
    if asked_for not in config.sites:
        raise ValueError(
            f"This model has no {kind} attention; its kinds are {listed(config.sites)}."
        )
    return config.sites[asked_for]


def _table(translation: Translation, view: HeadView) -> str:
    labels = list(map(_short, view.query_tokens))
    rows = "rows are queries"
    if (predicted := view.predicted_tokens) is not None:
        rows += " (token read → token predicted)"
        labels = [
            f"{read} → {_short(token)}" for read, token in zip(labels, predicted, strict=True)
        ]
    place = f"{view.kind.value} attention, layer {view.layer + 1}, head {view.head + 1}"
    texts = filter(None, (translation.source_text, translation.text))
    lines = [" → ".join(texts), f"{place}: weights; {rows}"]
    table = [["", *map(_short, view.key_tokens)]]
    for label, weights, mask in zip(labels, view.weights, view.mask, strict=True):
        cells = (
            f"{weight:.2f}" if seen else "-" for weight, seen in zip(weights, mask, strict=True)
        )
        table.append([label, *cells])
    for label, *row in table:
        lines.append(
            f"{label:<{max(map(len, labels))}}" + "".join(f" {cell:>{CELL_WIDTH}}" for cell in row)
        )
    return "\n".join([*lines, f"audit: {'passed' if view.audit.passed else 'FAILED'}"])


def _short(piece: str) -> str:
    text = readable(piece)
    return text if len(text) <= CELL_WIDTH else text[: CELL_WIDTH - 1] + "…"
