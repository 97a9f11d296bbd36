"""Encoder self-attention: every source token attends to every source token, once, before step 1."""

from explorer.app.shell.page import open_sentence_page
from explorer.app.shell.waiting import for_pytorch

with for_pytorch("encoder_self_attention"):
    from explorer.app.maps import heads

KIND = heads.KindPage(
    kind="encoder",
    note="**What to notice.** Rows and columns are the same tokens, and every token may read every other, "
    "before it and after it: the encoder has no causal mask, and one sentence alone has no "
    "padding to mask. The encoder runs once, before step 1, so no decode step belongs to it.",
    seeing="Every source token makes a query and compares it with the keys of all source tokens. The weights "
    "of a row say how much of each token's value it takes up; they are positive, and a row sums "
    "to 1. The grid shows all heads: rows are layers, columns are heads.",
)

ALONE = heads.KindPage(
    kind="encoder",
    note=(
        "**What to notice.** Rows and columns are the same tokens, and every token may read every "
        "other, before it and after it: there is no causal mask, and one text alone has no padding "
        "to mask."
    ),
    seeing=KIND.seeing.replace("source token", "token"),
)
"""The page of a run without steps, which need not have a decoder."""

opened = open_sentence_page("encoder_self_attention", kinds=("encoder",))
if opened is not None:
    drawn = ALONE
    if opened.translation.steps:
        drawn = KIND
    heads.show(drawn, opened)
