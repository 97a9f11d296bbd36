"""A run without its arrays: tokens, steps and provenance as JSON values, checked on reading."""

import re
import sys
import unicodedata
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

from transformer.config import ModelConfig, config_from
from transformer.interventions import DropSource, EditSource, InterventionError, from_json, to_json
from transformer.interventions.request import RunShape, check
from transformer.run import Alternative, DecodeStep, Translation
from transformer.storage.typed import KindError, typed
from transformer.text import kinds
from transformer.text.kinds import Kind
from transformer.text.words import (
    BOS,
    EOS,
    NO_PIECE,
    PAD,
    UNK,
    End,
    Mask,
    Special,
    is_cut_off,
    is_end,
    is_language,
    is_special,
    raw,
    unknown_text,
)

MOST_TOKENS = 4_096
MOST_ALTERNATIVES = 100
_NO_UTF8 = re.compile("[\ud800-\udfff]")


READ = "read"
"""The method of a run that only reads."""
CONTRADICT = "The file's tokens contradict each other."


class TraceFileError(ValueError):
    """A file cannot be opened; the message says what is wrong with the file."""


def _text(longest: int) -> Kind:
    """A text that UTF-8 can hold."""
    return Kind(
        "a text",
        lambda value: (
            isinstance(value, str) and len(value) <= longest and not _NO_UTF8.search(value)
        ),
    )


def _list(most: int) -> Kind:
    return Kind(
        f"a list of at most {most:,}",
        lambda values: isinstance(values, list) and len(values) <= most,
    )


