"""Cross-attention: every target token attends to the source tokens through the encoder's output."""

from explorer.app.address import session
from explorer.app.controls import inform
from explorer.app.shell import sections
from explorer.app.shell.page import open_sentence_page
from explorer.app.shell.waiting import for_pytorch

with for_pytorch("cross_attention"):
    from explorer.app.maps import heads
    from explorer.app.sections.cross_attention import alignment

KIND = heads.KindPage(
    kind="cross",
    note="**What to notice.** Self-attention looks inside its own sequence. Here the queries come from the "
    "decoder, and the keys and values from the encoder's output. In a Transformer, the source "
    "reaches the "
    "translation in no other way; a recurrent decoder also starts from the encoder's last state. "
    "If both "
    "languages put the words in the same order, the cells of most weight lie near the diagonal; a "
    "word that "
    "moves leaves it.\n\n"
    "**A weight is a token's share in this head's sum, not how much it carried, nor how much it "
    "mattered.** "
    "Only a change shows what the translation needs: without this head, the translation may well "
    "stay the "
    "same.\n\n"
    "The same attention serves whenever one text reads another: in reading comprehension, for "
    "example, each "
    "word of the text attends to the words of the question.",
    seeing="The decoder's state at each step makes a query and compares it with the keys of all source "
    "tokens, which the encoder computed once. A row is labelled by the token it predicts; "
    "hovering also names the token it reads. No mask hides source tokens, because the whole "
    "source is there from the start; in a batch, padding is masked.",
)

READ = heads.KindPage(
    kind="cross",
    note=(
        "**What to notice.** Self-attention looks inside its own sequence. Here the queries come "
        "from one sequence, and the keys from another. If both have the same order, the cells of "
        "most weight lie near the diagonal.\n\n"
        "**A weight is a token's share in this head's sum, not how much it carried, nor how much "
        "it mattered.** Only a change shows what a model needs, and weights alone cannot be "
        "changed."
    ),
    seeing=(
        "Each token of one sequence makes a query and compares it with the keys of all tokens of "
        "another. A row is labelled by the token that was read. No mask hides keys, because their "
        "whole sequence is there from the start."
    ),
)
"""The page of a run without steps, of whose output nothing is known."""

_UNPREDICTED = (
    "Word alignment asks which row predicts a word, which weights alone do not say. The maps are "
    "under “attention”."
)

opened = open_sentence_page(
    "cross_attention", lambda now: sections.switch("cross_attention", now), kinds=("cross",)
)
if opened is not None and session.current().view == "alignment":
    if opened.translation.steps:
        alignment.show(opened)
    else:
        inform(_UNPREDICTED)
elif opened is not None:
    drawn = READ
    if opened.translation.steps:
        drawn = KIND
    heads.show(drawn, opened)
