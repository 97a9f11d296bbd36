"""Models and translations, loaded once and shared: the only caches of the app."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import streamlit as st

from figures import Tile
from transformer import Sampling, TransformerConfig, Translation, Translator, Window, load_translator
from transformer.batch import BatchEntry, run_batch
from transformer.capture import AttentionKind, HeadView
from transformer.checkpoint import read_json
from transformer.first_heads import first_heads
from transformer.heads import Grid, grid
from transformer.inside import InsideHead, look_inside
from transformer.patterns import output_projections, sentence_totals
from transformer.positions import REGISTRY
from transformer.retrace import retrace
from transformer.tokenizer import clean
from transformer.untrained import same_tokens, untrained_twin
from ui import examples, hub_models, imported, memory
from ui.linked_view import Head, window_around
from ui.parameters import State
from ui.stores import Recent, Residents, held
from ui.values import BEAM, SAMPLE

ROOT = Path(__file__).resolve().parent.parent
BUNDLED = ROOT / "assets" / "models"
DEFAULT = "en-de"
TWINS = "positions"
"""Folder of the models that differ in their positional encoding only."""
KINDS = tuple(str(kind) for kind in AttentionKind)
TEMPERATURE = 0.8
NEEDS_MODEL = "This needs the model, and an imported file holds a run without it: choose a model on the left."
MOST_MODELS = 4
"""So many models stay in memory, the twins aside; `TRANSFORMER_MOST_MODELS` in the environment changes it."""
LONGEST_IN_BATCH = 128
"""Most tokens of a sentence in a batch: six such sentences take about 60 MB."""

V = TypeVar("V")


@st.cache_resource(show_spinner=False)
def _residents() -> Residents:
    return Residents(int(os.environ.get("TRANSFORMER_MOST_MODELS") or MOST_MODELS))


@st.cache_resource(show_spinner=False)
def _resident_twins() -> Residents:
    return Residents(12)


@st.cache_resource(max_entries=2, show_spinner=False)
def _untrained(name: str, trained: int, seed: int) -> Translator:
    return untrained_twin(translator(name), seed)


_STORES: dict[str, tuple[int, Callable[[Translation], int] | None]] = {
    "translations": (64, held),
    "traced": (8, held),
    "overviews": (64, None),
    "statistics": (64, None),
    "rearranged": (64, None),
    "first heads": (32, None),
    "batches": (6, None),
}
"""How many values are kept of each sort, and what they hold."""


@st.cache_resource(show_spinner=False)
def _store(name: str) -> Recent[Any]:
    return Recent(*_STORES[name])


def _own_models() -> Path:
    return Path(os.environ.get("TRANSFORMER_MODELS") or ROOT / "models")


def _checkpoints(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if (path / "config.json").is_file())


def available() -> dict[str, Path]:
    """The models a visitor can choose, by name: bundled ones, trained ones, twins, the Hub's in its cache."""
    found = _on_disk()
    return found | {name: path for name, path in hub_models.cached().items() if name not in found}


def _on_disk() -> dict[str, Path]:
    found = {path.name: path for path in _checkpoints(BUNDLED)}
    for path in _checkpoints(_own_models()):
        found.setdefault(path.name, path)
    first = {DEFAULT: found[DEFAULT]} if DEFAULT in found else {}
    return first | found | twins()


def twins() -> dict[str, Path]:
    """The positional twins by name, `positions/rotary`, in the order of the registry, then others."""
    found = {path.name: path for path in _checkpoints(BUNDLED / TWINS)}
    for path in _checkpoints(_own_models() / TWINS):
        found.setdefault(path.name, path)
    names = [*(name for name in REGISTRY if name in found), *(name for name in found if name not in REGISTRY)]
    return {f"{TWINS}/{name}": found[name] for name in names}


def position_results() -> dict[str, Any] | None:
    """What `python -m transformer positions` measured on the twins; None where it was not run."""
    for folder in (BUNDLED, _own_models()):
        if (path := folder / TWINS / "results.json").is_file():
            return read_json(path)
    return None


def rearranged(key: Hashable, make: Callable[[], V]) -> V:
    """What a twin computes for a moved or changed sentence, made once and then kept."""
    made: V = _store("rearranged").get(key, make)
    return made


def translator(name: str) -> Translator:
    """The model of that name, loaded once per server and again when its directory changed.

    Raises:
        KeyError: there is no model of that name; a path is no name.
        NoModelError: the name is that of a file, which holds a run without its model.
        ValueError: the directory is damaged.
    """
    if imported.is_imported(name):
        raise NoModelError(NEEDS_MODEL)
    path = directory(name)
    return _home(name).get(_key(name, path), memory.of_model(path), lambda: load_translator(path))


