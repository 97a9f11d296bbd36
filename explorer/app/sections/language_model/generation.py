"""Generation: the model continues a prompt, token by token."""

from __future__ import annotations

from explorer.app.address.kinds import SAMPLE
from explorer.app.maps.explorer import Strips
from explorer.app.sections.language_model import view
from explorer.app.server.opened import Opened
from transformer.run import Translation

EXAMPLES = {
    "agreement": "The books on the table",
    "a story": "When I was a child, I",
    "a condition": "If it rains tomorrow,",
    "repetition": "Tom likes Mary. Mary likes",
    "from nothing": "",
}


def first(run: Translation) -> int:
    """The step that opens first: that of the first token that the model wrote."""
    return min(run.given, len(run.target_tokens) - 1)


def told(run: Translation) -> str:
    """Numbers of tokens given, and of those that the model wrote."""
    written = len(run.target_tokens) - run.given
    wrote = "1 token" if written == 1 else f"{written} tokens"
    if not run.given:
        return f"Nothing is given: the model reads `<s>` alone and writes {wrote}."
    given = "1 token of the prompt is" if run.given == 1 else f"{run.given} tokens of the prompt are"
    return f"The {given} given (underlined); the model writes {wrote} after them, one by one."


def show(opened: Opened, run: Translation) -> None:
    way = f"{run.method}, {opened.asked.drawing}" if run.method.startswith(SAMPLE) else run.method
    view.show(opened, f"decoding: {way}", Strips(given=run.given))
