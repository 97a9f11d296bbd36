"""The sentence of a page: input box, ways of decoding, and translation."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.kinds import AS_ONE, SAMPLE
from explorer.app.address.state import SHARED
from explorer.app.controls import options, pickers, plain, refusal
from explorer.app.controls.pickers import choose
from explorer.app.server import examples, hosted, models, runs
from explorer.app.server.hosted import TIMES
from explorer.app.server.run_key import RunKey
from explorer.app.server.source import Source
from explorer.app.server.view import View
from explorer.app.shell import sampling, waiting
from explorer.app.shell.fitting import fit_chosen, fit_heads, fit_position
from explorer.figures.base import labels
from explorer.figures.base.tasks import WORDS
from explorer.linked.view.strips import positions_of


def new_text(text: str | None) -> None:
    """Takes a new sentence, or the first example for None.

    The app chooses where the cursor starts.
    """
    session.change(text=text, target=None, **session.FRESH)


def decoding(now: State) -> None:
    """Draws the choice of the way of decoding."""
    named = now.decode.replace("sample-", "sampling, seed ").replace("beam-", "beam, hypotheses: ")
    ways = {**options.METHODS, now.decode: options.METHODS.get(now.decode, named)}
    with st.container(key="decoding"):
        choose("decode", "Decoding", ways, now.decode, _take_decoding, texts=True, labelled=True)


def sentence_box(
    source: Source,
    now: State,
    way: Callable[[State], None] | None = decoding,
    task: str | None = None,  # of the models that the page draws, if not of the chosen one
) -> None:
    """Draws the box for the sentence, the way of decoding unless the page decides it, the button.

    A text that is only read is decoded in no way. Nothing where no text can be typed.
    """
    if source.text is not None:
        return
    text = examples.text_on(source, now.text)
    words = WORDS[task or source.task]
    does = words.does
    reads = not source.writes or (source.continues and not now.write)
    if task is None and reads:
        does = "Read"
        way = None
    widths = [6.2, 1] if way is None else [6.2, 2.6, 1]
    box, *middle, button = st.columns(widths, vertical_alignment="bottom")
    with box:
        field = st.text_input
        if task is None and source.continues:  # it may read line breaks; `page/enter.js` runs it
            field = partial(st.text_area, height="content")
        field(
            words.field,
            text,
            label_visibility="collapsed",
            placeholder=words.hint,
            **session.control("text", text, new_text),
        )
    if way is not None:
        with middle[0]:
            way(now)
    with button:
        st.button(does, type="primary", width="stretch", on_click=session.keep)


def _take_decoding(method: str) -> None:
    session.change(decode=method, target=None, **session.RUN)


def below_box(source: Source, now: State) -> None:
    """Draws what the text may ask for, one line of example sentences, and the visitor's own
    translation; nothing where no text can be typed."""
    if source.text is not None:
        return
    if source.prompts:
        prompts(source, now)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="examples"):
        if source.has_model:  # a file holds one run, of one sentence
            pickers.examples(examples.offered(source, now.text), new_text)
        if (problem := examples.of(source).problem) is not None:
            st.caption(f":material/warning: {refusal(problem)}", width="content")
        if now.target is None:
            draw_again(now)
        if source.continues:
            continuation(source, now)
        elif source.writes:
            own_translation(now, source)


def continuation(source: Source, now: State) -> None:
    """Draws how many tokens follow the text, and whether it is said to a chat model."""
    label = f"Writes {labels.counted(now.write, 'token')}" if now.write else "Only reads the text"
    with st.popover(label, type="tertiary"):
        st.number_input(
            "Tokens to write, at most",
            *(SHARED["write"].kind.ends or ()),
            value=now.write,
            step=1,
            help="With 0 the model reads the text and writes nothing: how probable is each token?",
            **session.control("write", now.write, _take_write),
        )
    if source.chats and now.write:
        st.toggle(
            "As a chat",
            now.chat,
            help="The text is what somebody says to the model, in the form that it was trained on.",
            **session.control("chat", now.chat, _take_chat),
        )


def _stop(run_key: RunKey, n_tokens: int) -> None:
    """Ends what a model writes after so many tokens, those of the prompt among them."""
    model = run_key.source.load()
    n_given = model.prompt_steps(runs.typed(model, run_key))
    session.change(write=max(1, n_tokens - n_given), **session.RUN)


def _take_write(count: int) -> None:
    session.change(write=count, **session.RUN)


def _take_chat(chat: bool) -> None:
    session.change(chat=chat, **session.FRESH)


def prompts(source: Source, now: State) -> None:
    """Draws the prompts of a model that is told what to do; one that is chosen begins the text."""
    text = examples.text_on(source, now.text)
    prompt_chosen = examples.prompt_of(source, text)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="prompts"):
        st.caption("Task:", width="content")
        for i, prompt in enumerate(source.prompts):
            begun = f"{prompt}{text.removeprefix(prompt_chosen)}"
            label = plain(prompt.strip().removesuffix(":"))
            button = partial(st.button, label, key=f"prompt.{i}", on_click=new_text, args=(begun,))
            button(type="secondary" if prompt == prompt_chosen else "tertiary")


def draw_again(now: State) -> None:
    """Draws the button for another sample and the settings of sampling, if samples are drawn."""
    if now.decode.startswith(SAMPLE):
        draw = partial(st.button, "Draw another sample", type="tertiary", icon=":material/casino:")
        draw(on_click=_take_decoding, args=(f"{SAMPLE}{int(now.decode.removeprefix(SAMPLE)) + 1}",))
        sampling.popover(now)


def own_translation(now: State, source: Source | None = None) -> None:
    """A popover for the visitor's own output, which is then forced through the model.

    Nothing for a text that is continued: it is its own output, and the page's field holds it.
    """
    source = source or models.known(now.model)
    is_read = source is not None and (not source.writes or source.text is not None)
    if is_read or (source is not None and source.continues):
        return
    target = now.target
    noun = WORDS["translate" if source is None else source.task].output
    label = f"Use your own {noun}" if target is None else f"Your own {noun} is in use"
    with st.popover(label, type="tertiary"):
        st.text_input(
            f"Your {noun}",
            target or "",
            placeholder=f"Type a {noun} and press Enter",
            help="The model reads it token by token (teacher forcing) and decodes nothing.",
            **session.control("target", target or "", _take_target),
        )
        if target is not None:
            st.button(f"Back to the model's {noun}", on_click=_take_target, args=("",))


def _take_target(target: str) -> None:
    session.change(target=target.strip() or None, **session.FRESH)


def _notice_sentences(count: int, now: State) -> None:
    """Says how many of a text's sentences are translated, and which is shown in place of none."""
    most = examples.MOST_SENTENCES
    if count > most and now.sentence != AS_ONE:
        session.notice(
            f"This text has {count:,} sentences: the first {most} are translated, the others stay "
            "in the field."
        )
    last = min(count, most) - 1
    if now.sentence is not None and now.sentence > last:
        session.notice(f"This text has {count:,} sentences; sentence {last + 1} is shown.")
        session.resolve(sentence=last)


