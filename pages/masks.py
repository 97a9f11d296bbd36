"""Masks: the keys that attention may not see, and the weight that would leak through others."""

from explorer.app.address.page_values import Masks
from explorer.app.shell.waiting import for_pytorch
from explorer.figures.base import labels

with for_pytorch("masks"):
    from collections.abc import Callable, Mapping
    from dataclasses import replace
    from functools import partial

    import numpy as np
    import streamlit as st

    from explorer.app.address import State, session
    from explorer.app.controls import (
        formula,
        head_panel,
        options,
        panel,
        part,
        pickers,
        plain,
        say,
        seen,
    )
    from explorer.app.maps.explorer import Scene, explorer, strips_only
    from explorer.app.maps.looking import Looks, cells_of, near
    from explorer.app.server import per_run
    from explorer.app.server.view import View
    from explorer.app.shell import needs, sections
    from explorer.app.shell.changed import of_tokens
    from explorer.app.shell.page import open_sentence_page, show_with_model
    from explorer.figures import heatmap
    from explorer.figures.base import captions
    from explorer.figures.base.labels import percent
    from explorer.figures.maps.heatmap import row_tokens
    from explorer.figures.pages.masks import (
        leak_bars,
        mask_map,
        padding_grid,
        score_map,
        weight_map,
    )
    from explorer.lenses.what_if.arithmetic import Leak, Masking, leak, masked_weights
    from transformer import Translation
    from transformer.config import AttentionKind
    from transformer.text.words import PAD, is_special
    from transformer.view import HeadMap, HeadView

SEEING = (
    "The left map shows the scores before any mask, the middle map the mask, a rule that knows "
    "only positions and padding, and the right map the weights after mask and softmax. Below, "
    "another way of masking acts on the same scores."
)
RULE = (
    r"M_{ij} = \begin{cases}0 & i \text{ may attend to } j\\ -\infty & \text{otherwise}\end{cases}"
)
WHY = "Why −∞? $e^{-\\infty}$ is exactly 0, so a masked key takes no weight."
WAYS = {
    "none": (
        "no mask at all",
        "Without a mask, every key takes the weight of its score, masked ones too.",
    ),
    "zero": (
        "0 before the softmax",
        "Why not 0? $e^0$ is 1: a masked key counts like any key of score 0.",
    ),
    "after": (
        "0 after the softmax",
        "Why not after the softmax? The masked keys already have their share, so rows sum to "
        "less than 1, and what stands later changes them.",
    ),
}
MASKS = {
    "encoder": (
        "Padding mask of the encoder",
        "No token may attend to `<pad>`; a sentence alone has none.",
    ),
    "decoder": (
        "Causal mask of the decoder",
        (
            "Row *t* may attend to the tokens read up to *t*. In training, only this mask hides "
            "later ones."
        ),
    ),
    "cross": (
        "Padding mask of cross-attention",
        "Not causal: the source is complete from the first step.",
    ),
}
COMBINED = (
    "Derived, not used by the model: the causal mask already hides padding at the end from every "
    "token. The two differ in {} cells, {} of them in rows of tokens."
)
WHICH_TRIANGLE = (
    "**Which triangle?** As in the paper's QKᵀ, row *i* is the query and column *j* the key: the "
    "cells with *j* > *i* are masked, the upper triangle. Texts that compute KᵀQ have keys as "
    "rows; there, the cells with *i* > *j* are masked: the lower triangle. Both hide the same "
    "pairs of tokens."
)
WHY_ITSELF = (
    "**Why may a row see its own column?** The decoder reads the target *shifted right*: `<s>` "
    "(or ◌, no token) comes first, so the diagonal holds the token that a row has just read, "
    "never the one it has to predict."
)
SHORT = "Thank you."
LONGER = (
    "When the rain finally stopped late in the evening, the children ran outside to play in the "
    "garden."
)
MOST = 6  # sentences of a batch
SIZE, CELLS = 300, 40  # px of a map, and its most rows and columns: the page holds up to nine


def show(opened: View) -> None:
    """A sentence alone has the cursor; a batch is translated anew and has none."""
    now = session.current()
    if now.view == "batch":
        if not needs.tell_lack(opened.source, ("encoder",)):
            show_with_model(opened, batch)
        return
    usual = "decoder" if "decoder" in opened.kinds else "encoder"
    kind = now.kind if now.kind in opened.kinds else usual

    run = opened.translation

    def above(_now: State, _looks: Looks) -> None:
        controls(opened, kind)

    def beside(now: State, _looks: Looks) -> None:
        pictures(run, "your sentence", kind, cells_of(opened, now))

    explorer(Scene(strips_only("masks", kind), opened, (kind,), above=above, beside=beside))


