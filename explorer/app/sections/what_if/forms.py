"""The sorts of change that the page can add, and the controls that ask for what each must know.

A change says which fields it has, and each field has one control; what depends on the run asks for
itself.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from inspect import signature
from typing import Any, NamedTuple, TypeVar

import streamlit as st

from explorer.app.address import session
from explorer.app.address.page_values import Maps
from explorer.app.controls.options import numbered
from explorer.app.server import runs
from explorer.app.server.run_key import RunKey
from explorer.app.server.view import View
from explorer.figures.base import labels
from explorer.figures.base.captions import KIND_NAMES
from explorer.lenses.what_if.two_runs import Both, align_tokens, in_both
from transformer import interventions as do
from transformer.config import Side
from transformer.interventions import PARTS, Intervention, InterventionError
from transformer.run import Translation
from transformer.text.typed import clean

LONGEST = 300  # most letters of the other sentence, which the address carries
EVERY = -1  # the choice of every head, layer or step
FieldContext = dict[str, Any]  # what was chosen for the fields before


V = TypeVar("V")


class Sort(NamedTuple):
    label: str  # its name in the list
    # draws its controls; returns the change, None if something is missing; a ValueError says why
    # not
    choose: Callable[[View], Intervention | None]
    says: str  # what it does, in one sentence
    side: str = "target"  # the strip of tokens that a run must have for it


def one(label: str, names: Mapping[V, str], width: int = 180, first: V | None = None) -> V:
    """Lets the visitor choose one of several by their names."""
    options = list(names)
    start = options.index(first) if first is not None and first in options else 0
    return st.selectbox(label, options, index=start, format_func=names.__getitem__, width=width)


def number(label: str, value: float, low: float, high: float, step: float) -> float:
    return float(st.number_input(label, low, high, value, step, width=140))


def counted(noun: str, count: int, every: bool = False) -> dict[int, str]:
    """Several of a thing by their numbers, and all of them."""
    names = {i: f"{noun} {labels.count(i)}" for i in range(count)}
    if every:
        names[EVERY] = f"every {noun}"
    return names


def unchanged(opened: View) -> Translation:
    """The run without changes, whose source is the text as typed."""
    return runs.translate(replace(opened.run_key, changes=()))


def tokens_of(run: Translation, kind: str) -> tuple[list[str], list[str]]:
    """Names of the queries and keys of a run."""
    names = run.labels(kind)
    queries = names.predicted if kind == "cross" and names.predicted else names.queries
    return labels.names(queries), labels.names(names.keys)


def _kind(opened: View, _context: FieldContext) -> str:
    names = {str(kind): KIND_NAMES[kind] for kind in opened.kinds[::-1]}
    return one("Attention", names, 230, opened.source.kind(session.current().kind))


def _layer(opened: View, context: FieldContext) -> int:
    config = opened.translation.config
    kind = context.get("kind")
    if kind is None:
        n_layers = config.stacks[context["side"]].n_layers
        return one("Layer", counted("layer", n_layers), 110, 0)
    layer, _ = getattr(session.current(), kind)
    return one("Layer", counted("layer", config.sizes[kind][0]), 110, layer)


def _head(opened: View, context: FieldContext, every: bool = False) -> int:
    heads = opened.translation.config.sizes[context["kind"]][1]
    head_shown = getattr(session.current(), context["kind"])
    return one("Head", counted("head", heads, every), 130 if every else 110, head_shown[1])


def _heads(opened: View, context: FieldContext) -> int | None:
    chosen = _head(opened, context, every=True)
    return None if chosen == EVERY else chosen


def _by(opened: View, context: FieldContext) -> str:
    ways = {"zero": "zero", "mean": "its mean output", "uniform": "equal weights"}
    ways |= {"previous": "the previous token", "first": "the first token"}
    if opened.source.load().means is None:
        del ways["mean"]
    if context["kind"] == "cross":
        del ways["previous"]
    return one("What it gives instead", ways)


def _sublayer(opened: View, context: FieldContext) -> str:
    parts = opened.translation.config.stacks[context["side"]].sublayers
    return one("Sub-layer", {name: PARTS[name] for name in parts}, 220)


def _side(opened: View, _context: FieldContext) -> str:
    stacks = opened.translation.config.stacks
    return one("Side", {side: side for side in stacks}, 130)


CONTROLS: dict[str, Callable[[View, FieldContext], object]] = {
    "kind": _kind,
    "layer": _layer,
    "head": _heads,
    "one head": _head,
    "by": _by,
    "factor": lambda _opened, _given: number("Output times", 2.0, -100.0, 100.0, 0.5),
    "temperature": lambda _opened, _given: number("Temperature", 2.0, 0.001, 1000.0, 0.5),
    "position": lambda opened, _given: one("Source token", _typed(opened)),
    "side": _side,
    "sublayer": _sublayer,
}
"""What asks for a field."""


def ask(opened: View, *names: str) -> FieldContext:
    given: FieldContext = {}
    for name in names:
        given[name] = CONTROLS[name](opened, given)
    return given


def form(change: Callable[..., Intervention]) -> Callable[[View], Intervention]:
    """Asks for every field of a change that has a control; the others keep their default."""
    names = [name for name in signature(change).parameters if name in CONTROLS]
    return lambda opened: change(**ask(opened, *names))


def _typed(opened: View) -> dict[int, str]:
    """The source tokens as typed, without the end."""
    return dict(enumerate(labels.names(unchanged(opened).source_tokens[:-1])))


def edit(opened: View) -> Intervention | None:
    """Another source token: a word as one piece, which begins a word if the piece before it did."""
    at = one("Source token", _typed(opened))
    word = st.text_input(
        "Replacement token", placeholder="another word", max_chars=60, width=180
    ).strip()
    if not word:
        return None
    pieces = [f"{labels.WORD_START}{word}", word]
    if not unchanged(opened).source_tokens[at].startswith(labels.WORD_START):
        pieces.reverse()
    for piece in pieces:
        if _is_token(opened, piece):
            return do.edit_source(at, piece)
    raise InterventionError(
        f"This model has no single token for “{word}”; take a more common word."
    )


def _is_token(opened: View, piece: str) -> bool:
    """Whether a piece is a token of the source."""
    with suppress(InterventionError):
        opened.source.load().token_id(piece, "source")
        return True
    return False


def choose(opened: View) -> Intervention:
    """One of the candidates of a step, by its id if another one is written alike."""
    run = opened.translation
    step = one("Step", numbered(labels.pieces(run.target_tokens)))
    offered = run.steps[step].alternatives
    token = offered[
        one("writes", {i: labels.piece(option.token) for i, option in enumerate(offered)})
    ]
    alike = [option for option in offered if option.token == token.token]
    return do.choose(step, token.token if len(alike) == 1 else token.token_id)


def forbid(opened: View) -> Intervention:
    """A token of the translation, at one step or anywhere."""
    tokens = opened.translation.target_tokens
    token = one("Token", {token: labels.piece(token) for token in tokens})
    steps = {i: f"step {name}" for i, name in numbered(labels.pieces(tokens)).items()}
    step = one("at", {EVERY: "every step"} | steps)
    return do.forbid(token, None if step == EVERY else step)


def row(opened: View) -> Intervention:
    """A weight of one row of a head; the page says what it is now."""
    run = opened.traced().translation
    kind, layer, head = ask(opened, "kind", "layer", "one head").values()
    rows, columns = map(numbered, tokens_of(run, kind))
    now = session.current()
    at = now.source if kind == "encoder" else now.step
    to = now.source if kind == "cross" else now.values(Maps).key
    if at is None or to is None:  # the visitor has not chosen a key
        at, to = 0, 0
    query = one("Row of", rows, first=min(at, len(rows) - 1))
    visible = run.mask(kind, layer, head)[query]
    key = one("Weight to", {i: name for i, name in columns.items() if visible[i]}, first=to)
    weight = number("Weight", 0.9, 0.0, 1.0, 0.1)
    before = float(run.weights(kind, layer, head)[query, key])
    note = f"Now {before:.2f}; the other keys share {1 - weight:.2f} in their old proportions."
    st.caption(note, width="content")
    return do.set_row(kind, layer, head, query, {key: weight})


MASKS = {
    "cell": ("hide one cell", "forbid", "cell"),
    "key": ("hide a key from every query", "forbid", "key"),
    "self": ("hide each token from itself", "forbid", "self"),
    "past": ("hide earlier tokens", "forbid", "past"),
    "future": ("hide later tokens (a causal mask)", "forbid", "future"),
    "lift": ("lift the causal mask", "allow", "future"),
    "next": ("let the next token be seen", "allow", "next"),
    "seen": ("let one cell be seen", "allow", "cell"),
    "shown": ("let every query see a key", "allow", "key"),
}
"""Ways to change a mask: the name, what is done, and to which cells.