_FINITE = kinds.number(-sys.float_info.max, sys.float_info.max)
_Whole = Annotated[int, kinds.whole(0, most=2**31 - 1)]
_LogProb = Annotated[float, kinds.number(-sys.float_info.max, 1e-3)]
_Token = Annotated[str, _text(1_000)]
_Name = Annotated[str, _text(200)]
_LongText = Annotated[str, _text(200_000)]
_Digest = Annotated[str, _text(64)]
_Tokens = Annotated[tuple[_Token, ...], _list(MOST_TOKENS)]
_Places = Annotated[tuple[_Whole, ...], _list(MOST_TOKENS)]
_METHOD = re.compile(r"greedy|forced|read|beam-\d{1,3}|sample-\d{1,10}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class _StepRecord:
    """What a file says of a step."""

    token: _Token
    token_id: _Whole
    log_prob: _LogProb
    parent: _Whole
    alternatives: Annotated[tuple[tuple[_Token, _Whole, _LogProb], ...], _list(MOST_ALTERNATIVES)]
    excluded: Annotated[tuple[_Whole, ...], _list(MOST_ALTERNATIVES)] = ()
    """Ranks, from 0, of the alternatives that the model's own search rules forbade."""
    forced: object = False

    def step(self) -> DecodeStep:
        return DecodeStep(
            token=self.token,
            token_id=self.token_id,
            log_prob=self.log_prob,
            alternatives=tuple(
                Alternative(*alternative, excluded=rank in self.excluded)
                for rank, alternative in enumerate(self.alternatives)
            ),
            parent=self.parent,
            forced=self.forced is True,
        )


@dataclass(frozen=True)
class _SpecialPlaces:
    """Where a file's special pieces stand, from 0."""

    source: _Places
    target: _Places
    ends: _Places | None = None
    """Those of the target that end a text; None: those whose id the config names."""
    source_ends: _Places | None = None
    """Those of the source that end a text; None: the last place."""
    fills: _Places = ()
    """Ids of the special pieces among those that are predicted for masks."""


@dataclass(frozen=True)
class _RunRecord:
    """What a file says of a run."""

    source_text: _LongText
    text: _LongText
    source_tokens: _Tokens
    decoder_input_tokens: _Tokens
    target_tokens: _Tokens
    steps: Annotated[tuple[_StepRecord, ...], _list(MOST_TOKENS)]
    model_sha256: _Digest | None
    method: _Name
    model: _Name
    config: dict[str, object]
    notes: Annotated[tuple[_LongText, ...], _list(MOST_ALTERNATIVES)]
    interventions: object = ()
    prompt: _LongText | None = None
    n_given: _Whole = 0
    start_id: _Whole | None = None
    roles: _Tokens = ()
    fills: Annotated[tuple[tuple[_Whole, _StepRecord], ...], _list(MOST_TOKENS)] = ()
    special: _SpecialPlaces | None = None

    def run(self) -> Translation:
        """The run without its changes; TraceFileError if a name has no form that there is."""
        if not _METHOD.fullmatch(self.method):
            raise TraceFileError("The file names a way of decoding that does not exist.")
        if self.model_sha256 is not None and not _DIGEST.fullmatch(self.model_sha256):
            raise TraceFileError("The file's digest of the model is not a valid digest.")
        steps = tuple(step.step() for step in self.steps)
        return Translation(
            source_text=self.source_text,
            text=self.text,
            source_tokens=self.source_tokens,
            decoder_input_tokens=self.decoder_input_tokens,
            target_tokens=self.target_tokens,
            log_probs=tuple(step.log_prob for step in steps),
            steps=steps,
            method=self.method,
            model=self.model,
            model_sha256=self.model_sha256,
            config=config_from(self.config),
            notes=self.notes,
            prompt=self.prompt,
            n_given=min(self.n_given, len(steps)),
            start_id=self.start_id,
            roles=self.roles,
            fills={position: fill.step() for position, fill in self.fills},
        )


def _misplaced(kind: Kind) -> TraceFileError:
    return TraceFileError(f"The file holds something else where {kind.said} belongs.")


def number(value: Any) -> float:
    """A finite number of a file; TraceFileError if it is none."""
    if not _FINITE.holds(value):
        raise _misplaced(_FINITE)
    return float(value)


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
_WRITTEN = ("prompt", "n_given", "start_id", "roles")
"""What it also holds of a run without a source."""


def run_to_dict(run: Translation) -> dict[str, object]:
    """Everything about a run except its arrays, as JSON values."""
    values = {name: getattr(run, name) for name in _FIELDS}
    if not run.source_tokens:
        values |= {name: getattr(run, name) for name in _WRITTEN}
    special = {
        "source": _special_places(run.source_tokens),
        "target": _special_places(run.target_tokens),
    }
    ends = [place for place, token in enumerate(run.target_tokens) if is_end(token)]
    if ends != _ends_by_id(run):
        special["ends"] = ends
    if not run.config.writes:
        steps = run.fills.items()
        values["fills"] = [(position, _step_to_dict(step)) for position, step in steps]
        predicted = (best for step in run.fills.values() for best in step.alternatives)
        ids = {best.token_id for best in predicted if is_special(best.token)}
        special["fills"] = sorted(ids)
        source = enumerate(run.source_tokens)
        special["source_ends"] = [place for place, token in source if is_end(token)]
    return values | {
        "config": asdict(run.config),
        "interventions": to_json(run.interventions),
        "steps": list(map(_step_to_dict, run.steps)),
        "special": special,
    }


def _ends_by_id(run: Translation) -> list[int]:
    """Places of the target's tokens whose id is the config's end."""
    return [place for place, number in enumerate(run.target_ids) if number == run.config.eos_id]


def _special_places(tokens: Sequence[str]) -> list[int]:
    return [place for place, token in enumerate(tokens) if is_special(token)]


def _step_to_dict(step: DecodeStep) -> dict[str, object]:
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
    try:
        record = typed(_RunRecord, values)
    except KindError as error:
        raise _misplaced(error.kind) from error
    run = record.run()
    source = run.source_tokens
    target = run.target_tokens
    reads = run.decoder_input_tokens
    if bool(source) != ("encoder" in run.config.stacks) or run.roles[len(reads) :]:
        raise TraceFileError(CONTRADICT)
    if bool(target) != run.config.writes or len(reads) != len(target) or reads[1:] != target[:-1]:
        raise TraceFileError(CONTRADICT)
    _check_fills(run)
    if tuple(step.token for step in run.steps) != target:
        raise TraceFileError("The file's steps and its target tokens contradict each other.")
    try:
        changes = from_json(record.interventions)
        n_source = len(source) + sum(isinstance(change, DropSource) for change in changes)
        forced = len(target) if run.method in ("forced", READ) else None
        longest = 0
        if run.config.writes:
            longest = max(run.config.max_positions, len(target))
        check(changes, RunShape(run.config, n_source, len(source), longest, forced))
    except InterventionError as error:
        raise TraceFileError(f"The file's changes do not fit its run: {error}") from error
    edited = any(isinstance(change, DropSource | EditSource) for change in changes)
    written = _written(run, record.special)
    if not _spell(written, run.text) or not (edited or _spells_source(run, record.special)):
        raise TraceFileError("The file's texts and their tokens contradict each other.")
    return _flagged(replace(run, interventions=changes), record.special)


def _written(run: Translation, places: _SpecialPlaces | None) -> tuple[str, ...]:
    """The pieces that spell the text of a run: of a language model those from the first on that was
    read, without special ones, which may be spelled in any way."""
    if not run.config.writes:
        return _filled(run, places)
    if run.source_tokens:
        return run.target_tokens
    special = set() if places is None else set(places.target)
    pieces = [token for place, token in enumerate(run.target_tokens) if place not in special]
    first = () if run.config.starts_with_token else run.decoder_input_tokens[:1]
    return (*first, *pieces)


def _filled(run: Translation, places: _SpecialPlaces | None) -> tuple[str, ...]:
    """The pieces that spell the text with its masks filled, if there are any: ordinary ones."""
    if not run.fills or places is None:
        return ()
    tokens = dict(enumerate(run.source_tokens))
    for position in places.source:
        tokens.pop(position, None)
    for position, step in run.fills.items():
        if step.token_id not in places.fills:
            tokens[position] = step.token
    ordered = [tokens[position] for position in sorted(tokens)]
    return tuple(token for token in ordered if unknown_text(token) is None)


def _spells_source(run: Translation, places: _SpecialPlaces | None) -> bool:
    """Whether the source's pieces spell what was typed; an encoder alone has special ones around
    a text and where they were typed, which it may repeat."""
    if run.config.writes or places is None:
        return _spell(run.source_tokens, run.source_text)
    text = run.source_text
    pieces = list[str]()
    ends = (0, len(run.source_tokens) - 1)  # around the text, and not typed
    for position, token in enumerate(run.source_tokens):
        if position not in places.source:
            pieces.append(token)
        elif position not in ends:
            text = text.replace(token, " ", 1)
    return _spell(pieces, text)


def _check_fills(run: Translation) -> None:
    """TraceFileError if a run that writes has fills, or one stands at no token."""
    if run.config.writes or run.config.mask_id is None:
        positions = range(0)
    else:
        positions = range(len(run.source_tokens))
    if not all(position in positions for position in run.fills):
        raise TraceFileError(CONTRADICT)


def _flagged(run: Translation, places: _SpecialPlaces | None) -> Translation:
    """The run whose special pieces are so again: those at the places of the file, by side.

    A file of an earlier version names none: they are what ids and places say, the end of the
    source, a language at its start, and the target's ids that no text is written of.
    """
    if places is None:
        of_source = _guessed_source(run)
        of_target = _guessed_target(run)
    else:
        of_source = set(places.source)
        of_target = set(places.target)
    ends = set(_ends_by_id(run) if places is None or places.ends is None else places.ends)
    ids = _special_ids(run.config)
    ids |= {number for place, number in enumerate(run.target_ids) if place in of_target}
    if places is not None:
        ids |= set(places.fills)
    end_ids = {run.config.eos_id}
    end_ids |= {number for place, number in enumerate(run.target_ids) if place in ends}

    def flagged(alternative: Alternative) -> Alternative:
        if alternative.token_id == run.config.mask_id:
            return replace(alternative, token=Mask(alternative.token))
        if alternative.token_id in end_ids:
            return replace(alternative, token=End(alternative.token))
        if alternative.token_id in ids:
            return replace(alternative, token=Special(alternative.token))
        return alternative

    tokens = _special(run.target_tokens, of_target, ends)
    steps = tuple(
        replace(step, token=token, alternatives=tuple(map(flagged, step.alternatives)))
        for step, token in zip(run.steps, tokens, strict=True)
    )
    return replace(
        run,
        source_tokens=_special_source(run, of_source, places),
        target_tokens=tokens,
        decoder_input_tokens=_read_first(run, tokens),
        steps=steps,
        fills={position: _flagged_fill(step, flagged) for position, step in run.fills.items()},
    )


def _flagged_fill(step: DecodeStep, flagged: Callable[[Alternative], Alternative]) -> DecodeStep:
    """What is predicted for a mask, special pieces so."""
    alternatives = tuple(map(flagged, step.alternatives))
    token = step.token
    if alternatives and alternatives[0].token_id == step.token_id:
        token = alternatives[0].token
    return replace(step, token=token, alternatives=alternatives)


def _special_source(
    run: Translation, of_source: Collection[int], places: _SpecialPlaces | None
) -> tuple[str, ...]:
    """The pieces of a source, special ones so: its ends, and its masks."""
    ends = _end_of_source(run)
    if places is not None and places.source_ends is not None:
        ends = set(places.source_ends)
    pieces = list(_special(run.source_tokens, of_source, ends))
    for position in run.fills:
        pieces[position] = Mask(pieces[position])
    return tuple(pieces)


def _read_first(run: Translation, tokens: tuple[str, ...]) -> tuple[str, ...]:
    """What the decoder read: a start token, or a text's own first token, and what was written."""
    if not run.decoder_input_tokens:
        return ()
    first = run.decoder_input_tokens[0]
    if run.config.starts_with_token and run.config.bos_id == run.config.eos_id:
        first = End(first)
    elif run.config.starts_with_token:
        first = Special(first)
    return (first, *tokens[:-1])


def _special_ids(config: ModelConfig) -> set[int]:
    return {config.pad_id, config.bos_id, config.eos_id, config.unk_id}


def _guessed_source(run: Translation) -> set[int]:
    """Places of a source's special pieces, if the file does not say them."""
    languages = run.config.language_pieces
    places = {place for place, token in enumerate(run.source_tokens[:2]) if token in languages}
    if run.source_tokens[-1:] == (EOS,):
        places.add(len(run.source_tokens) - 1)
    return places


def _end_of_source(run: Translation) -> set[int]:
    """The place after all words of a source, where its end stands if it has one."""
    return {len(run.source_tokens) - 1}


def _guessed_target(run: Translation) -> set[int]:
    ids = _special_ids(run.config)
    return {place for place, number in enumerate(run.target_ids) if number in ids}


def _special(
    pieces: Sequence[str], places: Collection[int], ends: Collection[int]
) -> tuple[str, ...]:
    """Pieces of which those at some places are special, and of these some end a text."""
    marked = list(pieces)
    for place, piece in enumerate(pieces):
        if place in places:
            marked[place] = End(piece) if place in ends else Special(piece)
    return tuple(marked)


def _spell(pieces: Sequence[str], text: str) -> bool:
    """True if pieces have the letters and digits of a text; `<unk>` stands for any text.

    Vocabularies differ in what they do to spaces, punctuation, accents and forms of letters. A
    language may be named in a text and be a piece of the output, or the other way round.
    """
    bare = [piece for piece in pieces if not is_language(piece)]
    unnamed = " ".join(word for word in text.split() if not is_language(word))
    for spelling, words in ((pieces, text), (bare, unnamed)):
        textual = [piece for piece in spelling if piece not in (PAD, BOS, EOS, NO_PIECE)]
        spelled = b"".join(map(raw, textual)).decode("utf-8", "replace")
        if _letters(spelled) == _letters(words):
            return True
    return UNK in pieces or any(map(is_cut_off, pieces))


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKD", text.casefold())))
