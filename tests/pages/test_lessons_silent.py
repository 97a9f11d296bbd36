"""While a lesson's question is open, nothing on the page singles its answer out; then everything
speaks.

What is read: running text, captions, what the linked view is told beside axes and strips, and what
figures write, note, and say under the pointer. Colours, bars and axes are what is asked about.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from app_pages import feeds, named_charts, run, slots, words
from nightly import thinned
from streamlit.testing.v1 import AppTest

from explorer.app.address.parameters import parse
from explorer.app.lessons import asking, files
from explorer.app.lessons.questions import LAST, Measured
from explorer.app.server import examples, models
from explorer.linked.view.silent import LATER

MODELS = ("en-pt", "en-de")
LESSONS = {**files.every()[0], **files.checks()}
NOT_SILENT = {
    "build": "the page draws the weights of the visitor's own query, and nothing of one that is right"
}
"""Quantities whose page keeps nothing back, and why; see tests/pages/test_inside_page.py."""
ASKED = [
    (name, i)
    for name, lesson in LESSONS.items()
    for i, step in enumerate(lesson.steps)
    if step.question is not None and step.question.quantity not in NOT_SILENT
]
IN_OTHER_WORDS = {
    "masked": r"(is|are|\d+) masked|not causal|has no padding",
    "visible": r"\*t\* keys|read \*t\* tokens|(is|are|\d+) masked",
    "search": r"nothing better|greedy search:|part at step|greedy search writes|out of the beam",
    "unsure": r"costs? most",
}
"""What a page says of an answer without its name, where the pages have such sentences."""


def figure_texts(figure: dict[str, Any]) -> Iterator[str]:
    """What a figure writes, and what it would say under the pointer."""
    layout = figure["layout"]
    for frame in (figure, *(figure.get("frames") or ())):  # a title names the row
        assert "Σ" not in str((frame.get("layout", {}).get("title") or {}).get("text"))
    yield from (note.get("text") or "" for note in layout.get("annotations", ()))
    for trace in figure["data"]:
        silent = trace.get("hoverinfo") in ("none", "skip")
        template = "" if silent else trace.get("hovertemplate") or ""
        assert "customdata" not in template
        assert "%{z" not in template
        assert silent or template or trace["type"] == "scatter"
        if trace["type"] != "heatmap" or trace.get("texttemplate"):
            yield from flat(trace.get("text"))
        yield from () if silent else flat(trace.get("hovertext"))


def flat(text: Any) -> Iterator[str]:
    if isinstance(text, str):
        yield text
    elif text is not None:
        for each in text:
            yield from flat(each)


def feed_texts(feed: dict[str, Any]) -> Iterator[str]:
    """What the linked view is told to say, without the names of rows, columns and tokens."""
    assert feed["silent"]
    for name in ("title", "about", "caption", "alt"):
        yield feed.get(name, "")
    yield from flat(
        [feed.get("sentences"), list((feed.get("notes") or {}).values()), feed.get("shares")]
    )
    yield from flat((feed.get("claim") or {}).get("text"))
    for chip in feed.get("target", ()):
        yield from (chip.get("title") or "", (chip["gloss"] or {}).get("text", ""))
    yield from (
        (f"“{name}”" for row in feed["names"] for name in row) if feed["draw"] == "race" else ()
    )
    yield from flat((feed.get("choice") or {}).get("roles"))
    if "figure" in feed:
        yield from figure_texts(json.loads(feed["figure"]))


def shown(at: AppTest, asked: str, text: str) -> Iterator[str]:
    """All texts of a page outside the strip of the lesson, the menu and the translation."""
    for each in unfolded(at.main):
        if each.value not in (text, f"*{asked}*") and not each.value.startswith("**Lesson"):
            yield each.value
    for feed in feeds(at).values():
        yield from feed_texts(feed)
    for chart in named_charts(at).values():
        yield from figure_texts(chart)
    for slot in slots(at).values():
        yield str(slot.get("text", ""))
        for picture in slot.get("pictures", ()):
            yield from (picture["caption"], picture["alt"])
            yield from figure_texts(json.loads(picture["figure"]))


def unfolded(block: Any) -> Iterator[Any]:
    """Texts that nobody has to open: what stands in a popover or an expander is one's own wish."""
    for node in block.children.values():
        if node.type in ("markdown", "caption"):
            yield node
        elif hasattr(node, "children") and node.type not in ("popover", "expander", "expandable"):
            yield from unfolded(node)


