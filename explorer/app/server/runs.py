"""Translations and values read from them, computed once and then kept."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from explorer.app.address import session
from explorer.app.address.kinds import BEAM, SAMPLE
from explorer.app.server import examples, hosted, models
from explorer.app.server.models import OpenFile
from explorer.app.server.queue import place, turns
from explorer.app.server.run_key import RunKey
from explorer.app.server.source import NOBODY, Progress
from explorer.app.server.stores import Recent, bytes_of, remembered
from explorer.figures.base import labels
from explorer.linked.view import strips
from transformer.config import AttentionKind, Head
from transformer.exports.maps import MappedRun, load_maps
from transformer.run import DecodeStep, Translation
from transformer.storage.description import model_digests
from transformer.text import words
from transformer.text.chat import Message

if TYPE_CHECKING:  # the first picture is drawn without PyTorch
    from transformer.decoding import SearchRules
    from transformer.requests import Options
    from transformer.translator import Translator

LONGEST = 1_024
"""Most tokens of a text that is continued or read, as of a source."""
SHOWN = 160
"""Most letters of an output that is being written which are shown."""
LONG_SEARCH = 2_000
"""Hypotheses × most tokens of the output up to which a search starts at once."""
_runs = Recent[Translation](64, bytes_of)
_texts = Recent[str](4096)
_followed: WeakKeyDictionary[Translation, dict[Head, Sequence[int]]] = WeakKeyDictionary()


def translate(run_key: RunKey, progress: Progress = NOBODY, whole: bool = False) -> Translation:
    """The translation, decoded once and then kept; before PyTorch is there, the bundled one of the
    example, unless the whole trace is wanted, which only a model or a file has.

    ValueError if the text cannot be translated; the message says why.
    """
    source = run_key.source
    if source.has_model and not (whole or models.loading.done):
        first = examples.of(source).examples[0].text
        if run_key == RunKey(source, first, "greedy", None) and (
            shipped := source.beside(shipped_run)
        ):
            return shipped
    hosted.check(run_key.text, run_key.target, decode=run_key.decode)
    if isinstance(source, OpenFile):
        return source.run_of(run_key)
    model = source.load(progress)
    return _runs.get((run_key, id(model)), lambda: _decode(model, run_key, progress))


def text_of(run_key: RunKey, progress: Progress | None = None) -> str | None:
    """The translation without its trace.

    None if it is not known, and no progress lets it be made.
    """
    hosted.check(run_key.text, decode=run_key.decode)
    model = run_key.source.load()
    if (key := (run_key, id(model))) in _runs:
        return translate(run_key, whole=True).text
    if progress is None and key not in _texts:
        return None
    return _texts.get(key, lambda: _decode(model, run_key, progress or NOBODY, capture=False).text)


def shipped_run(directory: Path) -> MappedRun | None:
    """The first example as the model of a directory translated it: a cold server draws it at once.

    None if `python -m explorer survey` was not run with this very model.
    """
    with suppress(OSError, ValueError, KeyError):
        run = load_maps(directory / "first.npz")
        return run if model_digests(directory) == run.digests else None
    return None


def _decode(
    model: Translator, run_key: RunKey, progress: Progress, capture: bool = True
) -> Translation:
    """The translation, made now; on a hosted instance, one with its trace is noted."""
    begun = time.perf_counter()
    if run_key.decode.startswith(BEAM) and run_key.target is None and capture:
        run = search(model, run_key, model.rules, progress)
    else:
        run = _last(_stream(model, run_key, capture), progress)
    if capture:
        took = round(1000 * (time.perf_counter() - begun))
        hosted.log("translated", model=run_key.source.name, tokens=len(run.target_tokens), ms=took)
    return run


def _stream(
    model: Translator,
    run_key: RunKey,
    capture: bool,
    rules: SearchRules | None = None,  # how a beam scores; with it, the run has its tree
) -> Iterator[DecodeStep | Translation]:
    """The steps of a run and the run; only this one if its output is given."""
    how: dict[str, Any] = {"capture": capture, "interventions": run_key.changes}
    if not model.config.writes:
        return model.stream(run_key.text, **how)
    if run_key.target is not None:
        return iter([model.force(run_key.text, run_key.target, **how)])
    way, _, number = run_key.decode.partition("-")
    if way == SAMPLE.removesuffix("-"):
        how["sample"] = run_key.drawing.sampling(int(number))
    if rules is not None:
        how |= {
            "length_penalty": rules.length_penalty,
            "length_offset": rules.length_offset,
            "tree": True,
        }
    beam_size = int(number) if f"{way}-" == BEAM else 1
    how |= longest(model, run_key)
    if not run_key.chat:
        return model.stream(run_key.text, beam_size=beam_size, **how)
    steps = model.stream(typed(model, run_key), beam_size=beam_size, **how)
    return (_with_roles(model, step, run_key) for step in steps)


def _with_roles(
    model: Translator, step: DecodeStep | Translation, run_key: RunKey
) -> DecodeStep | Translation:
    return model.with_roles(step, _turns(run_key)) if isinstance(step, Translation) else step


def _turns(run_key: RunKey) -> list[Message]:
    return [{"role": "user", "content": run_key.text}]


def typed(model: Translator, run_key: RunKey) -> str:
    """The text that a model reads: as it was typed, or as a turn of a conversation."""
    return model.prompted(_turns(run_key)) if run_key.chat else run_key.text


def longest(model: Translator, run_key: RunKey) -> Options:
    """The option that limits what follows a text; none for a translation, whose model limits it.

    ValueError if the text alone is too long.
    """
    if not model.continues:
        return {}
    given = model.prompt_steps(typed(model, run_key))
    if given > LONGEST:
        raise ValueError(f"The text has {given:,} tokens; this page reads at most {LONGEST:,}.")
    return {"max_length": min(given + run_key.write, model.config.max_positions)}


def search(
    model: Translator,
    run_key: RunKey,  # of a run without a target, decoded with a beam
    rules: SearchRules,  # the model's, or with another score
    progress: Progress = NOBODY,  # hears how far it has come
) -> Translation:
    """A beam search with its tree.

    `progress` ends it by raising, as Streamlit does once the visitor left.
    """
    beam_size = int(run_key.decode.removeprefix(BEAM))
    from transformer import requests  # PyTorch is there, as the model is

    options = longest(model, run_key)
    text = typed(model, run_key)
    options["interventions"] = run_key.changes
    limit = requests.Request(model, text, **options).limit
    with ExitStack() as turn:
        if beam_size * limit > LONG_SEARCH:

            def waits(before: int) -> None:
                progress(0, place(before))

            turn.enter_context(turns.turn(object(), waits, session.browser()))
        return _last(_stream(model, run_key, True, rules), progress)


def so_far(pieces: Sequence[str]) -> tuple[float, str]:
    """How far an output has come, as a share and in words, with its end.

    No one knows its length.
    """
    end = words.spelled(pieces[-SHOWN:])  # no more, since each step asks
    if len(pieces) > SHOWN or len(end) > SHOWN:
        end = f"…{end[1 - SHOWN :]}"
    share = min(0.98, 1 - 0.98 ** len(pieces))
    return share, f"{labels.counted(len(pieces), 'token')} so far: {end}"


def _last(stream: Iterator[DecodeStep | Translation], progress: Progress) -> Translation:
    pieces = list[str]()
    for step in stream:
        if isinstance(step, Translation):
            return step
        pieces.append(step.token)
        progress(*so_far(pieces))
    raise AssertionError("a stream ends with the translation")


@remembered(256)
def refusal(run_key: RunKey) -> str | None:
    """Why a changed run cannot be made, in one sentence; None if its first step can."""
    try:
        next(_stream(run_key.source.load(), replace(run_key, decode="greedy"), capture=False))
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
