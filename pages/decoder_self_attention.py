"""Masked decoder self-attention: every target token attends to the target tokens read so far."""

from explorer.app.shell.waiting import for_pytorch

with for_pytorch("decoder_self_attention"):
    from dataclasses import replace

    from explorer.app.address import State, session, sitemap
    from explorer.app.controls import pickers
    from explorer.app.maps import heads
    from explorer.app.server import models
    from explorer.app.server.view import View
    from explorer.app.shell import needs, sentence
    from explorer.app.shell.page import open_sentence_page
    from explorer.figures.base.tasks import WORDS
    from transformer.text.words import NO_PIECE

_NO_TOKEN = "◌ (no token, but a vector of zeros)"
DECODED = heads.KindPage(
    kind="decoder",
    note="**What to notice.** The hatched cells are masked. At step *t* the decoder has read *t* tokens, "
    "`<s>` first, and later ones do not exist yet. So row *t* has *t* keys, and its weights sum "
    "to 1 over them. The first row has one key and no choice.",
    seeing="Every token that the decoder has read makes a query and compares it with the keys of the tokens "
    "read so far. Later tokens are masked: their scores become −∞ and their weights exactly 0. A "
    "row is labelled by the token it reads; the cursor names the token it predicts.",
)
TRAINED = replace(
    DECODED,
    note="**What to notice.** The whole target is there from the start, *shifted right* by one: row 1 "
    "reads `<s>`, and every other row reads the token that the row above it has to predict. Only "
    "the mask (hatched) keeps a row from reading its own answer and what follows it. Without the "
    "mask, training would teach the decoder to copy. The weights are the same as in decoding, "
    "because in both a row sees the same keys.",
)


READ = replace(
    DECODED,
    note=(
        "**What to notice.** Row *t* reads the *t*-th token. Hatched cells are masked: a row has "
        "as many keys as tokens up to its own, so the first row has one key and no choice."
    ),
    seeing=DECODED.seeing.removesuffix("; the cursor names the token it predicts.") + ".",
)
"""The page of a run without steps, of whose output nothing is known."""


def controls(now: State) -> None:
    """Draws the switch between the two ways; as trained, the visitor may give the reference."""
    source = models.known(now.model)
    is_fixed = source is not None and source.text is not None  # as it was read, in no other way
    if is_fixed or not needs.has(source, "decoder"):
        return
    output = WORDS["translate" if source is None else source.task].output
    way = (
        "As decoded: one row after another. Rows still to come are faded: they are not computed "
        "yet."
    )
    trained = (
        f"As trained: all rows at once under the mask (teacher forcing), over a whole {output}. "
    )
    if now.target is None:
        trained += f"None was given, so the model's own {output} stands in for it."
    else:
        way += f" Your {output} is read token by token, as if the model had chosen it."
        trained += "Here it is your own."
    ways = sitemap.PAGES["decoder_self_attention"].ways
    pickers.variants(ways, now.view, {"decoded": way, "trained": trained})
    if now.view == "trained":
        sentence.own_translation(now)


def show(opened: View) -> None:
    if "decoder" not in opened.kinds:
        needs.tell_lack(opened.source, ("decoder",))
        return
    trained = session.current().view == "trained"
    drawn = TRAINED if trained else DECODED
    if not opened.translation.steps:
        drawn = READ
    if opened.translation.decoder_input_tokens[0] == NO_PIECE:
        drawn = replace(drawn, note=drawn.note.replace("`<s>`", _NO_TOKEN))
    heads.show(drawn, opened, fade=not trained)


opened = open_sentence_page("decoder_self_attention", controls)
if opened is not None:
    show(opened)
