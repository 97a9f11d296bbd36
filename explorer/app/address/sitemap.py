"""The map of the app: every page and section by name, what it shows in a line, and what to look at next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

TRANSLATE = "translate"
"""The sort of models that most pages show."""


@dataclass(frozen=True)
class Entry:
    """A page, or a section of one."""

    name: str  # in the menu, in a switch and in links
    told: str  # what it shows, in a line
    # the place that a reader would want after it; for a section, that after its page if empty
    next: str = ""
    draws: str = ""  # whose pictures it shows, if not those of the model that is chosen in the menu
    file: str = ""  # for a section, the file of its page that draws it; named like the section if empty


@dataclass(frozen=True)
class Page(Entry):
    """A page and its sections."""

    icon: str = ""  # in the menu
    title: str = ""  # the heading; the name if empty
    sort: str = TRANSLATE  # the sort of models that it shows; each sort has a place of its own
    # by the value of `view` in the address, which the first one leaves out
    sections: dict[str, Entry] = field(default_factory=dict)
    ways: dict[str, str] = field(default_factory=dict)  # of drawing the same: their names, by `view` too


@dataclass(frozen=True)
class Door:
    """A group of the menu."""

    name: str  # its heading
    told: str  # what is behind it, in a line
    # its places (`training`, `training/loss`); what is looked at together is one entry, named like its first
    # page unless `TOGETHER` says otherwise, whose pages link to one another
    entries: tuple[tuple[str, ...], ...]
    folded: bool = False  # whether a click opens it


HOME, LESSONS = "app", "lessons"
PAGES: dict[str, Page] = {
    LESSONS: Page(
        "Lessons",
        "A path from a first map to what a head does, and how you know.",
        "paper",
        icon=":material/school:",
    ),
    "paper": Page(
        "The paper",
        "Each equation, figure and table of “Attention Is All You Need”, and the live number here.",
        "glossary",
        icon=":material/article:",
    ),
    "glossary": Page(
        "Glossary",
        "The words of this field, in two sentences each, and where to see what they mean.",
        HOME,
        icon=":material/menu_book:",
    ),
    HOME: Page(
        "Translate",
        "Watch a Transformer translate, and see what it reads at every step.",
        "cross_attention",
        icon=":material/translate:",
        title="Attention explorer",
    ),
    "encoder_self_attention": Page(
        "Encoder self-attention",
        "Every source token reads every source token, once, before the first step.",
        "decoder_self_attention",
        icon=":material/input:",
    ),
    "decoder_self_attention": Page(
        "Decoder self-attention",
        "Every target token reads itself and those before it; the mask hides those to come.",
        "masks",
        icon=":material/output:",
        ways={"decoded": "as decoded", "trained": "as trained"},
    ),
    "cross_attention": Page(
        "Cross-attention",
        "Every target token reads the source through the encoder's output.",
        "encoder_self_attention",
        icon=":material/compare_arrows:",
        sections={"attention": Entry("attention", ""), "alignment": Entry("word alignment", "")},
    ),
    "heads": Page(
        "Heads over sentences",
        "What each head does over hundreds of sentences: role, examples, statistics.",
        "inside_a_head",
        icon=":material/library_books:",
    ),
    "masks": Page(
        "Masks",
        "The keys that a query may not see, why they get −∞, and what would leak otherwise.",
        "heads",
        icon=":material/grid_off:",
        sections={"alone": Entry("your sentence alone", ""), "batch": Entry("in a batch", "")},
    ),
    "inside_a_head": Page(
        "Inside a head",
        "One query of one head, step by step, with the model's own numbers.",
        "whole_model",
        icon=":material/function:",
    ),
    "whole_model": Page(
        "The whole model",
        "The running model as a diagram: what each part does to the token at the cursor.",
        "beam_search",
        icon=":material/account_tree:",
    ),
    "beam_search": Page(
        "Beam search",
        "The translations that the model considered, as a tree, and why it chose this one.",
        "what_if",
        icon=":material/alt_route:",
        sections={
            "beam": Entry(
                "beam search",
                "Beam search keeps several unfinished translations at once. The tree shows the best 2 × beam "
                "continuations of each step.",
            ),
            "sampling": Entry(
                "sampling",
                "Sampling draws each token at random, by its probability after temperature, top-k and top-p. "
                "Several draws form a tree.",
            ),
        },
    ),
    "what_if": Page(
        "What if",
        "Change one thing in the running model, translate again, and see what it did.",
        "explanation",
        icon=":material/science:",
        sections={
            "changes": Entry("change the model", ""),
            "compare": Entry("compare two maps", "Two maps side by side, and the difference between them."),
        },
    ),
    "explanation": Page(
        "Explanation",
        "Which words a token rests on; a weight, what it carried and what it did are three numbers.",
        "positions",
        icon=":material/balance:",
        ways={"why": "why this token?", "shares": "from the source?"},
    ),
    "training": Page(
        "Training",
        "What a model is shown, what its loss asks for, how it went; and a small model that learns here.",
        "recurrent",
        icon=":material/model_training:",
        sections={
            "shown": Entry(
                "what it is shown",
                "Training shows the model the whole target at once; every position learns in the same pass.",
                file="lesson",
            ),
            "loss": Entry(
                "loss",
                "Label smoothing asks for a little less than certainty: what that does at one position.",
            ),
            "schedule": Entry(
                "schedule",
                "The learning rate rises while training warms up, then falls. Here is how, step by step.",
            ),
            "history": Entry(
                "how it went", "What this model's own training measured, from its first step to its last."
            ),
            "here": Entry(
                "train here",
                "A small model learns a small task on this server, while you watch.",
                draws="the model that is being trained",
                file="workshop",
            ),
        },
    ),
    "positions": Page(
        "Positions",
        "How a model that reads all tokens at once knows their order.",
        "training",
        icon=":material/straighten:",
        draws="formulas, and twins that differ in their positions only",
        sections={
            "tables": Entry("what it is", ""),
            "together": Entry("side by side", "Any two encodings, on one word that is said many times."),
            "sentence": Entry("on your sentence", ""),
        },
    ),
    "recurrent": Page(
        "Recurrent",
        "The same sentence through a recurrent network with attention and through a Transformer.",
        "language_model",
        icon=":material/replay:",
        draws="recurrent twins, English → German, and the Transformer that they are compared with",
        sections={
            "maps": Entry("two alignments", ""),
            "path": Entry("path length", "How many steps lie between two tokens of your sentence."),
        },
    ),
    "language_model": Page(
        "Language model",
        "A causal Transformer without an encoder continues your text.",
        "findings",
        icon=":material/notes:",
        sort="language",
        sections={
            "generation": Entry("generation", "The model continues your text, one token at a time."),
            "surprisal": Entry(
                "surprisal",
                "The model reads your text: how many bits does each token cost, given those before it?",
            ),
            "lengths": Entry(
                "every position predicts", "Every position predicts its next token from what came before."
            ),
        },
    ),
    "findings": Page(
        "Findings",
        "What was measured over many sentences and models, each question with its answer.",
        "open_file",
        icon=":material/biotech:",
    ),
    "open_file": Page(
        "Open a file",
        "Runs that you saved as NPZ under “Export”, shown again and checked, with or without their model.",
        LESSONS,
        icon=":material/folder_open:",
    ),
}
"""Every page by the name of its script."""
VIEWS = tuple(dict.fromkeys(view for page in PAGES.values() for view in (*page.sections, *page.ways)))
"""What an address may say that a page shows."""

RESEARCH = ("findings", "open_file")
"""Places of their own door: the switches of their pages leave them out."""
TOGETHER = {"cross_attention": ("Heads", ":material/grid_view:")}
"""Names and icons of entries with several pages, by their first one."""
DOORS = (
    Door("Learn", "from a map to its meaning", ((LESSONS,), ("paper",), ("glossary",))),
    Door(
        "Explore",
        "one sentence, every head",
        (
            (HOME,),
            ("cross_attention", "encoder_self_attention", "decoder_self_attention", "heads"),
            ("masks",),
            ("inside_a_head",),
            ("beam_search",),
            ("what_if",),
            ("explanation",),
        ),
    ),
    Door(
        "Models",
        "train, and tell apart",
        (
            *(("positions",), ("training",)),
            *(("whole_model",), ("language_model",)),
        ),
    ),
    Door("Research", "what was measured, and runs of your own", (("recurrent",), RESEARCH), folded=True),
)
"""The menu from its top."""


@cache
def script(name: str) -> str:
    """The script of a page, or of a section's page."""
    page = name.partition("/")[0]
    return "app.py" if page == HOME else f"pages/{page}.py"