def directory(name: str) -> Path:
    """The directory of a model.

    Raises:
        KeyError: there is no model of that name; a path is no name.
    """
    return _on_disk().get(name) or hub_models.cached_model(name)


def _home(name: str) -> Residents:
    return _resident_twins() if name in twins() else _residents()


def _key(name: str, path: Path) -> tuple[str, str, int]:
    changed = (each.stat().st_mtime_ns for each in path.iterdir() if each.exists())
    return name, str(path), max(changed, default=0)


def is_resident(name: str) -> bool:
    """Whether a model is in memory."""
    return _key(name, directory(name)) in _home(name)


class NoModelError(ValueError):
    """A view needs the model, and the run was opened from a file."""


def has_model(name: str) -> bool:
    """Whether a name among the models is that of a model, not of a file."""
    return not imported.is_imported(name)


@dataclass(frozen=True)
class Request:
    """What identifies a translation.

    Attributes:
        model: the name of the model.
        text: the sentence.
        decode: `greedy`, `beam-4`, `sample-7`.
        target: a translation of the visitor's own, or None.
    """

    model: str
    text: str
    decode: str
    target: str | None

    @property
    def trace(self) -> str:
        """A short name, with which figures, events and the view agree on what they speak of."""
        parts = "\0".join((self.model, self.text, self.decode, self.target or "", str(self.target is None)))
        return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def request(state: State, model: str, text: str) -> Request:
    """What a state asks for."""
    target = None if state.target is None else clean(state.target)
    return Request(model, addressed(model, clean(text), state.language), state.decode, target)


def languages(name: str) -> tuple[str, ...]:
    """The pieces that name a target language, such as `>>fra<<`, where a model must be told one."""
    try:
        pieces = translator(name).config.language_pieces if has_model(name) else ()
    except (ValueError, OSError):
        return ()
    return pieces if len(pieces) > 1 else ()


def addressed(name: str, text: str, language: str | None) -> str:
    """A text as a model of several languages wants it: it begins with the one chosen, or with its own."""
    pieces = languages(name)
    return text if not pieces or text.startswith(pieces) else f"{language_of(name, language)} {text}"


def language_of(name: str, language: str | None) -> str:
    """The language that is translated into: the one chosen where the model knows it, else its first."""
    pieces = languages(name)
    return language if language in pieces else pieces[0]


def translate(asked: Request, progress: Callable[[int, str], None]) -> Translation:
    """The translation, decoded once and then kept.

    Args:
        asked: what to translate, and how.
        progress: called now and then with the number of tokens so far and the last one.

    Raises:
        ValueError: the text cannot be translated; the message says why.
    """
    if not has_model(asked.model):
        return imported.run_of(asked.model, asked.text, asked.decode, asked.target)
    model = translator(asked.model)
    return _store("translations").get((asked, id(model)), lambda: _decode(model, asked, progress))


def _decode(model: Translator, asked: Request, progress: Callable[[int, str], None]) -> Translation:
    if asked.target is not None:
        return model.force(asked.text, asked.target)
    beam_size = int(asked.decode.removeprefix(BEAM)) if asked.decode.startswith(BEAM) else 1
    sample = None
    if asked.decode.startswith(SAMPLE):
        sample = Sampling(temperature=TEMPERATURE, seed=int(asked.decode.removeprefix(SAMPLE)))
    for count, step in enumerate(model.stream(asked.text, beam_size, sample=sample), start=1):
        if isinstance(step, Translation):
            return step
        progress(count, step.token)
    raise AssertionError("a stream ends with the translation")


def traced(asked: Request, translation: Translation) -> Translation:
    """The same translation with the residual stream, from a second pass over it."""
    model = translator(asked.model)
    return _store("traced").get((asked, id(translation)), lambda: retrace(model, translation))


def inside(asked: Request, translation: Translation, kind: str, chosen: Head, row: int) -> InsideHead:
    """One query of one head, step by step.

    Args:
        asked: what identifies the translation.
        translation: the translation as it was decoded.
        kind: encoder, decoder or cross.
        chosen: layer and head, from 0.
        row: the query, from 0.
    """
    again = traced(asked, translation)
    return look_inside(translator(asked.model).model, again, (kind, *chosen), row, translation)


def untrained(asked: Request, translation: Translation, seed: int) -> Translation:
    """The same source and target tokens through a model of the same shape with fresh weights.

    Raises:
        NoModelError: the run was opened from a file.
    """
    twin = _untrained(asked.model, id(translator(asked.model)), seed)
    return _store("translations").get((asked, id(translation), seed), lambda: same_tokens(twin, translation))


