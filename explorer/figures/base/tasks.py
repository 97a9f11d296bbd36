"""What a model does with a text, in words: one table for every page, by the task of its config."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True)
class TaskWords:
    """Words for a text of one task, and for what a model makes of it."""

    purpose: str  # what the first page is for
    text: str = "text"  # what is typed
    field: str  # the name of the field for it
    hint: str  # in the empty field
    does: str  # on the button
    doing: str  # while the model runs
    output: str = "text"  # what it writes
    outputs: str = "texts"  # several of those
    line: str = "a text"  # what a line is of a file with texts of one's own
    lines: str  # what is done with those lines, in a sentence
    forced: str = "with a given output"  # how a line with an output was run
    decoded: str = "decoded greedily"  # how one without was
    place: str = "step"  # where something is predicted
    predicted: str = "The next token"  # what is predicted there
    # which of the predictions of two runs can be compared, after a semicolon
    comparable: str = (
        "up to the step at which the runs part, because a change contradicts the unchanged output"
    )


_TRANSLATE = TaskWords(
    purpose="Watch a Transformer translate, and see what it reads at every step.",
    text="sentence",
    field="Sentence to translate",
    hint="Type a sentence and press Enter",
    does="Translate",
    doing="Translating",
    output="translation",
    outputs="translations",
    line="a sentence, or sentence, tab, translation",
    lines="A given translation is forced; without one, the model translates greedily.",
)
_READ = TaskWords(
    purpose="Watch a Transformer read a sentence, and see what each of its heads attends to.",
    text="sentence",
    field="Sentence to read",
    hint="Type a sentence and press Enter",
    does="Read",
    doing="Reading",
    line="a sentence",
    lines="The model reads each sentence as it is.",
    forced="read as it is",
    decoded="read as it is",
    place="mask",
    predicted="The word",
    comparable="each mask is read with the text as it stands, so all can be compared",
)
WORDS = {
    "translate": _TRANSLATE,
    "write": TaskWords(
        purpose="Watch a Transformer write what a text asks for, and what it reads at every step.",
        field="Text to go by",
        hint="Type a text and press Enter",
        does="Write",
        doing="Writing",
        line="a text, or text, tab, output",
        lines="A given output is forced; without one, the model writes greedily.",
    ),
    "fill": replace(
        _READ,
        purpose="Watch a Transformer read a sentence, and what it puts where a word is masked.",
        hint="Type a sentence, with [MASK] for a hidden word, and press Enter",
        output="filled text",
        outputs="filled texts",
        line="a sentence, with [MASK] for a hidden word",
    ),
    "continue": TaskWords(
        purpose="Watch a Transformer continue your text, and see what it reads at every step.",
        field="Text to continue",
        hint="Type a text and press Enter; Shift+Enter begins a line",
        does="Continue",
        doing="Writing",
        lines="The model reads each text as it is, and writes nothing after it.",
        forced="read as it is",
    ),
    "read": _READ,
    "show": TaskWords(
        purpose="Look into weights of your own, head by head: nobody checked them here.",
        field="Text",
        hint="",
        does="Show",
        doing="Opening",
        lines="Weights alone read no texts.",
    ),
}
"""By `ModelConfig.task`."""