A cell or a key is asked for.
"""
OFFERED = {
    "cross": "cell key",
    "encoder": "cell key self past future",
    # only its mask hides what could be allowed
    "decoder": "cell key self past lift next seen shown",
}


def mask(opened: View) -> Intervention:
    """A change of the masks of a kind, in one layer or in all."""
    kind = _kind(opened, {})
    ways = {way: MASKS[way][0] for way in OFFERED[kind].split()}
    _, what, which = MASKS[one("Mask", ways, 260)]
    n_layers = opened.translation.config.sizes[kind][0]
    layer = one("in", counted("layer", n_layers, every=True), 130, EVERY)
    cells: str | list[tuple[int | None, int]] = which
    if which in ("cell", "key"):
        rows, columns = map(numbered, tokens_of(opened.translation, kind))
        query = one("Query", rows) if which == "cell" else None
        cells = [(query, one("Key", columns))]
    chosen = None if layer == EVERY else layer
    if what == "forbid":
        return do.mask(kind, forbid=cells, layer=chosen)
    return do.mask(kind, allow=cells, layer=chosen)


def norm(opened: View) -> Intervention:
    """A norm that is left out: of a sub-layer, or with pre-norm at the end of a stack."""
    side = ask(opened, "side")["side"]
    config = opened.translation.config
    places = [(sublayer.layer, sublayer.name) for sublayer in config.stacks[side].passed()]
    names: dict[tuple[int, str] | None, str] = {
        (layer, name): f"layer {labels.count(layer)}, {PARTS[name]}" for layer, name in places
    }
    if config.norm == "pre":
        names[None] = f"at the end of the {side}"
    place = one("Norm", names, 280)
    return do.drop_norm(side) if place is None else do.drop_norm(side, *place)


PLACES: dict[str, tuple[str, Callable[..., str], tuple[str, ...]]] = {
    "output": ("the encoder's output", do.encoder_output, ()),
    "embeddings": ("the embeddings", do.embeddings, ("side",)),
    "stream": ("the stream after a sub-layer", do.stream, ("side", "layer", "sublayer")),
    "head": ("the output of a head", do.head_output, ("kind", "layer", "one head")),
}
"""Places that are patched: what each is called, its name, and the fields of that."""
ENDS = {"all": "every token, place by place", "shared": "the words that both share"}
ENDS["others"] = "the words that differ"


def patch(opened: View) -> Intervention | None:
    """What a place of the model holds for another sentence is put into this run."""
    asked = st.text_input(
        "The other sentence", placeholder="The dog is …", max_chars=LONGEST, width=320
    )
    known = [place for place in PLACES if place != "output" or "source" in opened.sides]
    _, name, fields = PLACES[one("Put in", {place: PLACES[place][0] for place in known}, 240)]
    place = name(*ask(opened, *fields).values())
    if not clean(asked).strip():
        return None
    unchanged_state = replace(session.current(), target=None, changes=())
    second_run = runs.translate(RunKey.of(unchanged_state, opened.source, asked))
    side: Side = "encoder" if place.startswith("encoder") else "decoder"
    here = opened.translation.tokens(side)
    there = second_run.tokens(side)
    pairs = in_both(align_tokens(here, there))
    names = [tuple(map(labels.piece, (here[a], there[b]))) for a, b in pairs]
    named = {i: " ← ".join(dict.fromkeys(name)) for i, name in enumerate(names)}
    way = one("At", {**ENDS, **named}, 240, "others")
    if isinstance(way, int):
        return do.patch(place, second_run, [pairs[way]])
    return do.patch(place, second_run, _aligned(way, here, there, pairs))


def _aligned(
    way: str, here: Sequence[str], there: Sequence[str], pairs: Sequence[Both]
) -> list[Both]:
    """Pairs of positions of one sentence and the other; InterventionError if there are none."""
    if way == "all":
        if len(here) != len(there):
            counts = f"The other sentence has {len(there)} tokens here and this one {len(here)}"
            raise InterventionError(
                f"{counts}, so not every token has a counterpart; choose words."
            )
        return [(at, at) for at in range(len(here))]
    chosen = [(a, b) for a, b in pairs if (here[a] == there[b]) == (way == "shared")]
    if not chosen and way == "shared":
        raise InterventionError("The two sentences share no word.")
    if not chosen:
        raise InterventionError(
            "No word of one sentence stands where the other has a different word."
        )
    return chosen


GROUPS = {
    "Tokens": (
        Sort(
            "another source token",
            edit,
            "The encoder reads another token at this place.",
            side="source",
        ),
        Sort(
            "leave out a source token",
            form(do.drop_source),
            "The encoder never reads this token.",
            side="source",
        ),
        Sort(
            "choose the token of a step",
            choose,
            "The model writes this token and goes on from there.",
        ),
        Sort("forbid a token of the output", forbid, "The model may not write this token."),
    ),
    "Heads": (
        Sort(
            "switch off a head",
            form(do.ablate),
            "Zero removes all; the mean only what is special here.",
        ),
        Sort(
            "scale a head",
            form(do.scale),
            "Its output is multiplied: 0 switches it off, −1 reverses it.",
        ),
    ),
    "Attention": (
        Sort("move a row's weight", row, "One row of one head puts a given weight on one key."),
        Sort("change a mask", mask, "It holds in every head of the layer, before the softmax."),
    ),
    "Arithmetic": (
        Sort(
            "temperature of a head",
            form(do.temperature),
            "It divides the scores: below 1 is sharper.",
        ),
        Sort(
            "no ÷ √d_k in a head",
            form(do.unscaled),
            "The scores stay q·k, so the weights get sharper.",
        ),
        Sort(
            "leave out the positions of a side",
            form(do.no_positions),
            "A decoder still has its causal mask.",
        ),
        Sort("leave out a sub-layer", form(do.drop_sublayer), "It adds nothing to the stream."),
        Sort("leave out a norm", norm, "LayerNorm, or RMSNorm, passes its input on as it is."),
    ),
    "Another sentence": (
        Sort(
            "put in what another sentence gives",
            patch,
            "It runs through the same model to this place.",
        ),
    ),
}
"""The sorts by group, in the order of the page."""
