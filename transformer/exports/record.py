"""A run without its arrays: tokens, steps and provenance as JSON values, checked on reading."""

import re
import sys
import unicodedata
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, astuple, replace
from functools import partial
from typing import Any

from transformer.config import config_from
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

Reader = Callable[[Any], Any]
"""Checks a JSON value; TraceFileError, ValueError, KeyError or TypeError for one that no run
has."""


class TraceFileError(ValueError):
    """A file cannot be opened; the message says what is wrong with the file."""


def _value(kind: Kind, value: Any) -> Any:
    """The value; TraceFileError if it is of another kind."""
    if not kind.holds(value):
        raise TraceFileError(f"The file holds something else where {kind.said} belongs.")
    return value


def _text(longest: int, value: Any, pattern: str = r"(?s:.*)", wrong: str = "") -> str:
    """A text that UTF-8 can hold; TraceFileError with the sentence ``wrong`` if it has another
    form."""
    _value(Kind("a text", lambda text: isinstance(text, str) and len(text) <= longest), value)
    value.encode("utf-8")
    if not re.fullmatch(pattern, value):
        raise TraceFileError(wrong)
    return str(value)


def _list(item: Reader, most: int, values: Any) -> tuple[Any, ...]:
    kind = Kind(
        f"a list of at most {most:,}", lambda many: isinstance(many, list) and len(many) <= most
    )
    return tuple(map(item, _value(kind, values)))


number = partial(_value, kinds.number(-sys.float_info.max, sys.float_info.max))
"""A finite number."""
_whole = partial(_value, kinds.whole(0, most=2**31 - 1))
_log_prob = partial(_value, kinds.number(-sys.float_info.max, 1e-3))


def _alternative(values: Any) -> Alternative:
    token, token_id, log_prob = values
    return Alternative(_TOKEN(token), _whole(token_id), _log_prob(log_prob))


def _step(values: Any) -> DecodeStep:
    known = {name: read(values[name]) for name, read in _STEP.items()}
    excluded = _list(_whole, MOST_ALTERNATIVES, values.get("excluded", []))
    several = enumerate(known.pop("alternatives"))
    alternatives = tuple(replace(each, excluded=place in excluded) for place, each in several)
    return DecodeStep(
        **known, alternatives=alternatives, forced=values.get("forced", False) is True
    )


_TOKEN, _NAME, _TEXT = (partial(_text, longest) for longest in (1_000, 200, 200_000))
_METHODS = r"greedy|forced|beam-\d{1,3}|sample-\d{1,10}"
_METHOD = partial(
    _NAME, pattern=_METHODS, wrong="The file names a way of decoding that does not exist."
)
_NO_DIGEST = "The file's digest of the model is not a valid digest."
_DIGEST = partial(_text, 64, pattern="[0-9a-f]{64}", wrong=_NO_DIGEST)
_TOKENS = partial(_list, _TOKEN, MOST_TOKENS)
_STEP: dict[str, Reader] = {
    "token": _TOKEN,
    "token_id": _whole,
    "log_prob": _log_prob,
    "parent": _whole,
}
_STEP["alternatives"] = partial(_list, _alternative, MOST_ALTERNATIVES)
_RUN: dict[str, Reader] = {
    "source_text": _TEXT,
    "text": _TEXT,
    "source_tokens": _TOKENS,
    "decoder_input_tokens": _TOKENS,
    "target_tokens": _TOKENS,
    "steps": partial(_list, _step, MOST_TOKENS),
    "method": _METHOD,
    "model": _NAME,
    "model_sha256": lambda value: None if value is None else _DIGEST(value),
    "config": config_from,
    "notes": partial(_list, _TEXT, MOST_ALTERNATIVES),
}
"""What a file holds of a run: fields of ``Translation``, and how each is read."""


def run_to_dict(run: Translation) -> dict[str, Any]:
    """Everything about a run except its arrays, as JSON values."""
    values = {name: getattr(run, name) for name in _RUN}
    values |= {
        "config": asdict(run.config),
        "interventions": to_json(run.interventions),
        "steps": [],
    }
    sides = {"source": run.source_tokens, "target": run.target_tokens}
    values["special"] = {
        side: [place for place, token in enumerate(tokens) if is_special(token)]
        for side, tokens in sides.items()
    }
    for step in run.steps:
        excluded = [place for place, each in enumerate(step.alternatives) if each.excluded]
        known = vars(step) | {
            "alternatives": [astuple(alternative)[:3] for alternative in step.alternatives]
        }
        values["steps"].append(known | ({"excluded": excluded} if excluded else {}))
    return values


def run_from_dict(values: Any) -> Translation:
    """The translation that ``run_to_dict`` wrote, without attention.

    TraceFileError if its parts contradict each other; ValueError, KeyError or TypeError if one is
    missing or of a wrong type or value.
    """
    known = {name: read(values[name]) for name, read in _RUN.items()}
    run = Translation(**known, log_probs=tuple(step.log_prob for step in known["steps"]))
    source, target, reads = run.source_tokens, run.target_tokens, run.decoder_input_tokens
    if not source or not target or len(reads) != len(target) or reads[1:] != target[:-1]:
        raise TraceFileError("The file's tokens contradict each other.")
    if tuple(step.token for step in run.steps) != target:
        raise TraceFileError("The file's steps and its target tokens contradict each other.")
    try:
        changes = from_json(values.get("interventions", []))
        n_source = len(source) + sum(isinstance(each, DropSource) for each in changes)
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
    source, target, config = run.source_tokens, run.target_tokens, run.config
    ids = {config.pad_id, config.bos_id, config.eos_id, config.unk_id}
    if places is None:
        read = {place for place, token in enumerate(source[:2]) if token in config.language_pieces}
        read |= {len(source) - 1} if source[-1] == EOS else set()
        written = {place for place, number in enumerate(run.target_ids) if number in ids}
    else:
        read, written = (
            set(_list(_whole, MOST_TOKENS, places[side])) for side in ("source", "target")
        )
    ids |= {number for place, number in enumerate(run.target_ids) if place in written}
    tokens = _special(target, written)
    steps = tuple(
        replace(
            step,
            token=token,
            alternatives=tuple(
                replace(alternative, token=Special(alternative.token))
                if alternative.token_id in ids
                else alternative
                for alternative in step.alternatives
            ),
        )
        for step, token in zip(run.steps, tokens, strict=True)
    )
    reads = Special(run.decoder_input_tokens[0]), *tokens[:-1]
    return replace(
        run,
        source_tokens=_special(source, read),
        target_tokens=tokens,
        decoder_input_tokens=reads,
        steps=steps,
    )


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
    for part, words in ((pieces, text), (bare, unnamed)):
        spelled = b"".join(raw(piece) for piece in part if piece not in (PAD, BOS, EOS, NO_PIECE))
        if _letters(spelled.decode("utf-8", "replace")) == _letters(words):
            return True
    return UNK in pieces


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))