def names(option: str, text: str) -> bool:
    """Whether a text names an option; a token is often a word, so it counts in quotes, in bold, as
    a key."""
    if re.fullmatch("“.*”( .*)?", option):
        token = re.escape(option.partition("”")[0][1:])
        return re.search(rf"(“|\*\*|key |^){token}(”|\*\*|$)", text.replace("\\", "")) is not None
    return (
        re.search(rf"(?<!\w){re.escape(option.strip('“”'))}(?!\w)", text.replace("\\", ""))
        is not None
    )


def singled_out(found: Measured, quantity: str, text: str) -> bool:
    """Whether a text names the answer and not every other option, or says one of the measured
    numbers."""
    right = found.options[found.best].name
    if re.search(IN_OTHER_WORDS.get(quantity, "(?!)"), text):
        return True
    if any(option.label and names(option.label.split(" ")[0], text) for option in found.options):
        return True
    if quantity == "visible":
        return re.search(rf"\b{right} (of|keys|cells|masked)", text) is not None
    if quantity == "head-effect" and re.match(rf"\w+ {right}(:|$)", text):  # the head that is shown
        return False
    return names(right, text) and not all(names(each.name, text) for each in found.options)


def model_for(name: str, model: str) -> str:
    """A model that a lesson is about: the given one, or the bundled language model."""
    return "language/lm-en" if "language-model" in LESSONS[name].needs else model


def opened(model: str, name: str, i: int, text: str | None = None) -> AppTest:
    view = LESSONS[name].steps[i]
    model = model_for(name, model)
    text = text or examples.text_on(models.find(model), None)
    return run(
        view.page, **{"text": text, **view.params, "lesson": f"{name}.{i + 1}", "model": model}
    )


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("name", "i"), thinned(ASKED, 3))
def test_nothing_singles_the_answer_of_an_open_question_out(
    name: str, i: int, model: str, monkeypatch: pytest.MonkeyPatch
):
    asked: list[Measured] = []
    answer = asking.answer
    monkeypatch.setattr(asking, "answer", lambda *given: asked.append(answer(*given)) or asked[-1])
    view = LESSONS[name].steps[i]
    model = model_for(name, model)
    for sentence in (None, *examples.offered(models.find(model)).values()):
        at = opened(model, name, i, sentence)
        if asked[-1].has_margin:
            break
    assert not at.error
    found = asked[-1]
    question = view.question
    assert question is not None
    assert at.session_state["visit"].silent == [option.name for option in found.options]
    texts = [text for text in shown(at, plain_of(at, found), view.text) if text]
    assert [text for text in texts if singled_out(found, question.quantity, text)] == []
    if question.quantity == "role":
        kind = question.kind
        if kind == LAST:
            kind = [*models.find(model).sizes][-1]
        layer, head = getattr(at.session_state["state"], kind)
        assert found.options[found.best].name != f"L{layer + 1} H{head + 1}"


def plain_of(at: AppTest, found: Measured) -> str:
    """The question as the strip writes it."""
    said = [each.value for each in at.markdown if each.value.replace("\\", "") == f"*{found.asks}*"]
    assert len(said) == 1
    return said[0][1:-1]


@pytest.mark.parametrize(
    ("name", "i"), [("map", 1), ("by-hand", 2), ("masks", 0), ("explanation", 0)]
)
def test_after_the_answer_everything_speaks(name: str, i: int):
    at = opened("en-pt", name, i)
    assert at.session_state["visit"].silent
    next(each for each in at.button if each.key == "lesson.option.0").click().run()
    assert at.session_state["visit"].silent is None
    assert LATER not in words(at)
    assert not any(feed.get("silent") for feed in feeds(at).values())
    assert LATER not in json.dumps([*feeds(at).values(), slots(at)], ensure_ascii=False)


def test_an_answer_brings_the_cursor_back_to_what_was_asked():
    at = opened("en-pt", "map", 1)
    state = at.session_state["state"]
    at.session_state["state"] = type(state)(**{**vars(state), "step": 0})
    next(each for each in at.button if each.key == "lesson.option.0").click().run()
    assert at.session_state["state"].step == state.step
    assert "**Right.**" in words(at) or "**Not so.**" in words(at)