def page_of(path: str | Path) -> str:
    """The name of the page that a script opens."""
    return Path(path).stem


@cache
def place(name: str) -> Entry:
    """A page, or a section of one: `training`, `training/loss`."""
    page, _, view = name.partition("/")
    return PAGES[page].sections[view] if view else PAGES[page]


@cache
def at(
    page: str,  # as in `PAGES`
    view: str | None,  # the value of `view` in the address
) -> str:
    """The name of the section that an address shows; of the page if it has none."""
    sections = PAGES[page].sections
    if not sections:
        return page
    return f"{page}/{view if view in sections else next(iter(sections))}"


@cache
def title(name: str) -> str:
    """A place as a link calls it: `Training: loss`."""
    page, _, view = name.partition("/")
    if name in RESEARCH:
        return place(name).name
    return PAGES[page].name + (f": {place(name).name}" if view else "")


@cache
def heading(name: str) -> tuple[str, str]:
    """Heading and line of purpose of a place: those of the page, or of a section with a door of its own."""
    page, found = PAGES[name.partition("/")[0]], place(name)
    if name in RESEARCH:
        return found.name, found.told
    return page.title or page.name, page.told


WRITES = "Watch a Transformer write what your text asks for, and see what it reads at every step."
"""What the first page is for with a model that does not translate."""


@cache
def draws(name: str) -> str:
    """Whose pictures a place shows, if not those of the model that is chosen in the menu."""
    return place(name).draws or PAGES[name.partition("/")[0]].draws


def switched(page: str) -> dict[str, Entry]:
    """The sections that the switch of a page offers."""
    return {view: each for view, each in PAGES[page].sections.items() if f"{page}/{view}" not in RESEARCH}


@cache
def after(name: str) -> str:
    """The place that a reader would want after another one: the next section, then the next page."""
    page, _, view = name.partition("/")
    if name not in RESEARCH and view:
        views = list(switched(page))
        following = views[views.index(view) + 1 :]
        if following:
            return f"{page}/{following[0]}"
    return place(name).next or PAGES[page].next


@cache
def beside(page: str) -> tuple[str, ...]:
    """The pages that are looked at together with a page, itself among them; empty if there is no other."""
    entries = (entry for door in DOORS for entry in door.entries if entry is not RESEARCH)
    found = next((entry for entry in entries if page in entry), ())
    return found if len(found) > 1 else ()


def places() -> Iterator[str]:
    """The names of all pages and sections."""
    for name, page in PAGES.items():
        yield name
        yield from (f"{name}/{view}" for view in page.sections)
