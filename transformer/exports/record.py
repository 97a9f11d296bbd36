"""A run without its arrays: tokens, steps and provenance as JSON values, checked on reading."""

from __future__ import annotations

import json
import math
import re
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from transformer.config import AttentionKind, ModelConfig, config_from
from transformer.interventions import (
    DropSource,
    EditSource,
    Intervention,
    InterventionError,
    from_json,
    to_json,
)
from transformer.interventions.request import RunShape, check
from transformer.run import Alternative, DecodeStep, Translation
from transformer.storage.packed import ArraysError
from transformer.text.words import BOS, EOS, NO_PIECE, PAD, UNK, is_language, raw
from transformer.view import Window

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
DAMAGES = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    OverflowError,
    EOFError,
    RecursionError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    zlib.error,
    zipfile.BadZipFile,
)
"""The errors that reading a damaged file may raise."""


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
    except DAMAGES as error:
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
    values = json.loads(content.decode("utf-8"), parse_constant=_refuse)
    if not isinstance(values, dict):
        raise ValueError("no object")
    return values


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON number")


def named(run: Translation, kind: AttentionKind, layer: int, head: int, window: Window) -> dict[str, Any]:
    """The fields of a map that say which one it is, and of which tokens."""
    labels = run.labels(kind)
    return {
        "kind": kind,
        "layer": layer,
        "head": head,
        "model": run.model,
        "norm": run.config.placement,
        "query_tokens": labels.queries[window.queries],
        "predicted_tokens": None if labels.predicted is None else labels.predicted[window.queries],
        "key_tokens": labels.keys[window.keys],
        "window": window,
    }


def run_to_dict(translation: Translation) -> dict[str, Any]:
    """Everything about a run except its arrays, as JSON values."""
    return {
        "source_text": translation.source_text,
        "text": translation.text,
        "source_tokens": list(translation.source_tokens),
        "decoder_input_tokens": list(translation.decoder_input_tokens),
        "target_tokens": list(translation.target_tokens),
        "steps": [_step_to_dict(step) for step in translation.steps],
        "method": translation.method,
        "model": translation.model,
        "model_sha256": translation.model_sha256,
        "config": translation.config.to_dict(),
        "notes": list(translation.notes),
        "interventions": to_json(translation.interventions),
    }


def _step_to_dict(step: DecodeStep) -> dict[str, Any]:
    alternatives = [[each.token, each.token_id, each.log_prob] for each in step.alternatives]
    excluded = [place for place, each in enumerate(step.alternatives) if each.excluded]
    return {
        "token": step.token,
        "token_id": step.token_id,
        "log_prob": step.log_prob,
        "parent": step.parent,
        "forced": step.forced,
        "alternatives": alternatives,
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
    interventions = _interventions(values.get("interventions", []), config, method, (source, target))
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
    if UNK in pieces:
        return True
    texts = " ".join(word for word in written.split() if not is_language(word))
    if texts != written or any(map(is_language, pieces)):
        bare = [piece for piece in pieces if not is_language(piece)]
        return _spell_letters(pieces, written) or _spell_letters(bare, texts)
    return _spell_letters(pieces, written)


def _spell_letters(pieces: Sequence[str], written: str) -> bool:
    spelled = b"".join(raw(piece) for piece in pieces if piece not in (PAD, BOS, EOS, NO_PIECE))
    return _letters(spelled.decode("utf-8", "replace")) == _letters(written)


def _letters(written: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", written).casefold()))


def _interventions(
    values: Any, config: ModelConfig, method: str, sides: tuple[tuple[str, ...], tuple[str, ...]]
) -> tuple[Intervention, ...]:
    """The changes of a run of a method over source and target tokens."""
    source, target = sides
    try:
        found = from_json(values)
        left_out = sum(isinstance(each, DropSource) for each in found)
        given = len(target) if method == "forced" else None
        most = max(config.max_positions, len(target))
        check(found, RunShape(config, len(source) + left_out, len(source), most, given))
    except InterventionError as error:
        raise TraceFileError(f"The file's changes do not fit its run: {error}") from error
    return found


def _step(values: Any) -> DecodeStep:
    alternatives = []
    excluded = {whole(place) for place in _list(values.get("excluded", []), MOST_ALTERNATIVES)}
    for place, (token, token_id, log_prob) in enumerate(_list(values["alternatives"], MOST_ALTERNATIVES)):
        name, kept = text(token, LONGEST_TOKEN), _log_probability(log_prob)
        alternatives.append(Alternative(name, whole(token_id), kept, place in excluded))
    return DecodeStep(
        token=text(values["token"], LONGEST_TOKEN),
        token_id=whole(values["token_id"]),
        log_prob=_log_probability(values["log_prob"]),
        alternatives=tuple(alternatives),
        parent=whole(values["parent"]),
        forced=values.get("forced", False) is True,
    )


def tokens(values: Any) -> tuple[str, ...]:
    """A list of at most 4,096 tokens."""
    return tuple(text(value, LONGEST_TOKEN) for value in _list(values, MOST_TOKENS))


def text(value: Any, longest: int) -> str:
    """A text that UTF-8 can hold."""
    if not isinstance(value, str) or len(value) > longest:
        raise TraceFileError("The file holds something else where a text belongs.")
    value.encode("utf-8")
    return value


def number(value: Any) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TraceFileError("The file holds something else where a finite number belongs.")
    return float(value)


def whole(value: Any) -> int:
    """A whole number from 0 to 2³¹ − 1."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise TraceFileError("The file holds something else where a whole number belongs.")
    return value


def _log_probability(value: Any) -> float:
    if number(value) > 1e-3:
        raise TraceFileError("The file holds a log-probability above 0.")
    return float(value)


def _list(values: Any, most: int) -> list[Any]:
    if not isinstance(values, list) or len(values) > most:
        raise TraceFileError(f"The file holds something else where a list of at most {most:,} belongs.")
    return values