# --- what an earlier step says -------------------------------------------------------------------

FIRST = [*files.every()[0].items()][:6]
EARLIER = [(name, i) for name, lesson in FIRST for i in range(len(lesson.steps))]


def questions_after(name: str, i: int) -> Iterator[tuple[str, int]]:
    """The steps of the first six lessons that come after one, and ask something that a page can
    state."""
    for later, number in EARLIER[EARLIER.index((name, i)) + 1 :]:
        question = LESSONS[later].steps[number].question
        if question is not None and question.quantity in STATED:
            yield later, number


def read(at: AppTest) -> Iterator[str]:
    """What a visitor reads on a page without a click: its texts, and what the views say at the
    cursor."""
    for each in unfolded(at.main):
        yield each.value
    now = at.session_state["state"]
    for feed in feeds(at).values():
        row = now.step if feed.get("rows") in ("step", "target", None) else now.source
        sentences = feed.get("sentences") or [()]
        parts = sentences[min(row or 0, len(sentences) - 1)]  # plain text and tokens in turns
        yield "".join(f"“{part}”" if i % 2 else part for i, part in enumerate(parts))
        if feed["draw"] == "race":
            names = feed["names"][now.step or 0]
            shares = feed["shares"][now.step or 0]
            listed = zip(names, shares, strict=True)
            yield from (f"step {(now.step or 0) + 1} “{name}” {share}" for name, share in listed)
        for role in flat((feed.get("choice") or {}).get("roles")):
            yield f"role {role}"
    for each in at.selectbox:
        yield str(each.value)


def largest_key_stated(found: Measured, text: str) -> bool:
    """Whether a sentence names a row and the key that is asked for, with its weight."""
    row = re.search(r"(predicts|reads) “(.*?)”", found.asks)
    key = re.match("“(.*)”", found.options[found.best].name)
    assert row
    assert key
    return "of its weight on" in text and all(
        f"“{token[1]}”" in text for token in ([0, row[2]], key)
    )


STATED = {
    "largest-key": largest_key_stated,
    "candidate": lambda found, text: (
        found.asks.partition(":")[0].lower().removeprefix("at ") == text.partition(" “")[0]
        and found.options[found.best].name in text
    ),
    "entropy": lambda found, text: (
        "entropy" in text.lower() and found.options[found.best].label.split(" ")[0] in text
    ),
    "role": lambda found, text: text.startswith("role ") and text != "role ",
    "head-effect": lambda found, text: (
        found.options[found.best].name in text and found.options[found.best].label in text
    ),
}
"""Whether a text states the answer of a question, by quantity."""


@pytest.mark.parametrize(("name", "i"), thinned(EARLIER, 3))
def test_no_step_states_what_a_later_one_asks(name: str, i: int):
    at = opened("en-pt", name, i)
    texts = list(read(at))
    state = at.session_state["state"]
    for later, number in questions_after(name, i):
        step = LESSONS[later].steps[number]
        assert step.question is not None
        named, _ = parse({key: [value] for key, value in step.params.items()})
        view, _ = asking.open_view(
            replace(named, model="en-pt", text=state.text), LESSONS[later].needs
        )
        heads = {
            kind: getattr(named, kind) or getattr(state, kind) or view.source.default_heads[kind]
            for kind in view.kinds
        }
        place = asking.place(view.translation, replace(state, **heads))
        found = asking.answer(view, step.question, place)
        stated = [text for text in texts if STATED[step.question.quantity](found, text)]
        assert stated == [], (later, number + 1)


def test_no_question_stands_twice():
    places = ("text", "step", "decoder", "changes")  # a view may name where it asks
    questions = [
        (step.question, *map(step.params.get, places))
        for lesson in files.every()[0].values()
        for step in lesson.steps
        if step.question
    ]
    assert [question for question in questions if questions.count(question) > 1] == []


@pytest.mark.parametrize(("name", "i"), thinned(ASKED, 6))
def test_that_the_page_keeps_back_is_said_once(name: str, i: int):
    at = opened("en-pt", name, i)
    told = [each.value for each in unfolded(at.main) if LATER in each.value]
    told += [
        text for feed in feeds(at).values() for text in flat(feed.get("sentences")) if LATER in text
    ]
    assert len(told) == (name not in files.CHECKS and at.session_state["visit"].silent is not None)