@part()
def batch(opened: View) -> None:
    """Several sentences as one rectangle; the pictures are those of one of them."""
    now = session.current()
    values = now.values(Masks)
    text = (values.sentences or "").strip() or "\n".join(
        (opened.translation.source_text, LONGER, SHORT)
    )
    lines = [line for line in text.splitlines() if line.strip()][:MOST]

    def take(text: str) -> None:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if len(lines) > MOST:
            st.toast(f"A batch here holds at most {MOST} sentences. The others are left out.")
        session.change(sentences="\n".join(lines[:MOST]) or None, member=None)

    label = f"The sentences of the batch, one per line, at most {MOST}"
    st.text_area(label, text, height=104, **session.control("sentences", text, take))
    entries = per_run.batch(opened.source, tuple(lines))
    at = min(values.member or 0, len(entries) - 1)
    kind = now.kind if now.kind in opened.kinds else leakiest(opened, entries[at])
    sites = opened.translation.config.sites.values()
    *_, reads_source = (site.kind for site in sites if site.key_side == "encoder")
    mask = np.stack([entry.mask(reads_source, 0, 0)[0] for entry in entries])
    padding = int((~mask).sum())
    sentences = f"{labels.counted(len(entries), 'sentence')} × {mask.shape[1]} tokens"
    panel(
        "batch",
        lambda ink: padding_grid([entry.source_tokens for entry in entries], mask, at, ink),
        f"{sentences} make a rectangle of {mask.size} positions; {padding} of them "
        f"({percent(padding / mask.size)}) are <pad>, hatched · {entries[0].model}",
        scrolls=768 if mask.shape[1] > 8 else False,
        inked=True,
    )
    offered = {i: plain(text) for i, text in options.numbered(lines, 24).items()}
    pickers.switch(
        "member",
        "Sentence of the batch",
        offered,
        at,
        lambda i: session.change(member=i or None),
        texts=True,
    )
    controls(opened, kind)
    pictures(entries[at], f"sentence {at + 1} of the batch", kind)


def leakiest(opened: View, entry: Translation) -> str:
    """The kind that hides padding alone, and whose chosen head would lose most weight without its
    mask."""
    now = session.current()
    lost = dict[str, float]()
    for kind in opened.kinds:
        view = entry.head(kind, *getattr(now, kind))
        if not entry.config.sites[AttentionKind(kind)].causal:
            lost[kind] = leak(
                masked_weights(view.scores, view.mask, Masking("none")), view.mask
            ).masked.sum()
    return max(lost, key=lost.__getitem__)


def controls(opened: View, kind: str) -> None:
    """Which head is shown, and which other way of masking."""
    now = session.current()
    config = opened.translation.config
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        pickers.kind_picker(kind, opened.kinds, part=True)
        pickers.head_picker(kind, getattr(now, kind), opened.source)
        ways = {name: f"what if: {way}" for name, (way, _) in WAYS.items()}
        pickers.choose(
            "mask", "Another way of masking", ways, now.values(Masks).mask or "none", width=205
        )
        score = config.sites[AttentionKind(kind)].score
        written = formula.attention(kind, config.positions, True, score)
        seen(
            f"{SEEING} {formula.explained(kind, config.positions, score)}",
            rf"{written},\quad {RULE}",
        )


def pictures(
    run: Translation,
    name: str,  # the run in captions
    kind: str,  # the kind that the visitor chose
    cells: dict[str, tuple[int, int]] | None = None,  # the row and column of the cursor, by kind
) -> None:
    """The true masking, another way of masking, and the masks of all kinds."""
    now = session.current()
    heads = {str(site): getattr(now, site) for site in run.config.sites}
    places = cells or dict.fromkeys(heads, (0, 0))
    windows = {
        site: near(run, site, heads[site], places[site], CELLS)
        for site in heads
        if site in MASKS or site == kind
    }
    query = places[kind][0]
    row = query - windows[kind].window.query_start if cells else None
    draw = partial(head_panel, run=run, of=name, size=SIZE, width="content", row=row)
    full = run.head(kind, *heads[kind])
    true_masking(full, windows[kind], draw)
    other_masking(full, windows[kind], query, draw)
    if session.visit().silent is not None:  # what follows says in words which cells are masked
        say("")
        return
    st.markdown(f"#### The masks of {name}")
    masks_of_kinds(run, windows, padded=cells is None)
    if cells:
        st.caption("With padding, a mask can combine both rules: choose “in a batch”.")
    left, right = st.columns(2, gap="large")
    left.markdown(WHICH_TRIANGLE)
    if "decoder" in run.config.sizes:
        right.markdown(WHY_ITSELF)


def true_masking(full: HeadMap, view: HeadMap, draw: Callable[..., None]) -> None:
    """The scores, the mask and the weights of a window of a head."""
    say(f"{masked(leak(full.weights, full.mask), full.mask.size)} {WHY}")
    with st.container(horizontal=True, gap="small"):
        draw("masks.scores", score_map, "Scores, before the mask", view)
        draw("masks.mask", mask_map, "The mask", view)
        draw("masks.weights", heatmap, "Weights, after mask and softmax", view)


