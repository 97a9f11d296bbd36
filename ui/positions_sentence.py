"""What positional encodings do to the visitor's sentence: in one model, and in all twins side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from figures import captions, heatmap, labels
from figures.positions import Interval, dots, token_norms, token_vectors, twin_lines, twin_name
from transformer import Translation, Window
from transformer.capture import AttentionKind, AttentionTrace
from transformer.profiles import REACH, by_distance
from transformer.rearranged import Swapped, encode_moved, swap_words, words_of
from ui import frame, models, state, widgets
from ui.linked_view import Head, window_around
from ui.models import Request
from ui.positions_encodings import CROSS, STACKS, draw, fitted, fitted_head, stack, stack_switch, too_narrow
from ui.widgets import Opened

_INPUTS = 64
_PARTS = ("token embedding × √d_model", "encoding", "their sum")
_CELLS = 32
_MAP = 264
_COLUMNS = 4
_SWAP = (1, 5)


@dataclass(frozen=True)
class Run:
    """One twin's translation of the sentence.

    Attributes:
        name: of the twin, without its folder.
        translation: greedy.
    """

    name: str
    translation: Translation


@st.fragment
def show(opened: Opened) -> None:
    """Draws the part."""
    frame.menu()
    notices = st.empty()
    _input(opened)
    st.divider()
    runs = _translations(opened)
    if runs:
        _maps(runs)
        st.divider()
        left, right = st.columns(2, gap="large")
        with left:
            _swap(opened, runs)
        with right:
            _shift(opened, runs)
    with notices:
        frame.show_notices()


def _input(opened: Opened) -> None:
    translation = opened.translation
    side = stack()
    tokens = translation.source_tokens if side == "encoder" else translation.decoder_input_tokens
    words, encoding = translation.embeddings(side), translation.positions(side)
    shown = slice(0, _INPUTS)
    parts = {_PARTS[0]: words[shown]}
    if encoding is not None:
        parts |= {_PARTS[1]: encoding[shown], _PARTS[2]: (words + encoding)[shown]}
    st.markdown(f"##### What goes into the {side}")
    stack_switch("sentence")
    st.markdown(_input_sentence(translation, encoding, words))
    more = f", first {_INPUTS} of {len(tokens)} tokens" if len(tokens) > _INPUTS else ""
    audit = translation.attention.audit() if translation.attention is not None else None
    verdict = "" if audit is None else f" · {captions.badge(audit)['text']}"
    where = (
        f"{side}{more} · {translation.model}, {twin_name(translation.config.positions)} positions{verdict}"
    )
    draw(
        "norms",
        lambda: token_norms(tokens[shown], {name: _norms(part) for name, part in parts.items()}, "norm"),
        f"Norms of the input of the first layer of the {where}",
        "; ".join(f"{name}: {_norms(part).mean():.2f} on average" for name, part in parts.items()),
        audit,
    )
    most = max(float(np.abs(part).max()) for part in parts.values())
    with st.expander("The vectors themselves, in all dimensions"):
        for i, (name, part) in enumerate(parts.items()):
            draw(
                f"vectors-{labels.count(i)}",
                _vectors(tokens[shown], part, most),
                f"{name[0].upper()}{name[1:]}: all dimensions, colours from −{most:.1f} to {most:.1f} · "
                f"{where}{too_narrow(part.shape[1])}",
                f"{len(part)} tokens × {part.shape[1]} dimensions.",
                audit,
            )


def _vectors(tokens: tuple[str, ...], part: np.ndarray, most: float) -> Callable[[], go.Figure]:
    return lambda: token_vectors(tokens, part, most)


def _input_sentence(translation: Translation, encoding: Any, words: Any) -> str:
    name = translation.config.positions
    if encoding is None:
        acts = "nowhere" if name == "none" else "later, inside every self-attention"
        return f"This model's encoding ({twin_name(name)}) adds nothing here: it acts {acts}. {CROSS}"
    share = float(_norms(encoding).mean() / _norms(words).mean())
    return (
        "Token embedding × √d_model plus encoding gives the first layer's input. On this sentence the "
        "encoding "
        f"is {share:.0%} as long as the embedding on average. {CROSS}"
    )


def _norms(table: np.ndarray) -> np.ndarray:
    norms: np.ndarray = np.linalg.norm(table, axis=1)
    return norms


def _translations(opened: Opened) -> list[Run]:
    st.markdown("##### The same sentence through the twins")
    names = list(models.twins())
    if not names:
        st.info("No twins are here yet: they belong into assets/models/positions.", icon=":material/info:")
        return []
    runs, rows = [], []
    results = models.position_results() or {"scores": {}}
    with st.spinner("Translating with every twin"):
        for full in names:
            name = full.partition("/")[2]
            asked = Request(full, opened.asked.text, "greedy", None)
            try:
                translation = models.translate(asked, lambda *_: None)
            except ValueError as error:
                rows.append({"twin": twin_name(name), "translation": str(error), "BLEU on the test": None})
                continue
            runs.append(Run(name, translation))
            score = results["scores"].get(name, {}).get("bleu", {}).get("value", {}).get("value")
            rows.append({"twin": twin_name(name), "translation": translation.text, "BLEU on the test": score})
    st.caption(
        f"{len(runs)} small models (1.4 million parameters) that share data, vocabulary, order of batches "
        "and steps, and differ in their encoding only (post-norm: in where LayerNorm stands, and in the "
        "learning rate that it needs). Greedy."
    )
    st.dataframe(
        rows,
        hide_index=True,
        column_config={"BLEU on the test": st.column_config.NumberColumn(format="%.1f")},
        width="stretch",
    )
    return runs


def _shape(runs: list[Run], kind: str) -> Head:
    config = runs[0].translation.config
    return (config.n_encoder_layers if kind == "encoder" else config.n_decoder_layers), config.n_heads


def previous_head(trace: AttentionTrace, kind: str) -> Head:
    """The head (from 0) that puts the most weight on the token before, on average over a sentence."""
    layers = range(len(trace.layers[kind]))  # type: ignore[index]
    weights = np.stack([trace.weights(kind, layer) for layer in layers])
    shares = weights.diagonal(-1, -2, -1).mean(-1) if weights.shape[-1] > 1 else weights[..., 0, 0]
    layer, head = np.unravel_index(int(shares.argmax()), shares.shape)
    return int(layer), int(head)


def _heads(runs: list[Run], kind: str) -> dict[str, Head]:
    """The head that is shown of each twin."""
    layers, heads = _shape(runs, kind)
    asked = state.current().twin_head
    if asked is not None:
        return dict.fromkeys((run.name for run in runs), fitted_head(asked, (layers, heads)))
    return {run.name: previous_head(_trace(run.translation), kind) for run in runs}


def _trace(translation: Translation) -> AttentionTrace:
    assert translation.attention is not None
    return translation.attention


def _head_picker(runs: list[Run], kind: str) -> None:
    layers, heads = _shape(runs, kind)
    options = [None, *((layer, head) for layer in range(layers) for head in range(heads))]
    asked = state.current().twin_head
    now = None if asked is None else (min(asked[0], layers - 1), min(asked[1], heads - 1))

    def name(option: Head | None) -> str:
        if option is None:
            return "each twin's head that looks most at the token before"
        return f"{labels.head_phrase(*option)} of every twin"

    st.selectbox(
        "Head",
        options,
        index=options.index(now),
        format_func=name,
        label_visibility="collapsed",
        **widgets.control("positions.twin_head", now, lambda each: state.change(twin_head=each)),
    )


def _maps(runs: list[Run]) -> None:
    kind = stack()
    switch, picker = st.columns([1, 2], vertical_alignment="center")
    with switch:
        st.markdown(f"**One head of the {STACKS[kind]} in each twin**")
    with picker:
        _head_picker(runs, kind)
    chosen = _heads(runs, kind)
    for start in range(0, len(runs), _COLUMNS):
        columns = st.columns(_COLUMNS)
        for column, run in zip(columns, runs[start : start + _COLUMNS], strict=False):
            with column:
                _map(run, kind, chosen[run.name])
    profiles = {run.name: profile(_trace(run.translation), kind, chosen[run.name]) for run in runs}
    reach = min(REACH, max(len(run.translation.source_tokens) for run in runs))
    span = slice(REACH - reach, (REACH if kind == "decoder" else REACH + reach) + 1)
    distances = list(range(-REACH, REACH + 1))[span]
    draw(
        "distance",
        lambda: twin_lines(
            distances,
            {name: each[span] for name, each in profiles.items()},
            ("distance, key − query", "weight"),
        ),
        "Attention by distance, averaged over the rows of those heads; −1 is the token before"
        f"{', the ends hold all that is further' if reach == REACH else ''} · {STACKS[kind]}, all twins · "
        f"{_verdict(runs, kind, chosen)}",
        "; ".join(
            f"{twin_name(name)}: {each[REACH - 1]:.2f} on the token before" for name, each in profiles.items()
        ),
    )


def _verdict(runs: list[Run], kind: str, chosen: dict[str, Head]) -> str:
    """What the audit says of the layers that a derived figure is made from."""
    places = [(run, (AttentionKind(kind), chosen[run.name][0])) for run in runs]
    return _told(
        [twin_name(run.name) for run, place in places if not _trace(run.translation).audit(place).passed]
    )


def _told(failed: list[str]) -> str:
    return f"audit failed: {', '.join(failed)}" if failed else "from verified traces"


def profile(trace: AttentionTrace, kind: str, head: Head) -> np.ndarray:
    """Mean weight of a row at each distance from −REACH to REACH."""
    weights = trace.weights(kind, *head)
    found: np.ndarray = by_distance(weights) / len(weights)
    return found


def _map(run: Run, kind: str, head: Head) -> None:
    length = len(run.translation.source_tokens if kind == "encoder" else run.translation.target_tokens)
    span = window_around(length, 0, _CELLS)
    view = run.translation.head(kind, *head, window=Window(*span, *span))
    st.markdown(f"**{twin_name(run.name)}** · {labels.head_name(*head)}")
    caption = captions.caption(view, whole=(length, length)).replace("{step}", "")
    verdict = captions.badge(view.audit)["text"]
    draw(
        f"map-{run.name}",
        lambda: heatmap(view, _MAP),
        f"{caption} · {verdict}",
        captions.summary(view),
        view.audit,
    )


def _swap(opened: Opened, runs: list[Run]) -> None:
    st.markdown("##### Exchange two words: which encodings notice?")
    some = runs[0].translation
    words = [word.text for word in words_of(some.source_tokens)]
    if len(words) < 2:
        st.info("The sentence needs two words.", icon=":material/info:")
        return
    asked = state.current().swap or tuple(min(each, len(words) - 1) for each in _SWAP)
    pair = [fitted("word", each, len(words) - 1) for each in asked]
    if pair[0] == pair[1]:
        pair[0] = 0 if pair[1] else 1
    for place, column in enumerate(st.columns(2)):
        with column:
            _word(words, pair, place)
    found, refused = {}, []
    with st.spinner("Translating again with every twin"):
        for run in runs:
            try:
                found[run.name] = _swapped(run.name, opened.asked.text, pair[0], pair[1])
            except ValueError as error:
                refused.append(f"{twin_name(run.name)}: {error}")
    if refused:
        st.info(frame.plain(" ".join(dict.fromkeys(refused))), icon=":material/info:")
    if not found:
        return
    changes = {
        name: Interval(float(np.mean(s.change)), min(s.change), max(s.change)) for name, s in found.items()
    }
    draw(
        "swap",
        lambda: dots(changes, "change of the output, share of its length", 2),
        "Same words, two of them exchanged: change of each word's encoder output; dot: mean, line: "
        "smallest to "
        f"largest over {len(some.source_tokens)} tokens. 0 means that the encoder cannot tell",
        "; ".join(f"{twin_name(name)}: {cell.value:.2f}" for name, cell in changes.items()),
    )
    rows = [{"twin": twin_name(name), "translation now": s.translation.text} for name, s in found.items()]
    st.dataframe(rows, hide_index=True, width="stretch")


def _word(words: list[str], pair: list[int], place: int) -> None:
    def take(position: int) -> None:
        other = pair[1 - place]
        state.change(swap=(position, other) if place == 0 else (other, position))

    st.selectbox(
        ("Word", "and word")[place],
        range(len(words)),
        index=pair[place],
        format_func=lambda each: f"{labels.count(each)}: {words[each]}",
        **widgets.control(f"positions.swap.{place}", pair[place], take),
    )


def _swapped(name: str, text: str, one: int, other: int) -> Swapped:
    twin = models.translator(f"{models.TWINS}/{name}")
    key = ("swap", name, id(twin), text, one, other)
    return models.rearranged(key, lambda: swap_words(twin, text, one, other))


def _shift(opened: Opened, runs: list[Run]) -> None:
    st.markdown("##### Move the sentence: which maps move?")
    now = state.current().offset
    st.slider(
        "start this many positions later (nothing stands before)",
        0,
        max(200, now),
        now,
        **widgets.control("positions.offset", now, lambda each: state.change(offset=int(each))),
    )
    changes, failed, refused = {}, [], []
    for run in runs:
        try:
            changes[run.name], verified = _moved(run.name, opened.asked.text, now)
            failed += [] if verified else [twin_name(run.name)]
        except ValueError as error:
            refused.append(f"{twin_name(run.name)}: {error}")
    if refused:
        st.info(frame.plain(" ".join(refused)), icon=":material/info:")
    if changes:
        draw(
            "shift",
            lambda: dots(changes, "change of an attention weight", 3),
            f"The sentence at positions {now + 1}, {now + 2}, … instead of 1, 2, …: change of the "
            "encoder's weights; "
            "dot: mean of the largest change in each head, line: smallest to largest head. 0 means that only "
            f"distances count · {_told(failed)}",
            "; ".join(f"{twin_name(name)}: {cell.value:.3f}" for name, cell in changes.items()),
        )


def _moved(name: str, text: str, offset: int) -> tuple[Interval, bool]:
    """How far weights change from head to head, and whether the audits of both traces pass."""
    twin = models.translator(f"{models.TWINS}/{name}")

    def weights(trace: AttentionTrace) -> np.ndarray:
        return np.stack([trace.weights("encoder", layer) for layer in range(twin.config.n_encoder_layers)])

    def change() -> tuple[Interval, bool]:
        here, there = (encode_moved(twin, text, by) for by in (0, offset))
        largest = np.abs(weights(there) - weights(here)).max((-2, -1))
        span = Interval(float(largest.mean()), float(largest.min()), float(largest.max()))
        return span, here.audit().passed and there.audit().passed

    return models.rearranged(("move", name, id(twin), text, offset), change)
