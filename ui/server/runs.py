"""Translations and values read from them, computed once and then kept."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import NamedTuple, Protocol
from weakref import WeakKeyDictionary

import numpy as np

import transformer
from figures import Tile
from lenses.words.alignment import Aligner
from lenses.words.familiarity import Doubtful, read_measure, traits_of
from linked import view as linked_view
from linked.view import WordAlignment, tell
from transformer.decode.rules import SearchRules
from transformer.hub.settings import is_hosted
from transformer.interventions import Intervention, InterventionError, write_text
from transformer.model.sites import AttentionKind, Head
from transformer.runs.translation import DecodeStep, Translation
from transformer.text.typed import clean
from ui.address import session
from ui.address.kinds import BEAM, SAMPLE
from ui.address.state import State
from ui.server import catalogue, examples, imported, measured
from ui.server.background.run import turns
from ui.server.catalogue import addressed, exists, facts, has_model, languages, sizes, translator
from ui.server.hosting import hosted
from ui.server.stores import Model, kept

TEMPERATURE = 0.8
LONG_SEARCH = 2_000
"""Hypotheses × most tokens of the output up to which a search starts at once."""
_followed: WeakKeyDictionary[Translation, dict[Head, Sequence[int]]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Drawing:
    """Settings for drawing the next token, apart from the seed."""

    temperature: float = TEMPERATURE  # divides the logits
    top_k: int | None = None  # only the k most probable tokens are drawn; None for all
    top_p: float | None = None  # only the fewest tokens whose probabilities reach p are drawn; None for all

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

    model: str  # the name of the model
    text: str  # the sentence
    decode: str  # `greedy`, `beam-4`, `sample-7`
    target: str | None  # the visitor's own translation, or None
    changes: tuple[Intervention, ...] = ()  # what is changed in the run
    drawing: Drawing = USUAL  # how a sample is drawn; the usual one for every other way of decoding

    @property
    def trace(self) -> str:
        """A short name of the translation, which figures, events and the view use to match each other."""
        given = self.target or "", str(self.target is None), write_text(self.changes), str(self.drawing)
        parts = "\0".join((self.model, self.text, self.decode, *given))
        return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def request(state: State, model: str, text: str) -> Request:
    """The translation that a state asks for."""
    target = None if state.target is None else clean(state.target)
    source = addressed(model, clean(text), state.language)
    drawing = drawing_of(state) if state.decode.startswith(SAMPLE) else USUAL
    return Request(model, source, state.decode, target, state.changes, drawing)


def drawing_of(state: State) -> Drawing:
    """Settings with which a state draws samples."""
    return Drawing(state.temperature, state.top_k, state.top_p)


class Progress(Protocol):
    """Hears how a translation progresses."""

    def loads(self) -> None:
        """The model is not in memory, and is loaded first."""

    def waits(self, before: int) -> None:
        """Other long work goes on, and this waits for its turn, with `before` others before it."""

    def wrote(self, count: int, token: str) -> None:
        """The output has `count` tokens so far, and `token` is the last one."""


class NoProgress:
    """The progress of a translation that nobody watches."""

    def loads(self) -> None:
        """Tells nobody."""

    def waits(self, before: int) -> None:
        """Tells nobody."""

    def wrote(self, count: int, token: str) -> None:
        """Tells nobody."""


def translate(
    asked: Request,  # what to translate, and how
    progress: Progress,  # hears now and then how far the translation has come
) -> Translation:
    """The translation, decoded once and then kept; before PyTorch is there, the bundled one of the example.

    Raises:
        ValueError: the text cannot be translated; the message says why.
    """
    if has_model(asked.model) and not catalogue.loading().done and (shipped := _shipped(asked)) is not None:
        return shipped
    return traced(asked, progress)


def traced(asked: Request, progress: Progress) -> Translation:
    """The translation with its whole trace, which only a model or a file has; further as `translate`."""
    hosted.check_texts(asked.text, asked.target)
    hosted.check_search(asked.decode)
    if not has_model(asked.model):
        return imported.run_of(asked.model, asked.text, asked.decode, asked.target, asked.changes)
    if not catalogue.find(asked.model).resident:
        progress.loads()
    model = catalogue.model(asked.model)

    def make() -> Translation:
        start = time.perf_counter()
        made = _decode(model, asked, progress)
        took = round(1000 * (time.perf_counter() - start))
        hosted.log("translated", model=asked.model, tokens=len(made.target_tokens), ms=took)
        return made

    return kept("translations").get((asked, id(model)), make)


def _shipped(asked: Request) -> Translation | None:
    """The run that is bundled with the model; None if it is not what is asked for."""
    if asked != Request(asked.model, examples.examples(asked.model)[0].text, "greedy", None):
        return None
    return measured.beside(asked.model, measured.first)


def _decode(model: Model, asked: Request, progress: Progress) -> Translation:
    if asked.target is not None:
        return model.force(asked.text, asked.target, interventions=asked.changes)
    beam_size = int(asked.decode.removeprefix(BEAM)) if asked.decode.startswith(BEAM) else 1
    if beam_size > 1 and isinstance(model, transformer.Translator):
        return search(model, asked, model.rules, progress)
    sample = None
    if asked.decode.startswith(SAMPLE):
        sample = asked.drawing.sampling(int(asked.decode.removeprefix(SAMPLE)))
    return _last(model.stream(asked.text, beam_size, sample=sample, interventions=asked.changes), progress)


class Bettered(NamedTuple):
    """A translation by beam search that scores higher than the greedy one."""

    text: str
    score: float  # of the beam's translation, and of the greedy one, in nats
    greedy: float


def by_beam(asked: Request, greedy: Translation, size: int) -> Bettered | None:
    """What a beam finds beyond a greedy translation, searched once; None if nothing.

    Only a model in memory is asked: nothing waits for this. A hosted server does not search unasked: it would
    spend on it what visitors wait for.
    """
    usual = asked == Request(asked.model, asked.text, "greedy", None) and has_model(asked.model)
    long = size * len(greedy.target_tokens) > LONG_SEARCH
    if long or not usual or is_hosted() or not catalogue.find(asked.model).resident:
        return None
    model = catalogue.model(asked.model)
    if not isinstance(model, transformer.Translator):
        return None

    def score(run: Translation) -> float:
        return model.rules.score(sum(step.log_prob for step in run.steps), len(run.steps))

    def make() -> Bettered | None:
        found = model.translate(asked.text, size, capture=False)
        told = Bettered(found.text, score(found), score(greedy))
        return told if found.text != greedy.text and told.score > told.greedy else None

    better: Bettered | None = kept("bettered").get((asked, id(model), size), make)
    return better


def search(
    model: transformer.Translator,  # the translator
    asked: Request,  # a request without a target, decoded with a beam
    rules: SearchRules,  # the model's, or with another score
    progress: Progress,  # hears how far it has come
) -> Translation:
    """A beam search with its tree; `progress` ends it by raising, as Streamlit does once the visitor left."""
    beam_size = int(asked.decode.removeprefix(BEAM))
    with _turn(beam_size * model.limit(len(model.ids(asked.text)) + 1), progress):
        stream = model.stream(
            asked.text,
            beam_size,
            interventions=asked.changes,
            length_penalty=rules.length_penalty,
            tree=True,
            length_offset=rules.length_offset,
        )
        return _last(stream, progress)


def _turn(tokens: int, progress: Progress) -> AbstractContextManager[None]:
    """Waits for a turn among the work in the background if a search may look at many tokens."""
    return (
        turns().turn(object(), progress.waits, session.browser()) if tokens > LONG_SEARCH else nullcontext()
    )


def _last(stream: Iterator[DecodeStep | Translation], progress: Progress) -> Translation:
    for count, step in enumerate(stream, start=1):
        if isinstance(step, Translation):
            return step
        progress.wrote(count, step.token)
    raise AssertionError("a stream ends with the translation")


def refusal(
    asked: Request,  # a request with changes
) -> str | None:
    """Why a changed run cannot be made, in one sentence; None if its first step can."""
    model = catalogue.model(asked.model)

    def why() -> str | None:
        try:
            if asked.target is not None:
                model.force(asked.text, asked.target, capture=False, interventions=asked.changes)
            else:
                next(model.stream(asked.text, 1, capture=False, interventions=asked.changes))
        except ValueError as error:
            return str(error)
        return None

    return kept("refusals").get((asked, id(model)), why)


def forced(
    asked: Request,  # a request with changes
    base: Translation,  # the run whose translation is read
) -> Translation | None:
    """The changed model on the translation of another run; None if a change contradicts that translation."""
    model = translator(asked.model)

    def make() -> Translation:
        return model.force(asked.text, base.target_ids, interventions=asked.changes)

    try:
        found: Translation = kept("translations").get((asked, id(model), base.target_ids), make)
    except InterventionError:
        return None
    return found


def default_head(name: str, kind: str) -> Head:
    """The head that opens first: from `heads.json`, otherwise measured on a few sentences."""
    known = name if has_model(name) else imported.find(name).translation.model
    chosen = first_choice(known).get(kind) if exists(known) else None
    layers, heads = sizes(name)[kind]
    if chosen is None:
        return layers - 1, 0
    return min(int(chosen[0]), layers - 1), min(int(chosen[1]), heads - 1)


def first_choice(name: str) -> dict[str, Head]:
    """The heads that open first, by kind: from `heads.json`, otherwise measured once on the examples."""
    if (known := facts(name).get("default")) is not None:
        return known
    model, (language, *_) = catalogue.model(name), (*languages(name), None)
    from lab.heads.first_heads import first_heads  # PyTorch is there, as the model is

    texts = [addressed(name, text, language) for text in examples.offered(name).values()]
    return kept("first heads").get((name, id(model)), lambda: first_heads(model, texts))


def lengths(translation: Translation, kind: str) -> tuple[int, int]:
    """Rows and columns of the whole map of a kind."""
    site = translation.config.sites[AttentionKind(kind)]
    return len(translation.tokens(site.query_side)), len(translation.tokens(site.key_side))


def followed(translation: Translation, chosen: Head) -> Sequence[int]:
    """For each step, the source token that a cross-attention head attends to most, except `</s>`."""
    known = _followed.setdefault(translation, {})
    if chosen not in known:
        known[chosen] = linked_view.followed(translation.weights("cross", *chosen))
    return known[chosen]


def aligner(name: str) -> Aligner:
    """The best aligner that `heads.json` names, otherwise the head of cross-attention that opens first."""
    known = facts(name).get("aligner")
    if known is None:
        return Aligner((default_head(name, "cross"),), "predicted")
    return Aligner(tuple((layer, head) for layer, head in known["heads"]), known["rows"])


def told(asked: Request, translation: Translation) -> WordAlignment:
    """Glosses by the best aligner, and the step at which the head that opens first agrees with it."""

    def make() -> WordAlignment:
        return tell(translation, aligner(asked.model), default_head(asked.model, "cross"))

    if AttentionKind.CROSS not in translation.config.sites:
        return WordAlignment()
    return kept("told").get((asked, id(translation)), make)


def doubted(asked: Request, translation: Translation) -> Doubtful | None:
    """Why a translation is doubted; None if it is not, or if nobody measured when to doubt the model.

    Raises:
        ValueError: the model's file is damaged.
    """
    if not has_model(asked.model):
        return None
    return kept("doubted").get((asked, id(translation)), lambda: _doubted(asked, translation))


def _doubted(asked: Request, translation: Translation) -> Doubtful | None:
    measure = measured.beside(asked.model, read_measure)
    if measure is None:
        return None
    log_probs = translation.log_probs
    if translation.method != "greedy" or translation.interventions:
        log_probs = translator(asked.model).translate(asked.text, beam_size=1, capture=False).log_probs
    traits = traits_of(asked.text, translation.source_tokens[:-1], log_probs)
    return Doubtful(traits, measure) if measure.doubts(traits) else None


def overview(
    asked: Request, translation: Translation, what: Hashable, make: Callable[[], list[list[Tile]]]
) -> list[list[Tile]]:
    """All heads of a kind, pooled for one tiled map, made once and then kept.

    Args:
        asked: the request that identifies the translation.
        translation: whose attention.
        what: which heads, and how to read and colour them.
        make: makes the tiles.
    """
    return kept("overviews").get((asked, id(translation), what), make)


def whole(translation: Translation, kind: str, chosen: Head) -> tuple[np.ndarray, np.ndarray]:
    """Weights and mask of a whole head (queries, keys), for a pooled overview of a long sentence."""
    return translation.weights(kind, *chosen), translation.mask(kind, *chosen)