def other_masking(full: HeadView, view: HeadMap, query: int, draw: Callable[..., None]) -> None:
    """What another way of masking does to the same scores."""
    way = session.current().values(Masks).mask or "none"
    title, words = WAYS[way]
    weights = masked_weights(full.scores, full.mask, Masking(way))
    leaking = leak(weights, full.mask)
    rows = view.window.queries
    visible = (leaking.sums - leaking.masked)[rows]
    bars = partial(leak_bars, visible=visible, masked=leaking.masked[rows])
    say(f"{words} {leaks(leaking, row_tokens(full), query)}")
    goes = "What if: where each row's weight goes"
    with st.container(horizontal=True, gap="small"):
        draw("masks.leak", bars, goes, view, proven=False, row=None)
        alternative = replace(view, weights=weights[rows, view.window.keys])
        draw("masks.what-if", weight_map, f"What if: {title}", alternative, proven=False)


def masks_of_kinds(run: Translation, windows: Mapping[str, HeadMap], *, padded: bool) -> None:
    """The mask of every kind; of a padded decoder also the causal one combined with padding."""
    with st.container(horizontal=True, gap="small"):
        for kind, (title, note) in MASKS.items():
            if kind in windows:
                mask_panel(run, kind, windows[kind], title, note)
        if padded and "decoder" in windows:
            combined, note = with_padding(run, windows["decoder"])
            title = "Causal and padding combined"
            mask_panel(run, "combined", combined, title, note, proven=False)


def mask_panel(
    run: Translation, name: str, view: HeadMap, title: str, note: str, *, proven: bool = True
) -> None:
    """One mask, with how many of its cells are masked."""
    shape = " × ".join(map(str, view.mask.shape))
    head_panel(
        f"masks.object.{name}",
        mask_map,
        title,
        view,
        run,
        of=f"{shape} cells, {int((~view.mask).sum())} masked",
        size=262,
        width="content",
        note=note,
        proven=proven,
    )


def with_padding(run: Translation, causal: HeadMap) -> tuple[HeadMap, str]:
    """The decoder with padding hidden too, and how many cells that changes."""
    written = np.arange(len(run.target_tokens)) < len(run.log_probs)
    combined = causal.mask & written[causal.window.keys]
    differ = combined != causal.mask
    among = int(differ[written[causal.window.queries]].sum()) or "none"
    return replace(causal, mask=combined), COMBINED.format(int(differ.sum()), among)


def masked(leaked: Leak, cells: int) -> str:
    """How many cells of a map are masked, and whether its rows sum to 1."""
    if not leaked.cells:
        return f"None of the {cells} cells is masked: a sentence alone has no padding."
    small = leaked.zeros - leaked.cells
    unequal = int(leaked.unequal.sum())
    besides = ""
    if small:
        besides = f" ({small} of them not masked: weights too small for a 32-bit number)"
    sums = f"{unequal} of the rows do not sum" if unequal else "every row sums"
    return (
        f"**{leaked.cells} of {cells} cells are masked, and {leaked.zeros} of {cells} weights are "
        f"exactly 0**{besides}; {sums} to 1."
    )


def leaks(leaked: Leak, rows: tuple[str, ...], cursor: int) -> str:
    """What a way of masking does to the rows of tokens; rows of `<pad>` do not count."""
    if not leaked.cells:
        return "Nothing is masked, so every way of masking gives the same weights."
    tokens = [i for i, token in enumerate(rows) if not (is_special(token) and token == PAD)]
    counted = labels.counted(len(tokens), "row")
    if len(tokens) != len(rows):
        counted += " of tokens"
    short = int(leaked.unequal[tokens].sum())
    places = {
        cursor: "the row of the cursor",
        tokens[0]: "the first row",
        tokens[-1]: "the last row",
    }
    sums = ", ".join(
        f"{places[i]} (“{plain(captions.quote(rows[i]))}”) "
        + (
            f"sums to **{leaked.sums[i]:.2f}**"
            if short
            else f"loses **{percent(float(leaked.masked[i]))}**"
        )
        for i in sorted(places)
    )
    if short:
        return f"**{short} of {counted} no longer sum to 1**: {sums}."
    share = percent(float(leaked.masked[tokens].mean()))
    return (
        f"**{share} of the weight leaks** to masked keys, on average over {counted}: {sums}. "
        "Every row still sums to 1."
    )


opened = open_sentence_page(
    "masks",
    lambda now: sections.switch("masks", now),
    changes=of_tokens,
    kinds=("encoder", "decoder"),
    vectors=True,
)
if opened is not None:
    show(opened)
