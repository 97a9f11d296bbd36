"""One sentence beside another one in the same batch: the page shows the padding and its mask."""

from __future__ import annotations

import streamlit as st

from explorer.app.address import session
from explorer.app.controls import panel, part, pickers
from explorer.app.server import per_run
from explorer.app.server.opened import Opened
from explorer.figures import heatmap
from explorer.figures.base import captions, labels
from explorer.linked.view import window_around
from transformer import Window
from transformer.config import Head
from transformer.run import Translation
from transformer.view import HeadView

LONGER = "When the rain finally stopped late in the evening, the children ran outside to play in the garden."


@part
def show(opened: Opened) -> None:
    """Draws one head for both sentences of a padded batch."""
    now = session.current()
    second, head = now.batch or LONGER, now.encoder
    assert head is not None
    box, picker = st.columns([3, 1], vertical_alignment="bottom")
    with box:
        st.text_input(
            "The other sentence of the batch",
            second,
            **pickers.control("batch", second, lambda text: session.change(batch=text.strip() or None)),
        )
    with picker:
        pickers.head_picker("encoder", head, opened.source)
    entries = per_run.batch(opened.source, (opened.translation.source_text, second))
    st.markdown(_sentence(entries))
    for column, entry, name in zip(
        st.columns(2), entries, ("your sentence", "the other sentence"), strict=True
    ):
        with column:
            _picture(entry, name, head)
    st.markdown(
        "**What to notice.** A batch is a rectangle, so `<pad>` fills up the shorter sentence. The mask "
        "(hatched) keeps every token from attending to `<pad>`: the weights there are exactly 0, and the "
        "rest of the row is the same as without the batch. The model also computes rows of `<pad>`, and "
        "then ignores them."
    )


def _sentence(entries: tuple[Translation, ...]) -> str:
    yours, other = (int(entry.mask("cross", 0, 0)[0].sum()) for entry in entries)
    if yours >= other:
        return f"Your sentence has {yours} tokens; the other sentence has {other} and is padded to {yours}."
    return f"Your sentence has {yours} tokens and is padded to {other}: {other - yours} columns are masked."


def _picture(entry: Translation, name: str, head: Head) -> None:
    window = Window(*window_around(len(entry.source_tokens), 0), *window_around(len(entry.source_tokens), 0))
    view: HeadView = entry.head("encoder", *head, window=window)
    panel(
        f"batch {name}",
        lambda: heatmap(view, size=480),
        f"{name} · {captions.caption(view).replace('{step}', '')}",
        alt=f"Encoder self-attention of {name}, {labels.head_phrase(view.layer, view.head)}",
        audit=view.audit,
        width="content",
    )
