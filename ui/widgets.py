"""Controls and sentences that more than one page uses."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from figures import labels
from figures.captions import KIND_NAMES
from transformer import Translation
from ui import examples, frame, models, opening, state
from ui.linked_view import Head
from ui.models import Request
from ui.values import SAMPLE

_METHODS = {"greedy": "greedy", "beam-4": "beam, 4 hypotheses", "sample-1": "sampling"}
_PROGRESS_EVERY = 0.2


@dataclass(frozen=True)
class Opened:
    """A sentence that is ready to be shown.

    Attributes:
        asked: what identifies the translation.
        translation: the translation with its trace.
        example: the example it is, or None.
    """

    asked: Request
    translation: Translation
    example: examples.Example | None

    @property
    def trace(self) -> str:
        """The short name on which figures, events and the view agree."""
        return self.asked.trace


def control(name: str, value: object, apply: Callable[[Any], object]) -> dict[str, Any]:
    """Key and callback of a widget, as `ui.state` wants them."""
    key = state.control(name, value)
    return {"key": key, "on_change": state.on_control, "args": (name, key, apply)}


def new_text(text: str) -> None:
    """Takes another sentence; the cursor opens where the app chooses."""
    state.change(text=text, target=None, **state.FRESH)


def sentence_box() -> None:
    """The sentence, the way of decoding, the button."""
    now = state.current()
    text = examples.examples()[0].text if now.text is None else now.text
    box, way, button = st.columns([7, 1.8, 1], vertical_alignment="bottom")
    with box:
        st.text_input(
            "Sentence to translate",
            text,
            label_visibility="collapsed",
            placeholder="Type a sentence and press Enter",
            **control("text", text, new_text),
        )
    with way:
        _decoding(now.decode)
    with button:
        st.button("Translate", type="primary", width="stretch")


def _decoding(chosen: str) -> None:
    options = list(_METHODS) if chosen in _METHODS else [*_METHODS, chosen]
    st.selectbox(
        "Decoding",
        options,
        index=options.index(chosen),
        label_visibility="collapsed",
        format_func=_method_name,
        **control("decode", chosen, _take_decoding),
    )


def _method_name(method: str) -> str:
    if method in _METHODS:
        return _METHODS[method]
    return method.replace("sample-", "sampling, seed ").replace("beam-", "beam, hypotheses: ")


def _take_decoding(method: str) -> None:
    state.change(decode=method, target=None, **state.FRESH)


def _sample_again() -> None:
    seed = int(state.current().decode.removeprefix(SAMPLE)) + 1
    _take_decoding(f"{SAMPLE}{seed}")


def below_box() -> None:
    """One line of example sentences, and the visitor's own translation."""
    now = state.current()
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="examples"):
        st.caption("try:", width="content")
        for i, example in enumerate(examples.examples()):
            st.button(
                example.label,
                key=f"example.{i}",
                type="tertiary",
                on_click=new_text,
                args=(example.text,),
                help=frame.plain(example.text),
            )
        if now.decode.startswith(SAMPLE) and now.target is None:
            st.button(
                "draw another sample", type="tertiary", on_click=_sample_again, icon=":material/casino:"
            )
        own_translation(now.target)


def own_translation(target: str | None) -> None:
    """A popover in which the visitor gives a translation, which is then forced through the model."""
    label = "use my own translation" if target is None else "own translation in use"
    with st.popover(label, type="tertiary"):
        st.text_input(
            "Your translation",
            target or "",
            placeholder="Type a translation and press Enter",
            help="The model reads it word by word (teacher forcing) and decodes nothing.",
            **control("target", target or "", _take_target),
        )
        if target is not None:
            st.button("back to the model's translation", on_click=_take_target, args=("",))


def _take_target(target: str) -> None:
    state.change(target=target.strip() or None, **state.FRESH)


def open_sentence(model: str) -> Opened | None:
    """Translates what the state asks for and fits the cursor and the heads to it; None after a refusal."""
    now = state.current()
    text = examples.examples()[0].text if now.text is None else now.text
    asked = models.request(now, model, text)
    try:
        translation = _translate(asked)
        sizes = models.sizes(model)
        defaults = {kind: models.default_head(model, kind) for kind in models.KINDS}
    except (ValueError, OSError) as error:
        st.error(frame.plain(str(error)), icon=":material/error:")
        return None
    example = examples.example_of(text) if asked.target is None else None
    _fit(translation, example, sizes, defaults)
    return Opened(asked, translation, example)


