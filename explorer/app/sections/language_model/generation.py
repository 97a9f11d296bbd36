"""Generation: the model continues a prompt, token by token; the linked view of a text."""

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.kinds import SAMPLE, Moves
from explorer.app.controls import formula, plain, seen
from explorer.app.maps import display, heads
from explorer.app.maps.explorer import Scene, Strips, explorer, prefix_of
from explorer.app.maps.looking import Looks
from explorer.app.maps.run_export import run_export
from explorer.app.server.view import View
from explorer.figures.base import labels
from explorer.figures.base.bars import shown_candidates
from explorer.linked.view.feeds import race_feed
from explorer.linked.view.home import Layout
from explorer.linked.view.strips import SIDES as OF_PAIRS
from explorer.linked.view.wire import Feed
from transformer.run import Translation
from transformer.text import words

KIND = "decoder"
SIDES = {**OF_PAIRS, "target": "text"}
EXAMPLES = {
    "agreement": "The books on the table",
    "a story": "When I was a child, I",
    "a condition": "If it rains tomorrow,",
    "repetition": "Tom likes Mary. Mary likes",
    "from nothing": "",
}
SEEING = (
    "Every token makes a query and compares it with the keys of the tokens read so far, its own "
    "among them; later ones are masked. A row is labelled by the token it reads; the cursor names "
    "the token it predicts."
)
SPLIT = "With this token, the text is split into other pieces, which the model now reads."
NEXT = "click another to continue with it · the token of the text in bold · "
BYTE = re.compile("<0x[0-9A-F]{2}>")


def first(run: Translation) -> int:
    """The step that opens first: that of the first token that the model wrote."""
    return min(run.n_given, len(run.target_tokens) - 1)


def note(run: Translation) -> str:
    written = len(run.target_tokens) - run.n_given
    wrote = f"{labels.counted(written, 'token')}"
    start = ""
    if not run.config.starts_with_token:
        start = f"The text begins with “{plain(labels.display(run.decoder_input_tokens[0]))}”. "
    if not run.n_given and start:
        return f"{start}The model reads it alone and writes {wrote}."
    if not run.n_given:
        return f"Nothing is given: the model reads `<s>` alone and writes {wrote}."
    prompt_words = (
        "1 token of the prompt is"
        if run.n_given == 1
        else f"{run.n_given} tokens of the prompt are"
    )
    if start:
        prompt_words = prompt_words.replace("of the prompt", "after it")
    return (
        f"{start}The {prompt_words} given (underlined); the model writes {wrote} after them, "
        "one by one."
    )


def show(opened: View) -> None:
    run = opened.translation
    way = f"{run.method}, {opened.run_key.drawing}" if run.method.startswith(SAMPLE) else run.method
    view(opened, f"decoding: {way}", Strips(n_given=run.n_given))


def view(
    opened: View,
    caption: str,  # what a reader should know about the candidates
    strips: Strips,
    more: Mapping[str, Feed] = MappingProxyType(
        {}
    ),  # figures in the place of all heads and of the row
) -> None:
    """Draws the strip, the candidates for the next token, and one head."""
    run = opened.translation
    parts = tuple(more) or ("overview", "row")
    fade = run.method != "forced"

    def layout(now: State, looks: Looks) -> Layout:
        focus = heads.focus_of(looks[KIND], now)
        further = ("whole",) * looks[KIND].is_windowed
        return Layout(
            "language_model", "page", ("target",), ("next", focus, *parts, *further), focus
        )

    def feeds(now: State, looks: Looks) -> dict[str, Feed]:
        race = race_feed(opened.key, run.steps, NEXT + caption, offered(opened))
        feeds = {"next": race, **more, **heads.feeds(looks[KIND], now, fade)}
        return {name: feed for name, feed in feeds.items() if name in layout(now, looks).plots}

    def above(now: State, looks: Looks) -> None:
        heads.choose(looks[KIND], now, tiles="overview" in parts)

    def below(now: State, looks: Looks) -> None:
        positions = run.config.positions
        with st.container(horizontal=True):
            display.tables(lambda: [looks[KIND].read()])
            explanation = f"{SEEING} {formula.explained(KIND, positions)}"
            seen(explanation, formula.attention(KIND, positions, masked=True))
            run_export(scene, lambda now, looks: heads.printed(looks[KIND], now))

    scene = Scene(
        layout=layout,
        opened=opened,
        kinds=(KIND,),
        extra=feeds,
        below=below,
        fade=fade,
        largest=520,
        above=above,
        strips=replace(strips, sides=SIDES),
        go_on=take,
    )
    explorer(scene)


def take(opened: View, step: int, token_id: int) -> Moves:
    """The state's values for continuing with a candidate; both it and its rival count as tried."""
    run = opened.translation
    model = opened.source.load()
    if token_id == run.steps[step].token_id:
        return {}
    session.visit().tried.update(
        (prefix_of(opened, step), piece_id) for piece_id in (token_id, run.steps[step].token_id)
    )
    wanted = tuple(model.whole((*run.target_ids[:step], token_id), run.start_id))
    prompt = model.text(wanted)
    ids = model.ids(prompt)
    if ids != wanted:
        session.notice(SPLIT)
    # a text's own first token is read, and is no step
    steps = len(ids) - (not run.config.starts_with_token)
    return {**session.FRESH, "prompt": prompt, "step": steps - 1}


def offered(opened: View) -> tuple[list[list[int | None]], list[list[int]]]:
    """Ids of each step's candidates, None for what nobody can type; and of those that were tried.

    A text cannot end with a mark, with one byte of a character, or with a blank.
    """
    ids = list[list[int | None]]()
    tried = list[list[int]]()
    for i, step in enumerate(opened.translation.steps):
        row = shown_candidates(step)
        before = prefix_of(opened, i)
        texts = [
            "" if words.is_special(piece_id.token) else piece_id.token.strip(labels.WORD_START)
            for piece_id in row
        ]
        typed = [text and not BYTE.fullmatch(text) for text in texts]
        ids.append(
            [piece_id.token_id if can else None for piece_id, can in zip(row, typed, strict=True)]
        )
        tried.append(
            [
                piece_id.token_id
                for piece_id in row
                if (before, piece_id.token_id) in session.visit().tried
            ]
        )
    return ids, tried
