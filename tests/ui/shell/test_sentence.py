"""What is said of a translation that is far shorter than its source."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sources import named

from transformer import Translator
from ui.server.opened import Opened
from ui.server.runs import Request
from ui.shell.sentence import short


@pytest.mark.parametrize(
    ("read", "written", "last", "method", "told"),
    [
        (215, 58, "</s>", "greedy", True),
        (215, 108, "</s>", "greedy", False),
        (20, 5, "</s>", "greedy", False),
        (215, 58, "x", "greedy", False),  # cut: the run itself says so
        (215, 58, "</s>", "forced", False),
    ],
)
def test_only_a_long_text_that_ended_early_is_told(
    solved: Translator, read: int, written: int, last: str, method: str, told: bool
):
    run = replace(
        solved.translate("one two", capture=False),
        source_tokens=("x",) * read,
        target_tokens=(*["x"] * (written - 1), last),
        method=method,
    )
    said = short(Opened(Request(named("solved"), "one two", "greedy", None), run, None))
    assert said == (("The translation ended after 58 tokens; the source has 215.",) if told else ())
