"""Translations and values read from them, computed once and then kept."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Hashable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import transformer
from explorer.app.address import session
from explorer.app.address.kinds import BEAM, SAMPLE
from explorer.app.address.state import State
from explorer.app.server import examples, hosted, models
from explorer.app.server.models import Imported
from explorer.app.server.queue import place, turns
from explorer.app.server.source import NOBODY, Progress, Source
from explorer.app.server.stores import Recent, bytes_of, remembered
from explorer.figures.base import labels
from explorer.linked.view import strips
from transformer.config import AttentionKind, Head
from transformer.exports.maps import MappedRun, load_maps
from transformer.interventions import Intervention, write_text
from transformer.run import DecodeStep, Translation
from transformer.storage.description import model_digests
from transformer.text.typed import clean

if TYPE_CHECKING:  # the first picture is drawn without PyTorch
    from transformer.decoding import SearchRules
    from transformer.translator import Translator

TEMPERATURE = 0.8
MORE, LONGEST = 40, 200
"""Most tokens that a language model writes after a prompt, and of a text that a visitor gives
it."""
LONG_SEARCH = 2_000
"""Hypotheses × most tokens of the output up to which a search starts at once."""
_runs = Recent[Translation](64, bytes_of)
_texts = Recent[str](4096)
_followed: WeakKeyDictionary[Translation, dict[Head, Sequence[int]]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Drawing:
    """Settings for drawing the next token, apart from the seed."""

    temperature: float = TEMPERATURE  # divides the logits
    top_k: int | None = None  # only the k most probable tokens are drawn; None for all
    top_p: float | None = (
        None  # only the fewest tokens whose probabilities reach p are drawn; None for all
    )

    def sampling(self, seed: int = 0) -> transformer.Sampling:
        """The settings of the package."""
        return transformer.Sampling(self.temperature, self.top_k, self.top_p, seed)

    def __str__(self) -> str:
        top_k = "" if self.top_k is None else f", top-k {self.top_k:,}"
        top_p = "" if self.top_p is None else f", top-p {self.top_p:g}"
        return f"temperature {self.temperature:g}{top_k}{top_p}"


USUAL = Drawing()


@dataclass(frozen=True)
class Request:
    """Identity of a translation."""

    source: Source  # the model, or the open file
    text: str  # the sentence
    decode: str  # `greedy`, `beam-4`, `sample-7`
    target: str | None  # the visitor's own translation, or None
    changes: tuple[Intervention, ...] = ()  # what is changed in the run
    drawing: Drawing = USUAL  # how a sample is drawn; the usual one for every other way of decoding

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.source.name

    @property
    def identity(self) -> tuple[Hashable, ...]:
        """The request, and the model as it was loaded last."""
        return self, id(self.source.load())

    @property
    def trace(self) -> str:
        """A short name of the translation, which figures, events and the view use to match each
        other."""
        changes = write_text(self.changes) if self.changes else ""
        given = self.target or "", str(self.target is None), changes, str(self.drawing)
        parts = "\0".join((self.source.name, self.text, self.decode, *given))
        return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def request(state: State, source: Source, text: str) -> Request:
    """The translation that a state asks for."""
    target = None if state.target is None else clean(state.target)
    read = source.addressed(clean(text), state.language)
    drawing = drawing_of(state) if state.decode.startswith(SAMPLE) else USUAL
    return Request(source, read, state.decode, target, state.changes, drawing)


def drawing_of(state: State) -> Drawing:
    """Settings with which a state draws samples."""
    return Drawing(state.temperature, state.top_k, state.top_p)


def translate(request: Request, progress: Progress = NOBODY, whole: bool = False) -> Translation:
    """The translation, decoded once and then kept; before PyTorch is there, the bundled one of the
    example, unless the whole trace is wanted, which only a model or a file has.

    ValueError if the text cannot be translated; the message says why.
    """
    source = request.source
    if source.has_model and not (whole or models.loading.done):
        first = examples.of(source).examples[0].text
        if request == Request(source, first, "greedy", None) and (
            shipped := source.beside(shipped_run)
        ):
            return shipped
    hosted.check(request.text, request.target, decode=request.decode)
    if isinstance(source, Imported):
        return source.run_of(request)
    model = source.load(progress)
    return _runs.get((request, id(model)), lambda: _decode(model, request, progress))


def text_of(request: Request, progress: Progress | None = None) -> str | None:
    """The translation without its trace; None if it is not known, and no progress lets it be
    made."""
    hosted.check(request.text, decode=request.decode)
    model = request.source.load()
    if (key := (request, id(model))) in _runs:
        return translate(request, whole=True).text
    if progress is None and key not in _texts:
        return None
    return _texts.get(key, lambda: _decode(model, request, progress or NOBODY, capture=False).text)


def shipped_run(directory: Path) -> MappedRun | None:
    """The first example as the model of a directory translated it: a cold server draws it at once.

    None if `python -m explorer survey` was not run with this very model.
    """
    with suppress(OSError, ValueError, KeyError):
        run = load_maps(directory / "first.npz")
        return run if model_digests(directory) == run.digests else None
    return None


def _decode(
    model: Translator, request: Request, progress: Progress, capture: bool = True
) -> Translation:
    """The translation, made now; on a hosted instance, one with its trace is noted."""
    begun = time.perf_counter()
    if (
        request.decode.startswith(BEAM)
        and request.target is None
        and capture
        and not model.continues
    ):
        run = search(model, request, model.rules, progress)
    else:
        run = _last(_stream(model, request, capture), progress)
    if capture:
        took = round(1000 * (time.perf_counter() - begun))
        hosted.log("translated", model=request.source.name, tokens=len(run.target_tokens), ms=took)
    return run


def _stream(
    model: Translator,
    request: Request,
    capture: bool,
    rules: SearchRules | None = None,  # how a beam scores; with it, the run has its tree
) -> Iterator[DecodeStep | Translation]:
    """The steps of a run and the run; only this one if its output is given."""
    how: dict[str, Any] = {"capture": capture, "interventions": request.changes}
    if model.continues and (count := len(model.ids(request.target or request.text))) > LONGEST:
        raise ValueError(f"The text has {count:,} tokens; this page reads at most {LONGEST}.")
    if request.target is not None:
        texts = (request.target,) if model.continues else (request.text, request.target)
        return iter([model.force(*texts, **how)])
    way, _, number = request.decode.partition("-")
    if way == SAMPLE.removesuffix("-"):
        how["sample"] = request.drawing.sampling(int(number))
    if rules is not None:
        how |= {
            "length_penalty": rules.length_penalty,
            "length_offset": rules.length_offset,
            "tree": True,
        }
    if model.continues:
        how["max_length"] = min(count + MORE, model.config.max_positions)
    return model.stream(request.text, beam_size=int(number) if f"{way}-" == BEAM else 1, **how)


def search(
    model: Translator,
    request: Request,  # a request without a target, decoded with a beam
    rules: SearchRules,  # the model's, or with another score
    progress: Progress = NOBODY,  # hears how far it has come
) -> Translation:
    """A beam search with its tree; `progress` ends it by raising, as Streamlit does once the
    visitor left."""
    beam_size = int(request.decode.removeprefix(BEAM))
    from transformer import requests  # PyTorch is there, as the model is

    limit = requests.Request(model, request.text, interventions=request.changes).limit
    with ExitStack() as turn:
        if beam_size * limit > LONG_SEARCH:
            waits = lambda before: progress(0, place(before))  # noqa: E731
            turn.enter_context(turns.turn(object(), waits, session.browser()))
        return _last(_stream(model, request, True, rules), progress)


def so_far(count: int, token: str) -> tuple[float, str]:
    """How far an output of some tokens has come, as a share and in words; no one knows its
    length."""
    text = f"{count} token{'s' * (count != 1)} so far, the last one {labels.piece(token)}"
    return min(0.98, 1 - 0.98**count), text


def _last(stream: Iterator[DecodeStep | Translation], progress: Progress) -> Translation:
    for count, step in enumerate(stream, start=1):
        if isinstance(step, Translation):
            return step
        progress(*so_far(count, step.token))
    raise AssertionError("a stream ends with the translation")


@remembered(256)
def refusal(request: Request) -> str | None:
    """Why a changed run cannot be made, in one sentence; None if its first step can."""
    try:
        next(_stream(request.source.load(), replace(request, decode="greedy"), capture=False))
    except ValueError as error:
        return str(error)
    return None


def lengths(translation: Translation, kind: str) -> tuple[int, int]:
    """Rows and columns of the whole map of a kind."""
    site = translation.config.sites[AttentionKind(kind)]
    return len(translation.tokens(site.query_side)), len(translation.tokens(site.key_side))


def followed(translation: Translation, chosen: Head) -> Sequence[int]:
    """For each step, the source token that a cross-attention head attends to most, except
    `</s>`."""
    known = _followed.setdefault(translation, {})
    if chosen not in known:
        known[chosen] = strips.followed(translation.weights("cross", *chosen))
    return known[chosen]
