"""A run without its arrays: tokens, steps and provenance as JSON values, checked on reading."""

import re
import sys
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, TypeVar

from transformer.config import ModelConfig, config_from
from transformer.interventions import DropSource, EditSource, InterventionError, from_json, to_json
from transformer.interventions.request import RunShape, check
from transformer.run import Alternative, DecodeStep, Translation
from transformer.text import kinds
from transformer.text.kinds import Kind
from transformer.text.words import (
    BOS,
    EOS,
    NO_PIECE,
    PAD,
    UNK,
    Special,
    is_language,
    is_special,
    raw,
)

MOST_TOKENS = 4_096
MOST_ALTERNATIVES = 100

T = TypeVar("T")
Read = Callable[[Any], T]
"""Checks a JSON value, and makes what a run holds of it; TraceFileError, ValueError, KeyError or
TypeError for one that no run has."""


class TraceFileError(ValueError):
    """A file cannot be opened; the message says what is wrong with the file."""


def _value(kind: Kind, value: T) -> T:
    """The value; TraceFileError if it is of another kind."""
    if not kind.holds(value):
        raise TraceFileError(f"The file holds something else where {kind.said} belongs.")
    return value


def _text(longest: int, value: str, pattern: str = r"(?s:.*)", wrong: str = "") -> str:
    """A text that UTF-8 can hold; TraceFileError with the sentence ``wrong`` if it has another
    form."""
    _value(Kind("a text", lambda text: isinstance(text, str) and len(text) <= longest), value)
    value.encode("utf-8")
    if not re.fullmatch(pattern, value):
        raise TraceFileError(wrong)
    return value


def _list(read: Read[T], most: int, values: object) -> tuple[T, ...]:
    if not isinstance(values, list) or len(values) > most:
        raise TraceFileError(
            f"The file holds something else where a list of at most {most:,} belongs."
        )
    return tuple(map(read, values))


number: Read[float] = partial(_value, kinds.number(-sys.float_info.max, sys.float_info.max))
"""A finite number."""
_whole: Read[int] = partial(_value, kinds.whole(0, most=2**31 - 1))
_log_prob: Read[float] = partial(_value, kinds.number(-sys.float_info.max, 1e-3))
_token = partial(_text, 1_000)
_name = partial(_text, 200)
_long_text = partial(_text, 200_000)
_method = partial(
    _name,
    pattern=r"greedy|forced|beam-\d{1,3}|sample-\d{1,10}",
    wrong="The file names a way of decoding that does not exist.",
)
_digest = partial(
    _text,
    64,
    pattern="[0-9a-f]{64}",
    wrong="The file's digest of the model is not a valid digest.",
)
_tokens: Read[tuple[str, ...]] = partial(_list, _token, MOST_TOKENS)


def _alternative(values: Sequence[Any]) -> Alternative:
    (token, token_id, log_prob) = values
    return Alternative(_token(token), _whole(token_id), _log_prob(log_prob))


def _step(values: Mapping[str, Any]) -> DecodeStep:
    token = _token(values["token"])
    token_id = _whole(values["token_id"])
    log_prob = _log_prob(values["log_prob"])
    parent = _whole(values["parent"])
    alternatives = _list(_alternative, MOST_ALTERNATIVES, values["alternatives"])
    excluded = _list(_whole, MOST_ALTERNATIVES, values.get("excluded", []))
    return DecodeStep(
        token=token,
        token_id=token_id,
        log_prob=log_prob,
        alternatives=tuple(
            replace(alternative, excluded=rank in excluded)
            for rank, alternative in enumerate(alternatives)
        ),
        parent=parent,
        forced=values.get("forced", False) is True,
    )


_FIELDS = (
    "source_text",
    "text",
    "source_tokens",
    "decoder_input_tokens",
    "target_tokens",
    "steps",
    "method",
    "model",
    "model_sha256",
    "config",
    "notes",
)
"""What a file holds of a run, in its order: fields of ``Translation``."""


def _run(values: Mapping[str, Any]) -> Translation:
    """What a file says of a run, each value checked for itself."""
    source_text = _long_text(values["source_text"])
    text = _long_text(values["text"])
    source_tokens = _tokens(values["source_tokens"])
    decoder_input_tokens = _tokens(values["decoder_input_tokens"])
    target_tokens = _tokens(values["target_tokens"])
    steps = _list(_step, MOST_TOKENS, values["steps"])
    digest = values["model_sha256"]
    return Translation(
        source_text=source_text,
        text=text,
        source_tokens=source_tokens,
        decoder_input_tokens=decoder_input_tokens,
        target_tokens=target_tokens,
        log_probs=tuple(step.log_prob for step in steps),
        steps=steps,
        method=_method(values["method"]),
        model=_name(values["model"]),
        model_sha256=None if digest is None else _digest(digest),
        config=config_from(values["config"]),
        notes=_list(_long_text, MOST_ALTERNATIVES, values["notes"]),
    )


