"""Sentences that templates make, with every kind of model and change: no raw piece, no broken
grammar.

A row is a page, a model and its changes. Whatever the page says is read once.
"""

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from app_pages import PAGES, feeds, run
from nightly import thinned
from streamlit.testing.v1 import AppTest

from explorer.app.address import sitemap

SECTIONS = {
    sitemap.script(name): (*page.sections, *page.ways) for name, page in sitemap.PAGES.items()
}
FIXED = {
    "pages/findings.py",
    "pages/glossary.py",
    "pages/lessons.py",
    "pages/paper.py",
    "pages/open_file.py",
}
"""Pages whose texts no model changes."""
ADDRESSES = [
    (page, view) for page in PAGES if page not in FIXED for view in SECTIONS[page] or (None,)
]
SENTENCE = "The old house is not for sale."
CHANGED = {
    "en-de": (
        "",
        "hide_2~choose_3_▁ein~ablate_cross_2_6_mean",
        "drop_3~forbid_▁Haus",
        "choose_3_▁xxxx",
    ),
    "en-pt": ("", "edit_1_▁A~ablate_encoder_1_1", "hide_2"),
    "positions/t5": ("", "hide_1~unscaled_cross_1_1"),
    "recurrent/local": ("", "hide_2"),
    "encoder/masked-en": ("", "ablate_encoder_1_1~mask_encoder_forbid_x.2", "edit_2_▁old"),
    "language/lm-en": ("", "choose_6_▁xxxx", "ablate_decoder_1_1~forbid_▁the"),
}
TEXTS = {"language/lm-en": "The old house", "encoder/masked-en": "The old [MASK] is for sale."}
"""What is not translated."""
CASES = [(model, changes) for model, several in CHANGED.items() for changes in several]
PLACES = "source token|step|encoder|decoder"
COUNTED = "tokens|steps|runs|changes|heads|words|cells|rows|sentences|keys|queries"
FAULTS = {
    "a raw piece": r"▁",
    "a clause after a preposition": rf"\b(without|beside|by) ({PLACES}) \S+ (is|becomes|writes)\b",
    "one of several": rf"(?<![\d,.])1 ({COUNTED})\b",
    "two marks": r"(?<!\.)\.\.(?!\.)|,,|;;|\S ;|[a-z] ,",
    "an empty quotation": r"“”",
    "a value of Python": r"\bNone\b(?! (of|is|was|are))|\b(nan|True|False)\b",
}


def texts(at: AppTest) -> Iterator[str]:
    """What a page says to its visitor, help and the feeds of its figures included."""
    for kind in ("markdown", "caption", "info", "error", "warning"):
        for each in getattr(at, kind):
            yield each.value
            yield getattr(each.proto, "help", "")
    for button in at.button:
        yield button.label
        yield button.help or ""
    for feed in feeds(at).values():
        for name in (
            "title",
            "about",
            "caption",
            "alt",
            "badge",
            "sentences",
            "notes",
            "limit",
            "absent",
        ):
            yield from strings(feed.get(name))


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from strings(part)
    elif isinstance(value, list | tuple):  # parts of one sentence
        if value and all(isinstance(part, str) for part in value):
            yield "".join(f"“{part}”" if i % 2 else part for i, part in enumerate(value))
        else:
            for part in value:
                yield from strings(part)


def faults(at: AppTest) -> list[tuple[str, str]]:
    told = dict.fromkeys(text.replace("\\", "") for text in texts(at))
    return [
        (name, text) for text in told for name, fault in FAULTS.items() if re.search(fault, text)
    ]


@pytest.mark.parametrize(("case", "address"), thinned(product(CASES, ADDRESSES), 11), ids=str)
def test_a_sentence_has_no_raw_piece_and_no_broken_grammar(
    case: tuple[str, str], address: tuple[str, str | None]
) -> None:
    (model, changes), (page, view) = case, address
    values = {"text": TEXTS.get(model, SENTENCE)}
    values |= {"changes": changes} if changes else {}
    values |= {} if view is None else {"view": view}
    assert faults(run(page, model=model, **values)) == []


OF_MODELS = {"positions", "recurrent", "cross_attention", "encoder_self_attention", "heads"}
"""Pages that speak of models in general, of models of their own, or of the attention to a source."""
OF_THE_CHOSEN = [place for place in ADDRESSES if Path(place[0]).stem not in OF_MODELS]
ELSEWHERE = "Jain & Wallace (2019)"
"""How a paragraph on the literature begins, some of which is on translation."""


NOT_TRANSLATED = [
    (model, changes)
    for model in ("language/lm-en", "encoder/masked-en")
    for changes in CHANGED[model]
]


@pytest.mark.parametrize(
    ("case", "address"), thinned(product(NOT_TRANSLATED, OF_THE_CHOSEN), 2), ids=str
)
def test_nothing_is_called_a_translation_where_nothing_is_translated(
    case: tuple[str, str], address: tuple[str, str | None]
) -> None:
    (model, changes), (page, view) = case, address
    values = {"text": TEXTS.get(model, "The old house"), "write": "6", "view": view}
    at = run(page, model=model, **values, **({"changes": changes} if changes else {}))
    named = (text for text in texts(at) if not text.startswith(ELSEWHERE))
    assert [text for text in named if re.search(r"[Tt]ranslat", text)] == []
