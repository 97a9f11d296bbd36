"""A run without its arrays: tokens, steps and provenance as JSON values, checked on reading."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from transformer.config import config_from
from transformer.interventions import (
    DropSource,
    EditSource,
    InterventionError,
    from_json,
    to_json,
)
from transformer.interventions.request import RunShape, check
from transformer.run import Alternative, DecodeStep, Translation
from transformer.storage.packed import ArraysError
from transformer.text.words import BOS, EOS, NO_PIECE, PAD, UNK, is_language, raw

MOST_JSON = 4 * 2**20
"""Most bytes of JSON that this module parses."""
MOST_TOKENS = 4_096
MOST_ALTERNATIVES = 100
LONGEST_NAME = 200
LONGEST_TOKEN = 1_000
LONGEST_TEXT = 200_000
_METHOD = re.compile(r"greedy|forced|beam-\d{1,3}|sample-\d{1,10}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


FOREIGN = "The file is damaged, or this package did not write it."


class TraceFileError(ValueError):
    """A file cannot be opened; the message says what is wrong with the file."""


@contextmanager
def in_one_sentence() -> Iterator[None]:
    """Turns every error that a damaged file raises into a ``TraceFileError``."""
    try:
        yield
    except TraceFileError:
        raise
    except ArraysError as error:
        raise TraceFileError(str(error)) from error
    except Exception as error:  # zip, zlib, NumPy's tokenizer and JSON raise twenty kinds for damaged bytes
        raise TraceFileError(FOREIGN) from error


def write_json(values: dict[str, Any]) -> bytes:
    """Writes strict JSON in UTF-8; TraceFileError if a number is not finite."""
    try:
        return json.dumps(values, ensure_ascii=False, allow_nan=False).encode()
    except ValueError as error:
        raise TraceFileError("The run holds numbers that are not finite, so it cannot be saved.") from error


def read_json(content: bytes) -> dict[str, Any]:
    """An object from strict JSON in UTF-8; ValueError or RecursionError if it is none, or over 4 MiB."""
    if len(content) > MOST_JSON:
        raise TraceFileError(
            f"The file holds more than {MOST_JSON // 2**20} MiB of text, the limit for opening a file."
        )
    values = json.loads(content.decode("utf-8"), parse_constant=number)
    if not isinstance(values, dict):
        raise ValueError("no object")
    return values


def run_to_dict(run: Translation) -> dict[str, Any]:
    """Everything about a run except its arrays, as JSON values."""
    texts = ("source_text", "text", "method", "model", "model_sha256")
    lists = ("source_tokens", "decoder_input_tokens", "target_tokens", "notes")
    return {
        **{name: getattr(run, name) for name in texts},
        **{name: list(getattr(run, name)) for name in lists},
        "steps": [_step_to_dict(step) for step in run.steps],
        "config": run.config.to_dict(),
        "interventions": to_json(run.interventions),
    }


def _step_to_dict(step: DecodeStep) -> dict[str, Any]:
    excluded = [place for place, each in enumerate(step.alternatives) if each.excluded]
    return {
        "token": step.token,
        "token_id": step.token_id,
        "log_prob": step.log_prob,
        "parent": step.parent,
        "forced": step.forced,
        "alternatives": [[each.token, each.token_id, each.log_prob] for each in step.alternatives],
        **({"excluded": excluded} if excluded else {}),
    }


def run_from_dict(values: Any) -> Translation:
    """The translation that ``run_to_dict`` wrote, without attention.

    TraceFileError if its parts contradict each other; ValueError, KeyError or TypeError if one is missing or
    of a wrong type or value.
    """
    source, target = tokens(values["source_tokens"]), tokens(values["target_tokens"])
    reads = tokens(values["decoder_input_tokens"])
    steps = tuple(_step(step) for step in _list(values["steps"], MOST_TOKENS))
    if not source or not target or len(reads) != len(target) or reads[1:] != target[:-1]:
        raise TraceFileError("The file's tokens contradict each other.")
    if tuple(step.token for step in steps) != target:
        raise TraceFileError("The file's steps and its target tokens contradict each other.")
    method, digest = text(values["method"], LONGEST_NAME), values["model_sha256"]
    if not _METHOD.fullmatch(method):
        raise TraceFileError("The file names a way of decoding that does not exist.")
    if digest is not None and not _DIGEST.fullmatch(text(digest, 64)):
        raise TraceFileError("The file's digest of the model is not a valid digest.")
    config = config_from(values["config"])
    try:
        interventions = from_json(values.get("interventions", []))
        left_out = sum(isinstance(each, DropSource) for each in interventions)
        forced, longest = len(target) if method == "forced" else None, max(config.max_positions, len(target))
        check(interventions, RunShape(config, len(source) + left_out, len(source), longest, forced))
    except InterventionError as error:
        raise TraceFileError(f"The file's changes do not fit its run: {error}") from error
    source_text, written = (text(values[name], LONGEST_TEXT) for name in ("source_text", "text"))
    whole_source = not any(isinstance(each, DropSource | EditSource) for each in interventions)
    if not _spell(target, written) or (whole_source and not _spell(source, source_text)):
        raise TraceFileError("The file's texts and their tokens contradict each other.")
    return Translation(
        source_text=source_text,
        text=written,
        source_tokens=source,
        decoder_input_tokens=reads,
        target_tokens=target,
        log_probs=tuple(step.log_prob for step in steps),
        steps=steps,
        method=method,
        model=text(values["model"], LONGEST_NAME),
        model_sha256=digest,
        config=config,
        notes=tuple(text(note, LONGEST_TEXT) for note in _list(values["notes"], MOST_ALTERNATIVES)),
        interventions=interventions,
    )


def _spell(pieces: Sequence[str], written: str) -> bool:
    """True if pieces have the letters and digits of a text; `<unk>` stands for any text.

    Vocabularies differ in what they do to spaces, punctuation and forms of letters. A language may be named
    in a text and be a piece of the output, or the other way round.
    """
    bare = [piece for piece in pieces if not is_language(piece)]
    unnamed = " ".join(word for word in written.split() if not is_language(word))
    both = (_spelled(pieces), _letters(written)), (_spelled(bare), _letters(unnamed))
    return UNK in pieces or any(left == right for left, right in both)


def _spelled(pieces: Sequence[str]) -> str:
    spelled = b"".join(raw(piece) for piece in pieces if piece not in (PAD, BOS, EOS, NO_PIECE))
    return _letters(spelled.decode("utf-8", "replace"))


def _letters(written: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", written).casefold()))


def _step(values: Any) -> DecodeStep:
    excluded = {whole(place) for place in _list(values.get("excluded", []), MOST_ALTERNATIVES)}
    alternatives = (
        Alternative(text(token, LONGEST_TOKEN), whole(token_id), _log_prob(log_prob), place in excluded)
        for place, (token, token_id, log_prob) in enumerate(_list(values["alternatives"], MOST_ALTERNATIVES))
    )
    return DecodeStep(
        token=text(values["token"], LONGEST_TOKEN),
        token_id=whole(values["token_id"]),
        log_prob=_log_prob(values["log_prob"]),
        alternatives=tuple(alternatives),
        parent=whole(values["parent"]),
        forced=values.get("forced", False) is True,
    )


def _log_prob(value: Any) -> float:
    if number(value) > 1e-3:
        raise TraceFileError("The file holds a log-probability above 0.")
    return float(value)


def tokens(values: Any) -> tuple[str, ...]:
    """A list of at most 4,096 tokens."""
    return tuple(text(value, LONGEST_TOKEN) for value in _list(values, MOST_TOKENS))


def text(value: Any, longest: int) -> str:
    """A text that UTF-8 can hold."""
    _expect(isinstance(value, str) and len(value) <= longest, "a text")
    value.encode("utf-8")
    return str(value)


def number(value: Any) -> float:
    """A finite number."""
    _expect(type(value) in (int, float) and math.isfinite(value), "a finite number")
    return float(value)


def whole(value: Any) -> int:
    """A whole number from 0 to 2³¹ − 1."""
    _expect(type(value) is int and 0 <= value < 2**31, "a whole number")
    return int(value)


def _list(values: Any, most: int) -> list[Any]:
    _expect(isinstance(values, list) and len(values) <= most, f"a list of at most {most:,}")
    return list(values)


def _expect(fits: bool, what: str) -> None:
    if not fits:
        raise TraceFileError(f"The file holds something else where {what} belongs.")
