"""What the visitor sees, as one value. Programs count from 0; the address, for people, from 1."""

from __future__ import annotations

from dataclasses import dataclass, fields

from transformer.interventions import Intervention
from ui.address.listed import Off
from ui.address.values import WINDOWS, Against, HandLinks, WhatIf
from ui.linked_view.events import Head


@dataclass(frozen=True)
class State:
    """Everything that an address carries. Positions, layers and heads count from 0; None lets the app choose.

    Attributes:
        text: the sentence.
        model: the name of the model.
        language: the target language, such as `>>fra<<`, for a model with several.
        step: the decode step.
        source: the source token that was clicked.
        encoder: the chosen head of encoder self-attention.
        decoder: the chosen head of masked decoder self-attention.
        cross: the chosen head of cross-attention.
        view: the variant of a page, from `VIEWS`.
        decode: `greedy`, `beam-4`, `sample-7`.
        target: the visitor's own translation.
        changes: what is changed in the run of the model, in the order of acting.
        off: changes that are switched off, each with its place in the list: `2.hide_3` stands second.
        batch: the second sentence on the encoder page.
        order: the statistic by which the grids of heads are ordered.
        words: whether sub-words are merged into words.
        hide: what the maps leave out, from `HIDEABLE`.
        rows: whether decoder rows are named by the token `read` or `predicted`; None for the kind's default.
        scale: how weights become colours: `linear`, `sqrt`, `log`.
        window: most rows and columns that a map shows.
        show: how the page of an attention kind draws a head: `matrix`, `lines`, `strongest`.
        links: which lines are drawn: `mass-70`, the links that carry 70 % of each row; `weight-10`, those
            of at least 0.10.
        more: further heads of the same kind, drawn as lines together with the chosen head.
        color: the statistic that colours the grids of heads.
        kind: the attention kind shown by a page that offers all three: encoder, decoder or cross.
        mask: a different mask to try on the Masks page: `zero`, `after`; None for the real mask.
        statistic: the statistic that colours the page "Heads over sentences", as named in `heads.json`.
        sentences: the batch of the Masks page, one sentence per line.
        member: the sentence of that batch to show.
        aligner: `own` if the visitor chose the head, mean or row of an alignment; None for the model's best.
        mean: the layers (first and last, from 0) over whose heads an alignment averages; None for one head.
        rule: how attention becomes links: `mutual`, `above-0.3`; None for each word's strongest link.
        pairs: word links made by hand.
        gold: source of those links, such as `sample-3`; None if the visitor drew them.
        against: what the page Compare compares the selection with.
        other: the other sentence or translation on the page Compare; the second sentence of a causal trace.
        scored: the step whose token a causal trace scores; None for the whole translation.
        key: the key that "Inside a head" shows in self-attention.
        what_if: the alternative arithmetic on "Inside a head", and its number: a temperature, a radius, a
            head (from 0).
        notation: whose symbols "Inside a head" writes: `paper`, `lecture`.
        part: the part of the model on the page Anatomy, from `PARTS`.
        layer: the layer of that part.
        encoding: the positional encoding that the page Positions explains.
        d_model: dimensions of the table on the page Positions; None for those of the twins.
        base: base of the wavelengths in that table.
        positions: how many positions that table shows.
        first: the first position or step shown, if not all of them fit into one picture.
        dimension: the dimension drawn as a curve.
        offset: by how many positions the sentence, or the table, is shifted.
        swap: the two words (from 0) that swap places.
        twin_head: the head shown for all twins; None for each twin's own previous-token head.
        present: whether the linked view of the home page fills the window, in large type.
        temperature: the temperature of sampling.
        top_k: how many of the most probable tokens sampling draws from; None for all.
        top_p: what the probabilities of these tokens must reach together; None for all tokens.
        penalty: α of the score on the page Search; None for the model's own.
        length_offset: k of that score, see `SearchRules`; None for the model's own.
        node: the token chosen in the tree on the page Search.
        draws: how many samples that page draws.
        seed: the seed of the first of them; None for that of `decode`.
        smoothing: the label smoothing ε on the page Training; the paper's is the default.
        width: d_model of the schedule on that page.
        warmup: warm-up steps of that schedule.
        depth: layers of each stack of the untrained models on that page.
        update: the step of the run in which that page follows one weight, from 1.
        run: the training run whose snapshots that page shows; None for the chosen model's or the bundled one.
        snapshot: the training step of the snapshot shown; None for the last one.
        born: the head of that run.
        play: whether its snapshots are shown one after the other.
        prompt: the text on the page Language model; there, the first sentence of a pair (`other` the second).
        word: the word in space that the page Language model looks at.
        tokens: the length of text at which that page measures attention.
        score: the score of the recurrent twin on the page Recurrent; None lets the app choose.
    """

    text: str | None = None
    model: str | None = None
    language: str | None = None
    step: int | None = None
    source: int | None = None
    encoder: Head | None = None
    decoder: Head | None = None
    cross: Head | None = None
    view: str | None = None
    decode: str = "greedy"
    target: str | None = None
    changes: tuple[Intervention, ...] = ()
    off: Off = ()
    batch: str | None = None
    order: str | None = None
    words: bool = False
    hide: tuple[str, ...] = ()
    rows: str | None = None
    scale: str = "linear"
    window: int = WINDOWS[0]
    show: str = "matrix"
    links: str = "mass-70"
    more: tuple[Head, ...] | None = None
    color: str | None = None
    kind: str | None = None
    mask: str | None = None
    statistic: str | None = None
    sentences: str | None = None
    member: int | None = None
    aligner: str | None = None
    mean: tuple[int, int] | None = None
    rule: str | None = None
    pairs: HandLinks = frozenset()
    gold: str | None = None
    against: Against | None = None
    other: str | None = None
    scored: int | None = None
    key: int | None = None
    what_if: WhatIf | None = None
    notation: str = "paper"
    part: str | None = None
    layer: int | None = None
    encoding: str | None = None
    d_model: int | None = None
    base: int = 10_000
    positions: int = 64
    first: int | None = None
    dimension: int | None = None
    offset: int = 10
    swap: Head | None = None
    twin_head: Head | None = None
    present: bool = False
    temperature: float = 0.8
    top_k: int | None = None
    top_p: float | None = None
    penalty: float | None = None
    length_offset: int | None = None
    node: int | None = None
    draws: int = 8
    seed: int | None = None
    smoothing: float = 0.1
    width: int = 512
    warmup: int = 4000
    depth: int = 6
    update: int = 28
    run: str | None = None
    snapshot: int | None = None
    born: Head | None = None
    play: bool = False
    prompt: str | None = None
    word: str | None = None
    tokens: int = 2048
    score: str | None = None


TEXTS = ("text", "target", "batch", "sentences", "other", "prompt")
"""Values that may be too long for an address."""
SHARED = (
    *("text", "model", "language", "decode", "target", "step", "source", "encoder", "decoder", "cross"),
    *("changes", "off", "batch", "order", "color", "words", "hide", "rows", "scale", "window", "show"),
    *("links", "pairs", "gold", "temperature", "top_k", "top_p"),
)
"""Values that several pages read."""
PAGE_OWN = tuple(field.name for field in fields(State) if field.name not in SHARED)
"""Values that only one page reads; the links of the menu leave them out."""
PLACE = ("model", "step", "source", "encoder", "decoder", "cross", "changes", "off", "target", "prompt")
"""Values that belong to models of one sort: a page of another sort has its own."""


def elsewhere(state: State) -> State:
    """The state with which another page opens: values that one page alone reads are left out."""
    return State(**{name: getattr(state, name) for name in SHARED})
