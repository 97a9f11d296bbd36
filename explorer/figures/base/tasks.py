"""What a model does with a text, in words: one table for every page, by the task of its config."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TaskWords:
    """Words for a text of one task, and for what a model makes of it."""

    purpose: str  # what the first page is for
    text: str  # what is typed
    field: str  # the name of the field for it
    hint: str  # in the empty field
    does: str  # on the button
    doing: str  # while the model runs
    output: str  # what it writes
    outputs: str  # several of those


WORDS = {
    "translate": TaskWords(
        purpose="Watch a Transformer translate, and see what it reads at every step.",
        text="sentence",
        field="Sentence to translate",
        hint="Type a sentence and press Enter",
        does="Translate",
        doing="Translating",
        output="translation",
        outputs="translations",
    ),
    "write": TaskWords(
        purpose="Watch a Transformer write what a text asks for, and what it reads at every step.",
        text="text",
        field="Text to go by",
        hint="Type a text and press Enter",
        does="Write",
        doing="Writing",
        output="text",
        outputs="texts",
    ),
    "fill": TaskWords(
        purpose="Watch a Transformer read a sentence, and what it puts where a word is masked.",
        text="sentence",
        field="Sentence to read",
        hint="Type a sentence, with [MASK] for a hidden word, and press Enter",
        does="Read",
        doing="Reading",
        output="filled text",
        outputs="filled texts",
    ),
    "continue": TaskWords(
        purpose="Watch a Transformer continue your text, and see what it reads at every step.",
        text="text",
        field="Text to continue",
        hint="Type a text and press Enter; Shift+Enter begins a line",
        does="Continue",
        doing="Writing",
        output="text",
        outputs="texts",
    ),
    "read": TaskWords(
        purpose="Watch a Transformer read a sentence, and see what each of its heads attends to.",
        text="sentence",
        field="Sentence to read",
        hint="Type a sentence and press Enter",
        does="Read",
        doing="Reading",
        output="text",
        outputs="texts",
    ),
    "show": TaskWords(
        purpose="Look into weights of your own, head by head: nobody checked them here.",
        text="text",
        field="Text",
        hint="",
        does="Show",
        doing="Opening",
        output="text",
        outputs="texts",
    ),
}
"""By `ModelConfig.task`."""