def _translate(asked: Request) -> Translation:
    place = st.empty()
    last = time.monotonic()

    def progress(count: int, token: str) -> None:
        nonlocal last
        if time.monotonic() - last > _PROGRESS_EVERY:
            last = time.monotonic()
            word = frame.plain(labels.display(token))
            place.progress(
                min(0.98, 1 - 0.98**count), f"Translating: {count} tokens so far, the last one {word}"
            )

    translation = models.translate(asked, progress)
    place.empty()
    return translation


def _fit(
    translation: Translation,
    example: examples.Example | None,
    sizes: dict[str, Head],
    defaults: dict[str, Head],
) -> None:
    now = state.current()
    if example is not None and translation.model == models.DEFAULT:
        defaults = {**defaults, "cross": (example.claim.layer, example.claim.head)}
    heads, notes = opening.fit_heads(now, sizes, defaults)
    step, more = opening.fit_position("step", now.step, len(translation.target_tokens))
    source, yet_more = opening.fit_position("source token", now.source, len(translation.source_tokens))
    if step is None:
        claimed = None if example is None else examples.claim_step(example, translation.target_tokens)
        step = opening.default_step(translation.target_tokens) if claimed is None else claimed
    for note in (*notes, *more, *yet_more):
        state.notice(note)
    state.resolve(step=step, source=source, **heads)


def head_picker(kind: str, model: str) -> None:
    """Chooses layer and head of one kind; for use inside the fragment that draws them."""
    chosen = getattr(state.current(), kind)
    layers, heads = models.sizes(model)[kind]
    options = [(layer, head) for layer in range(layers) for head in range(heads)]
    default = models.default_head(model, kind)

    def name(option: Head) -> str:
        text = f"layer {labels.count(option[0])}, head {labels.count(option[1])}"
        return f"{text} (opens first)" if option == default else text

    st.selectbox(
        f"Head of {KIND_NAMES[kind].lower()}",
        options,
        index=options.index(chosen),
        format_func=name,
        label_visibility="collapsed",
        **control(f"head.{kind}", chosen, lambda head: state.change(**{kind: tuple(head)})),
    )


def kind_picker(kind: str, take: Callable[[str], object]) -> None:
    """Chooses encoder, decoder or cross on a page of all three.

    Args:
        kind: the one that is shown.
        take: gets the one that is chosen.
    """
    names = {"encoder": "encoder", "decoder": "masked decoder", "cross": "cross"}
    st.segmented_control(
        "Attention",
        list(names),
        default=kind,
        required=True,
        format_func=names.__getitem__,
        label_visibility="collapsed",
        width="content",
        **control("kind", kind, take),
    )


def row_picker(opened: Opened, kind: str, row: int) -> None:
    """Moves the cursor to another row of a map that is not linked.

    Args:
        opened: the sentence.
        kind: encoder, decoder or cross.
        row: where the cursor stands, from 0.
    """
    run = opened.translation
    tokens, verb = {
        "encoder": (run.source_tokens, "token"),
        "decoder": (run.decoder_input_tokens, "reads"),
        "cross": (run.target_tokens, "predicts"),
    }[kind]
    names = [f"{labels.count(i)} · {verb} {labels.display(token)}" for i, token in enumerate(tokens)]
    moved = "source" if kind == "encoder" else "step"
    st.selectbox(
        "Row of the cursor",
        list(range(len(names))),
        index=row,
        format_func=names.__getitem__,
        label_visibility="collapsed",
        **control(f"row.{kind}", row, lambda i: state.change(**{moved: i})),
    )


def seen(title: str, text: str, formula: str | None = None) -> None:
    """The explanation behind a picture, one click away."""
    with st.popover(title, type="tertiary", icon=":material/help:"):
        st.markdown(text)
        if formula:
            st.latex(formula)


def variants(options: dict[str, str], sentences: dict[str, str] | None = None) -> None:
    """A switch between the variants of a page, with one sentence for each.

    Args:
        options: labels by the value of `view` in the address; the first one is the usual and stays out of it.
        sentences: what each variant shows.
    """
    usual = next(iter(options))
    now = state.current().view
    value = now if now in options else usual

    def take(chosen: str) -> None:
        state.change(view=None if chosen == usual else chosen)

    with st.container(horizontal=True, vertical_alignment="center"):
        st.segmented_control(
            "View",
            list(options),
            default=value,
            format_func=options.__getitem__,
            required=True,
            label_visibility="collapsed",
            width="content",
            **control("view", value, take),
        )
        if sentences:
            st.caption(sentences[value], width="stretch")