def sizes(name: str) -> dict[str, Head]:
    """Number of layers and heads by kind."""
    config = _config(name)
    layers = {"encoder": config.n_encoder_layers}
    return {kind: (layers.get(kind, config.n_decoder_layers), config.n_heads) for kind in KINDS}


def _config(name: str) -> TransformerConfig:
    return translator(name).config if has_model(name) else imported.find(name).translation.config


def facts(name: str) -> dict[str, Any]:
    """What `heads.json` says; empty where the model has none."""
    return (translator(name).heads or {}) if has_model(name) else {}


def default_head(name: str, kind: str) -> Head:
    """The head that opens first: as `heads.json` says, else as a few sentences do."""
    known = name if has_model(name) else imported.find(name).translation.model
    chosen = first_choice(known).get(kind) if known in available() else None
    layers, heads = sizes(name)[kind]
    if chosen is None:
        return layers - 1, 0
    return min(int(chosen[0]), layers - 1), min(int(chosen[1]), heads - 1)


def first_choice(name: str) -> dict[str, Head]:
    """The heads that open first, by kind: from `heads.json`, else measured once on the examples."""
    if (known := facts(name).get("default")) is not None:
        return known
    model, (language, *_) = translator(name), (*languages(name), None)
    texts = [addressed(name, example.text, language) for example in examples.examples()]
    return _store("first heads").get((name, id(model)), lambda: first_heads(model, texts))


def lengths(translation: Translation, kind: str) -> tuple[int, int]:
    """Rows and columns of the whole map of a kind."""
    target, source = len(translation.target_tokens), len(translation.source_tokens)
    return {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}[kind]


def head(translation: Translation, kind: str, chosen: Head, at: tuple[int, int]) -> HeadView:
    """One head, in a window of at most 64 x 64 around a cell.

    Args:
        translation: whose attention.
        kind: encoder, decoder or cross.
        chosen: layer and head, from 0.
        at: row and column that must be inside, from 0.
    """
    return translation.head(kind, *chosen, window=window(translation, kind, at))


def window(translation: Translation, kind: str, at: tuple[int, int]) -> Window:
    """The window that `head` takes."""
    rows, columns = lengths(translation, kind)
    return Window(*window_around(rows, at[0]), *window_around(columns, at[1]))


def followed(translation: Translation, chosen: Head) -> list[int]:
    """For each step the source token that a cross-attention head attends to most, `</s>` left out."""
    assert translation.attention is not None
    weights = translation.attention.weights("cross", *chosen)
    words = weights[:, :-1] if weights.shape[1] > 1 else weights
    return [int(column) for column in np.argmax(words, axis=1)]


def overview(
    asked: Request, translation: Translation, what: Hashable, make: Callable[[], list[list[Tile]]]
) -> list[list[Tile]]:
    """All heads of a kind, pooled for one tiled map, made once and then kept.

    Args:
        asked: what identifies the translation.
        translation: whose attention.
        what: which heads, and how they are read and coloured.
        make: makes the tiles.
    """
    return _store("overviews").get((asked, id(translation), what), make)


def whole(translation: Translation, kind: str, chosen: Head) -> tuple[np.ndarray, np.ndarray]:
    """Weights and mask of a whole head (queries, keys), for a pooled overview of a long sentence."""
    assert translation.attention is not None
    trace = translation.attention
    return trace.weights(kind, *chosen), trace.mask(kind, *chosen)


def statistics(asked: Request, translation: Translation, kind: str) -> Grid:
    """Statistics of every head of a kind over this sentence, by layer and head."""

    def make() -> Grid:
        parts = output_projections(translator(asked.model).model) if has_model(asked.model) else None
        return grid(sentence_totals(translation, AttentionKind(kind), parts))

    return _store("statistics").get((asked, id(translation), kind), make)


def batch(name: str, texts: tuple[str, ...]) -> tuple[BatchEntry, ...]:
    """Several sentences translated as one padded batch.

    Raises:
        ValueError: a text is empty or too long.
    """
    model = translator(name)
    texts = tuple(addressed(name, text, None) for text in texts)
    for text in texts:
        if (length := len(model.ids(text)) + 1) > LONGEST_IN_BATCH:
            raise ValueError(
                f"A sentence of the batch has {length:,} tokens; at most {LONGEST_IN_BATCH} fit in here."
            )
    key = (name, id(model), texts)
    return _store("batches").get(key, lambda: run_batch(model, texts))
