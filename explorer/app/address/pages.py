"""Every page as it declares itself: its name, its place in the menu, its sections, its own values.

No PyTorch: the first picture of the app is drawn without it.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from explorer.app.address import page_values

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(frozen=True)
class Section:
    """A section of a page, drawn by the `show` of a file."""

    name: str  # in the page's switch and in links
    purpose: str = ""  # what it shows, in a line
    draws: str = ""  # whose pictures it shows, if not those of the model chosen in the menu
    export: bool = False  # whether it has pictures of its own on a page that has none


@dataclass(frozen=True, kw_only=True)
class Page:
    """What a page says of itself."""

    script: str  # the name of its file without `.py`
    name: str  # in the menu and in links
    purpose: str  # what it shows, in a line
    group: str  # of the menu, in which it stands
    icon: str  # in the menu
    follows: str = ""  # the page after which a reader would want it; empty for the first
    beside: str = ""  # the page that leads the entry of the menu in which it stands, if another
    title: str = ""  # the heading; the name if empty
    draws: str = ""  # as for a section
    # whether it has pictures beside those of a linked view or a step, which have their own
    export: bool = True
    # by the value of `view` in the address, which the first one leaves out
    sections: dict[str, Section] = field(default_factory=dict)
    # of drawing the same: their names, by `view` too
    ways: dict[str, str] = field(default_factory=dict)
    values: tuple[type["DataclassInstance"], ...] = ()  # what it alone reads of an address


DECLARED: tuple[Page, ...] = (
    Page(
        script="app",
        name="Step by step",
        purpose="Watch a Transformer translate, and see what it reads at every step.",
        group="Explore",
        follows="glossary",
        icon=":material/play_circle:",
        export=False,
        title="Attention explorer",
    ),
    Page(
        script="beam_search",
        name="Beam search",
        purpose="The outputs that the model considered, as a tree, and why it chose this one.",
        group="Explore",
        follows="whole_model",
        icon=":material/alt_route:",
        sections={
            "beam": Section(
                "beam search",
                "Beam search keeps several unfinished outputs at once. The tree shows the best "
                "2 × beam continuations of each step.",
            ),
            "sampling": Section(
                "sampling",
                "Sampling draws each token at random, by its probability after temperature, top-k "
                "and top-p. Several draws form a tree.",
            ),
        },
        values=(
            page_values.Tree,
            page_values.BeamSearch,
            page_values.Sampling,
        ),
    ),
    Page(
        script="cross_attention",
        name="Cross-attention",
        purpose="Every target token reads the source through the encoder's output.",
        group="Explore",
        follows="app",
        icon=":material/compare_arrows:",
        export=False,
        sections={
            "attention": Section("attention"),
            "alignment": Section("word alignment", export=True),
        },
        values=(page_values.WordLinks,),
    ),
    Page(
        script="decoder_self_attention",
        name="Decoder self-attention",
        purpose="Every target token reads itself and those before it; the mask hides those to come.",
        group="Explore",
        follows="encoder_self_attention",
        icon=":material/output:",
        export=False,
        beside="cross_attention",
        ways={"decoded": "as decoded", "trained": "as trained"},
    ),
    Page(
        script="encoder_self_attention",
        name="Encoder self-attention",
        purpose="Every source token reads every source token, in one pass.",
        group="Explore",
        follows="cross_attention",
        icon=":material/input:",
        export=False,
        beside="cross_attention",
    ),
    Page(
        script="explanation",
        name="Explanation",
        purpose="Which words a token rests on; a weight, what it carried and what it did are three numbers.",
        group="Explore",
        follows="what_if",
        icon=":material/balance:",
        ways={"why": "why this token?", "shares": "from the source?"},
        values=(page_values.Explanation,),
    ),
    Page(
        script="findings",
        name="Findings",
        purpose="What was measured over many sentences and models, each question with its answer.",
        group="Research",
        follows="recurrent",
        icon=":material/biotech:",
        values=(page_values.Findings,),
    ),
    Page(
        script="glossary",
        name="Glossary",
        purpose="The words of this field, in two sentences each, and where to see what they mean.",
        group="Learn",
        follows="paper",
        icon=":material/menu_book:",
        export=False,
    ),
    Page(
        script="heads",
        name="Heads over sentences",
        purpose="What each head does over hundreds of sentences: role, examples, statistics.",
        group="Explore",
        follows="masks",
        icon=":material/library_books:",
        beside="cross_attention",
        values=(page_values.HeadFacts,),
    ),
    Page(
        script="inside_a_head",
        name="Inside a head",
        purpose="One query of one head, step by step, with the model's own numbers.",
        group="Explore",
        follows="heads",
        icon=":material/function:",
        export=False,
        values=(
            page_values.Build,
            page_values.Inside,
        ),
    ),
    Page(
        script="lessons",
        name="Lessons",
        purpose="A path from a first map to what a head does, and how you know.",
        group="Learn",
        icon=":material/school:",
        export=False,
    ),
    Page(
        script="masks",
        name="Masks",
        purpose="The keys that a query may not see, why they get −∞, and what would leak otherwise.",
        group="Explore",
        follows="decoder_self_attention",
        icon=":material/grid_off:",
        sections={"alone": Section("your sentence alone"), "batch": Section("in a batch")},
        values=(page_values.Masks,),
    ),
    Page(
        script="open_file",
        name="Open a file",
        purpose="Runs that you saved as NPZ under “Export”, shown again and checked, with or without their "
        "model.",
        group="Research",
        follows="findings",
        icon=":material/folder_open:",
        export=False,
    ),
    Page(
        script="paper",
        name="The paper",
        purpose="Each equation, figure and table of “Attention Is All You Need”, and the live number here.",
        group="Learn",
        follows="lessons",
        icon=":material/article:",
        export=False,
    ),
    Page(
        script="positions",
        name="Positions",
        purpose="How a model that reads all tokens at once knows their order.",
        group="Models",
        follows="explanation",
        icon=":material/straighten:",
        draws="formulas, and twins that differ in their positions only",
        sections={
            "tables": Section("what it is"),
            "together": Section(
                "side by side", "Any two encodings, on one word that is said many times."
            ),
            "sentence": Section("on your sentence"),
        },
        values=(page_values.Positions,),
    ),
    Page(
        script="recurrent",
        name="Recurrent",
        purpose="The same sentence through a recurrent network with attention and through a Transformer.",
        group="Research",
        follows="training",
        icon=":material/replay:",
        draws="recurrent twins, English → German, and the Transformer that they are compared with",
        sections={
            "maps": Section("two alignments"),
            "path": Section(
                "path length", "How many steps lie between two tokens of your sentence."
            ),
        },
        values=(page_values.Recurrent,),
    ),
    Page(
        script="training",
        name="Training",
        purpose="What a model is shown, what its loss asks for, how it went; and a small model that learns "
        "here.",
        group="Models",
        follows="positions",
        icon=":material/model_training:",
        sections={
            "shown": Section(
                "what it is shown",
                (
                    "Training shows the model the whole target at once; every position learns in the "
                    "same pass."
                ),
            ),
            "surprisal": Section(
                "surprisal",
                "How many bits does each token of a given text cost the model?",
            ),
            "lengths": Section(
                "every position predicts",
                "Every position predicts its next token from what came before.",
            ),
            "loss": Section(
                "loss",
                (
                    "Label smoothing asks for a little less than certainty: what that does at one "
                    "position."
                ),
            ),
            "schedule": Section(
                "schedule",
                (
                    "The learning rate rises while training warms up, then falls. Here is how, step by "
                    "step."
                ),
            ),
            "history": Section(
                "how it went",
                "What this model's own training measured, from its first step to its last.",
            ),
            "here": Section(
                "train here",
                "A small model learns a small task on this server, while you watch.",
                draws="the model that is being trained",
            ),
        },
        values=(
            page_values.Live,
            page_values.Loss,
            page_values.Schedule,
        ),
    ),
    Page(
        script="what_if",
        name="What if",
        purpose="Change one thing in the running model, run it again, and see what it did.",
        group="Explore",
        follows="beam_search",
        icon=":material/science:",
        sections={
            "changes": Section("change the model"),
            "compare": Section(
                "compare two maps", "Two maps side by side, and the difference between them."
            ),
        },
        values=(page_values.Comparison,),
    ),
    Page(
        script="whole_model",
        name="The whole model",
        purpose="The running model as a diagram: what each part does to the token at the cursor.",
        group="Models",
        follows="inside_a_head",
        icon=":material/account_tree:",
        values=(page_values.Diagram,),
    ),
)
"""All pages, in no order that a reader would see: `sitemap` puts them in theirs."""
VALUES: tuple[type["DataclassInstance"], ...] = (
    page_values.Maps,
    *(values for page in DECLARED for values in page.values),
)
"""What a page reads of an address for itself alone: what every page of maps reads, then the
others."""