def open_sentence(source: Source, now: State) -> View | None:
    """Translates the sentence of the state and fits the cursor and the heads to it.

    None after a refusal.
    """
    sentences, text = examples.passage(source, now)
    if len(sentences) > 1:
        _notice_sentences(len(sentences), now)
    try:
        hosted.check(now.text, now.target, times=TIMES)
        run_key = RunKey.of(now, source, text)
        stop = partial(_stop, run_key) if source.continues else None
        with waiting.telling(WORDS[source.task].doing, stop) as progress:
            translation = runs.translate(run_key, progress)
    except (ValueError, OSError) as error:
        st.error(refusal(error), icon=":material/error:")
        if not text.strip():
            st.button(
                "Back to the example", icon=":material/undo:", on_click=new_text, args=(None,)
            )
        return None
    example = (
        None if run_key.target is not None or run_key.changes else examples.example_of(source, text)
    )
    opened = View(run_key, translation, example)
    first = {}
    if example is not None and examples.of(source).are_its:
        first = {"cross": (example.claim.layer, example.claim.head)}
    heads = fit_heads(now, source, first)
    cursor = _cursor(opened, now)
    session.resolve(**{**cursor, **fit_chosen(now, translation), **heads})
    return opened


def _cursor(opened: View, now: State) -> dict[str, int | None]:
    """The cursor of the state inside the run; what the address does not say is as the run opens.

    A run without tokens of a decoder has no step.
    """
    run = opened.translation
    names = positions_of(run)
    step = fit_position(names["step"], now.step, len(run.target_tokens))
    source = fit_position(names["source"], now.source, len(run.source_tokens))
    if step is None and run.target_tokens:
        step = opened.opening.step
    if source is None:
        source = opened.opening.source
    return {"step": step, "source": source}
