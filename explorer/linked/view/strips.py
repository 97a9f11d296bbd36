"""The token strips, with glosses and shades; examples, and the step at which a run opens."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from explorer.figures.base import captions, labels
from explorer.lenses.words.alignment import Aligner
from explorer.lenses.words.groups import find_word
from explorer.lenses.words.telling import glosses, telling_row, telling_step, text_words
from explorer.linked.view.wire import (
    Chip,
    Gloss,
    PositionNames,
    Shade,
    StepClaim,
    Stop,
    StripsFeed,
)
from transformer.config import AttentionKind, Head, Side
from transformer.run import Translation
from transformer.storage.files import CheckpointError, read_json
from transformer.storage.typed import typed
from transformer.text import words


def direction(tokens: Sequence[str]) -> str:
    """`rtl` if most letters run from right to left, otherwise `ltr`."""
    texts = (group.text for group in words.piece_groups(tokens) if not group.special)
    classes = [unicodedata.bidirectional(character) for token in texts for character in token]
    n_right = sum(class_ in {"R", "AL"} for class_ in classes)
    n_left = sum(class_ == "L" for class_ in classes)
    return "rtl" if n_right > n_left else "ltr"


def chips(tokens: Sequence[str], glosses: Mapping[int, Gloss] | None = None) -> list[Chip]:
    """Turns tokens into chips; those of one character stand in one."""
    groups = words.character_groups(tokens)
    texts = [
        tokens[group.start] if group.stop - group.start == 1 else group.text for group in groups
    ]
    numbers = labels.occurrences(texts)
    names = labels.pieces(texts)
    return [
        {
            "text": labels.shorten(name, 24),
            "first": group.start,
            "last": group.stop - 1,
            "gap": tokens[group.start].startswith(words.SPACE) or group.special,
            "special": group.special or words.unknown_text(tokens[group.start]) is not None,
            "index": number,
            "gloss": (glosses or {}).get(group.start),
        }
        for group, name, number in zip(groups, names, numbers, strict=True)
    ]


STRIPS: Mapping[Side, str] = {"encoder": "source", "decoder": "target"}
"""The strip of the tokens of each side."""
CURSORS: Mapping[Side, str] = {"encoder": "source", "decoder": "step"}
"""The axis of the tokens of each side, as pictures and cursors name it."""


def sides_of(run: Translation) -> dict[str, str]:
    """What the strips of a run are called: the only one is the text."""
    strips = [STRIPS[side] for side in run.config.stacks]
    if len(strips) == 1:
        return {strips[0]: "text"}
    return {strip: strip for strip in strips}


def positions_of(run: Translation) -> PositionNames:
    """What a position of each axis is called: a token of the decoder is a step if it was
    written."""
    sides = sides_of(run)
    names = {strip: f"{side} token" for strip, side in sides.items()}
    if len(sides) == 1:
        names = dict.fromkeys(sides, "token")
    step = "step" if run.steps else names.get("target", "step")
    return {"step": step, "source": names.get("source", "source token")}


def n_given(run: Translation) -> int:
    """How many tokens of the output a prompt gave; none of a run whose output was read."""
    return 0 if run.method == "forced" else run.n_given


def with_roles(chips: Sequence[Chip], roles: Sequence[str]) -> list[Chip]:
    """Chips with who said them, where another begins; `roles` are those of the tokens."""
    before = ""
    named = list[Chip]()
    for chip in chips:
        role = roles[chip["first"]] if chip["first"] < len(roles) else before
        named.append({**chip, "role": role} if role != before else chip)
        before = role
    return named


def shaded(chips: Sequence[Chip], shades: Sequence[Shade]) -> list[Chip]:
    """Chips with the shade of their darkest token, and its number in the place of a gloss."""
    return [_shaded(chip, shades[chip["first"] : chip["last"] + 1]) for chip in chips]


def _shaded(chip: Chip, shades: Sequence[Shade]) -> Chip:
    """A chip with the shades of its tokens."""
    darkest = max(shades, key=lambda shade: shade["share"])
    return {
        **chip,
        "gloss": darkest.get("number", chip["gloss"]),
        "shade": darkest["share"],
        "title": " + ".join(shade["text"] for shade in shades),
    }


def strips_feed(
    trace: str,
    run: Translation,
    *,
    follow: Sequence[int] = (),
    glosses: Mapping[int, Gloss] | None = None,
    tour: Sequence[Stop] = (),
    claim: StepClaim | None = None,
    shades: Sequence[Shade] = (),
) -> StripsFeed:
    """The strips: source and target chips, and the token names used in titles.

    What a text begins with is read, and no step: it stands before the chips, unless it is the
    model's start token.
    """
    source = run.source_tokens
    reads = run.decoder_input_tokens
    predicts = run.target_tokens
    target = with_roles(chips(predicts, glosses), run.roles[1:])
    begins = ""
    if run.steps and not run.config.starts_with_token:
        begins = labels.pieces(reads[:1])[0]
    return {
        "draw": "strips",
        "trace": trace,
        "steps": len(predicts),
        "source": chips(source),
        "target": shaded(target, shades) if shades else target,
        "sides": sides_of(run),
        "positions": positions_of(run),
        "begins": begins,
        "given": n_given(run),
        "direction": {"source": direction(source), "target": direction(predicts)},
        "names": {
            "source": [captions.quote(token) for token in source],
            "reads": [
                captions.quote(token) if place else captions.quote_first(token)
                for place, token in enumerate(reads)
            ],
            "predicts": [captions.quote(token) for token in predicts if run.steps],
        },
        "follow": list(follow),
        "tour": list(tour),
        "claim": claim,
        "glossed": _origins((glosses or {}).values()),
    }


def _origins(glosses: Iterable[Gloss]) -> str:
    """Where glosses come from, as a sentence; empty if there are none."""
    origins = dict.fromkeys(gloss["origin"] for gloss in glosses)
    texts = [f"source words by the {origin}" for origin in origins if origin != EXAMPLE]
    if EXAMPLE in origins:
        texts = ["English words of the example", *texts]
    return f"Under the words: {', else '.join(texts)}." if texts else ""


EXAMPLE = "example"
"""Where a gloss comes from that was written for an example."""


@dataclass(frozen=True)
class WordAlignment:
    """A translation as attention tells it; positions count from 0."""

    step: int = 0  # the most telling step
    # the most telling source token, where the cursor walks over the source; None follows the step
    source: int | None = None
    # the source word behind a target word, by the position of the target word's first piece
    glosses: Mapping[int, str] = field(default_factory=dict)


def tell(run: Translation, aligner: Aligner | None, opens: Head) -> WordAlignment:
    """Glosses by an aligner, and the step at which the head of the last kind that opens agrees.

    Where the cursor walks over the source, the first masked token of it, else the one that this
    head tells most clearly;
    nothing of a run without steps, or without an aligner.
    """
    if run.fills:
        return WordAlignment(source=min(run.fills))
    if run.config.cursor_side == "encoder":
        weights = run.weights(run.config.last_kind, *opens)
        return WordAlignment(source=telling_row(weights, run.source_tokens))
    if aligner is None or not run.steps or AttentionKind.CROSS not in run.config.sites:
        return WordAlignment()
    aligned = aligner.weights(run)
    tokens = (run.source_tokens, run.target_tokens)
    step = telling_step(run.weights("cross", *opens), *tokens, aligned)
    return WordAlignment(step, glosses=glosses(aligned, *tokens))


def glossed(texts: Mapping[int, str], aligner: Aligner) -> dict[int, Gloss]:
    """The glosses of an aligner as the strips show them."""
    origin = labels.aligner(aligner.heads, aligner.rows)
    return {place: Gloss(text=text, origin=origin) for place, text in texts.items()}


def meant(run: Translation, example: Example) -> dict[int, Gloss]:
    """The English words of an example under the words of a translation that it knows."""
    words = text_words(run.target_tokens)
    return {
        word.start: Gloss(text=example.gloss[word.text], origin=EXAMPLE)
        for word in words
        if example.gloss.get(word.text)
    }


def followed(weights: np.ndarray) -> Sequence[int]:
    """For each step, the source token (from 0, not `</s>`) with the largest weight.

    Of weights (steps, sources).
    """
    n_words = max(1, weights.shape[1] - 1)
    keys: Sequence[int] = np.argmax(np.nan_to_num(weights[:, :n_words]), axis=1).tolist()
    return keys


@dataclass(frozen=True)
class Claim:
    """Claim of an example, and its place."""

    text: str  # the claim in one sentence
    # the word whose prediction shows the claim; if the word occurs twice, its first occurrence
    target: str
    source: str  # the source word that the head must attend to
    layer: int  # layer of the cross-attention head, from 0
    head: int  # the head, from 0
    least: float  # the smallest weight on the source word that satisfies the claim
    weight: float  # that the model puts there; `python -m explorer survey` checks the claim with it

    def __post_init__(self) -> None:
        if self.layer < 0 or self.head < 0:
            raise ValueError("A layer and a head count from 0.")


@dataclass(frozen=True)
class Example:
    """A sentence to start from."""

    label: str  # the topic, in a few words
    text: str  # the sentence
    other: str  # the sentence with one other word, of as many tokens
    claim: Claim  # what the example shows
    gloss: Mapping[str, str]  # English words by target word
    reference: str | None = None  # a translation by people, other than the model's


@dataclass(frozen=True)
class _Examples:
    """What a file of examples holds."""

    examples: tuple[Example, ...]


def read_examples(path: Path) -> tuple[Example, ...]:
    """The examples of a file; CheckpointError if it holds none."""
    try:
        examples = typed(_Examples, read_json(path)).examples
        if not examples:
            raise ValueError("The list is empty.")
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"{path.name} beside the model is damaged; remove it, or write it again."
        ) from error
    return examples


def claim_step(example: Example, target_tokens: Sequence[str]) -> int | None:
    """The step that shows the claim; None if this translation lacks the word."""
    steps = find_word(target_tokens, example.claim.target)
    return None if steps is None else steps[0]
