"""The sentence of a page: input box, ways of decoding, and translation."""

from __future__ import annotations

import time

import streamlit as st

from figures.base import labels
from transformer.translate.translation import Translation
from ui.address import session
from ui.address.parameters import State
from ui.address.values import SAMPLE
from ui.controls import options
from ui.controls.pickers import control
from ui.controls.text import plain
from ui.linked_view import Head
from ui.server import catalogue, examples, runs
from ui.server.opened import Opened
from ui.server.runs import Asked
from ui.shell import fitting, sampling, waiting

_PROGRESS_EVERY = 0.2


def new_text(text: str) -> None:
    """Takes a new sentence; the app chooses where the cursor starts."""
    session.change(text=text, target=None, **session.FRESH)


def sentence_box(now: State) -> None:
    """Draws the input box for the sentence, the way of decoding, and the button."""
    text = examples.examples()[0].text if now.text is None else now.text
    box, way, button = st.columns([6.2, 2.6, 1], vertical_alignment="bottom")
    with box:
        st.text_input(
            "Sentence to translate",
            text,
            label_visibility="collapsed",
            placeholder="Type a sentence and press Enter",
            **control("text", text, new_text),
        )
    with way, st.container(key="decoding"):
        _decoding(now.decode)
    with button:
        st.button("Translate", type="primary", width="stretch", on_click=session.keep)


def _decoding(chosen: str) -> None:
    ways = options.decodings(chosen)
    st.selectbox(
        "Decoding",
        list(ways),
        index=list(ways).index(chosen),
        format_func=ways.__getitem__,
        **control("decode", chosen, _take_decoding, ways.values()),
    )


def _take_decoding(method: str) -> None:
    session.change(decode=method, target=None, **session.RUN)


def _sample_again() -> None:
    seed = int(session.current().decode.removeprefix(SAMPLE)) + 1
    _take_decoding(f"{SAMPLE}{seed}")


def below_box(now: State) -> None:
    """Draws one line of example sentences, and the visitor's own translation."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="examples"):
        st.caption("Try:", width="content")
        for i, example in enumerate(examples.examples()):
            st.button(
                example.label,
                key=f"example.{i}",
                type="tertiary",
                on_click=new_text,
                args=(example.text,),
                help=plain(example.text),
            )
        if now.decode.startswith(SAMPLE) and now.target is None:
            st.button(
                "Draw another sample", type="tertiary", on_click=_sample_again, icon=":material/casino:"
            )
            sampling.popover(now)
        own_translation(now.target)


def own_translation(target: str | None) -> None:
    """A popover for the visitor's own translation, which is then forced through the model."""
    label = "Use your own translation" if target is None else "Your own translation is in use"
    with st.popover(label, type="tertiary"):
        st.text_input(
            "Your translation",
            target or "",
            placeholder="Type a translation and press Enter",
            help="The model reads it token by token (teacher forcing) and decodes nothing.",
            **control("target", target or "", _take_target),
        )
        if target is not None:
            st.button("Back to the model's translation", on_click=_take_target, args=("",))


def _take_target(target: str) -> None:
    session.change(target=target.strip() or None, **session.FRESH)


def open_sentence(model: str, now: State) -> Opened | None:
    """Translates the sentence of the state and fits the cursor and the heads to it; None after a refusal."""
    text = examples.examples()[0].text if now.text is None else now.text
    asked = runs.request(now, model, text)
    try:
        translation = _translate(asked)
        sizes = catalogue.sizes(model)
        defaults = {kind: runs.default_head(model, kind) for kind in sizes}
    except (ValueError, OSError) as error:
        st.error(plain(str(error)), icon=":material/error:")
        return None
    example = None if asked.target is not None or asked.changes else examples.example_of(text)
    opened = Opened(asked, translation, example)
    _fit(now, opened, sizes, defaults)
    return opened


class _Teller:
    """Tells the visitor, in one place on the page, how a translation progresses."""

    def __init__(self, name: str) -> None:
        self._name, self._place, self._last = name, st.empty(), time.monotonic()

    def loads(self) -> None:
        self._place.progress(0, waiting.loads(self._name))

    def wrote(self, count: int, token: str) -> None:
        if time.monotonic() - self._last > _PROGRESS_EVERY:
            self._last = time.monotonic()
            word = plain(labels.display(token))
            text = f"Translating: {count} token{'s' * (count != 1)} so far, the last one {word}"
            self._place.progress(min(0.98, 1 - 0.98**count), text)

    def end(self) -> None:
        """Clears the place."""
        self._place.empty()


def _translate(asked: Asked) -> Translation:
    teller = _Teller(asked.model)
    translation = runs.translate(asked, teller)
    teller.end()
    return translation


def _fit(
    now: State,
    opened: Opened,
    sizes: dict[str, Head],
    defaults: dict[str, Head],
) -> None:
    translation, example = opened.translation, opened.example
    if example is not None and translation.model == catalogue.DEFAULT:
        defaults = {**defaults, "cross": (example.claim.layer, example.claim.head)}
    heads, notes = fitting.fit_heads(now, sizes, defaults)
    step, more = fitting.fit_position("step", now.step, len(translation.target_tokens))
    source, yet_more = fitting.fit_position("source token", now.source, len(translation.source_tokens))
    step = opened.first_step if step is None else step
    for note in (*notes, *more, *yet_more):
        session.notice(note)
    session.resolve(step=step, source=source, **heads)