def run_to_dict(run: Translation) -> dict[str, Any]:
    """Everything about a run except its arrays, as JSON values."""
    values = {name: getattr(run, name) for name in _FIELDS}
    return values | {
        "config": asdict(run.config),
        "interventions": to_json(run.interventions),
        "steps": list(map(_step_to_dict, run.steps)),
        "special": {
            "source": _special_places(run.source_tokens),
            "target": _special_places(run.target_tokens),
        },
    }


def _special_places(tokens: Sequence[str]) -> list[int]:
    return [place for place, token in enumerate(tokens) if is_special(token)]


def _step_to_dict(step: DecodeStep) -> dict[str, Any]:
    alternatives = [
        (alternative.token, alternative.token_id, alternative.log_prob)
        for alternative in step.alternatives
    ]
    values = vars(step) | {"alternatives": alternatives}
    excluded = [rank for rank, alternative in enumerate(step.alternatives) if alternative.excluded]
    if excluded:
        values["excluded"] = excluded
    return values


def run_from_dict(values: Any) -> Translation:
    """The translation that ``run_to_dict`` wrote, without attention.

    TraceFileError if its parts contradict each other; ValueError, KeyError or TypeError if one is
    missing or of a wrong type or value.
    """
    run = _run(values)
    source = run.source_tokens
    target = run.target_tokens
    reads = run.decoder_input_tokens
    if not source or not target or len(reads) != len(target) or reads[1:] != target[:-1]:
        raise TraceFileError("The file's tokens contradict each other.")
    if tuple(step.token for step in run.steps) != target:
        raise TraceFileError("The file's steps and its target tokens contradict each other.")
    try:
        changes = from_json(values.get("interventions", []))
        n_source = len(source) + sum(isinstance(change, DropSource) for change in changes)
        forced = len(target) if run.method == "forced" else None
        longest = max(run.config.max_positions, len(target))
        check(changes, RunShape(run.config, n_source, len(source), longest, forced))
    except InterventionError as error:
        raise TraceFileError(f"The file's changes do not fit its run: {error}") from error
    whole_source = not any(isinstance(change, DropSource | EditSource) for change in changes)
    if not _spell(target, run.text) or (whole_source and not _spell(source, run.source_text)):
        raise TraceFileError("The file's texts and their tokens contradict each other.")
    return _flagged(replace(run, interventions=changes), values.get("special"))


def _flagged(run: Translation, places: Any) -> Translation:
    """The run whose special pieces are so again: those at the places of the file, by side.

    A file of an earlier version names none: they are what ids and places say, the end of the
    source, a language at its start, and the target's ids that no text is written of.
    """
    if places is None:
        of_source = _guessed_source(run)
        of_target = _guessed_target(run)
    else:
        of_source = set(_list(_whole, MOST_TOKENS, places["source"]))
        of_target = set(_list(_whole, MOST_TOKENS, places["target"]))
    ids = _special_ids(run.config)
    ids |= {number for place, number in enumerate(run.target_ids) if place in of_target}

    def flagged(alternative: Alternative) -> Alternative:
        if alternative.token_id not in ids:
            return alternative
        return replace(alternative, token=Special(alternative.token))

    tokens = _special(run.target_tokens, of_target)
    steps = tuple(
        replace(step, token=token, alternatives=tuple(map(flagged, step.alternatives)))
        for step, token in zip(run.steps, tokens, strict=True)
    )
    return replace(
        run,
        source_tokens=_special(run.source_tokens, of_source),
        target_tokens=tokens,
        decoder_input_tokens=(Special(run.decoder_input_tokens[0]), *tokens[:-1]),
        steps=steps,
    )


def _special_ids(config: ModelConfig) -> set[int]:
    return {config.pad_id, config.bos_id, config.eos_id, config.unk_id}


def _guessed_source(run: Translation) -> set[int]:
    """Places of a source's special pieces, if the file does not say them."""
    languages = run.config.language_pieces
    places = {place for place, token in enumerate(run.source_tokens[:2]) if token in languages}
    if run.source_tokens[-1] == EOS:
        places.add(len(run.source_tokens) - 1)
    return places


def _guessed_target(run: Translation) -> set[int]:
    ids = _special_ids(run.config)
    return {place for place, number in enumerate(run.target_ids) if number in ids}


def _special(pieces: Sequence[str], places: Collection[int]) -> tuple[str, ...]:
    """Pieces of which those at some places are special."""
    return tuple(Special(piece) if place in places else piece for place, piece in enumerate(pieces))


def _spell(pieces: Sequence[str], text: str) -> bool:
    """True if pieces have the letters and digits of a text; `<unk>` stands for any text.

    Vocabularies differ in what they do to spaces, punctuation and forms of letters. A language may
    be named in a text and be a piece of the output, or the other way round.
    """
    bare = [piece for piece in pieces if not is_language(piece)]
    unnamed = " ".join(word for word in text.split() if not is_language(word))
    for spelling, words in ((pieces, text), (bare, unnamed)):
        textual = [piece for piece in spelling if piece not in (PAD, BOS, EOS, NO_PIECE)]
        spelled = b"".join(map(raw, textual)).decode("utf-8", "replace")
        if _letters(spelled) == _letters(words):
            return True
    return UNK in pieces


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))
