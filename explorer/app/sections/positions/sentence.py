"""The visitor's sentence in all twins: heads side by side, words exchanged, the sentence moved."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import streamlit as st

from explorer.app.address import session
from explorer.app.address.encodings import twin_title as title
from explorer.app.address.page_values import Positions
from explorer.app.controls import head_panel, inform, options, panel, part, pickers, plain
from explorer.app.controls.panels import Container
from explorer.app.maps.looking import near
from explorer.app.sections.positions import STACKS, fitted, stack_switch, twins_measured
from explorer.app.server import models
from explorer.app.server.per_run import rearranged
from explorer.app.server.run_key import RunKey
from explorer.app.server.runs import translate
from explorer.app.server.view import View
from explorer.app.shell import frame
from explorer.figures import heatmap
from explorer.figures.base import captions, labels
from explorer.figures.pages.positions import Interval, dots, lines
from explorer.lenses.what_if.controls import encode_moved, swap_words, words_of
from transformer import Translation, Translator
from transformer.config import AttentionKind, Head
from transformer.trace import AttentionTrace
from transformer.view import Array

TWINS_ARE = (
    "{} small models (1.4 million parameters) share data, vocabulary, order of batches and steps. "
    "They differ only in their encoding; the post-norm twin differs in the place of its "
    "LayerNorm, its learning rate and warm-up. All translate greedily, and into German, whatever "
    "model stands in the menu."
)
MAP, CELLS = 228, 32  # px and most tokens of a twin's map
REACH = 20  # largest distance with its own entry; larger ones are added to the ends
SAME = 0.0005  # a weight that changes by less changes by 0 to three decimals
V = TypeVar("V")
Runs = dict[str, Translation]


@part()
def show(opened: View) -> None:
    now = session.current()
    values = now.values(Positions)
    text = opened.run_key.text
    notices = st.empty()
    if runs := translations(text):
        side = stack_switch(now, "sentence")
        twin_maps(runs, side, values.twin_head)
        st.divider()
        swap(text, runs, values.swap)
        st.divider()
        move(text, runs, values.offset)
    with notices:
        frame.show_notices(now)


def translations(text: str) -> Runs:
    """The sentence through every twin that takes it, by the name of the twin."""
    st.markdown("##### The same sentence through the twins")
    twins = {full.partition("/")[2]: model for full, model in models.twins().items()}
    if not twins:
        inform("There are no twins here yet. The project's README says how to train them.")
        return {}
    with st.spinner("Translating with every twin"):
        runs, refused = each_twin(
            list(twins), lambda name: translate(RunKey(twins[name], text, "greedy", None))
        )
    scores = twins_measured().get("scores", {})
    st.caption(TWINS_ARE.format(len(runs)))
    bleu = "BLEU on the test"
    rows = [
        {
            "twin": title(name),
            "translation": runs[name].text if name in runs else refused[name],
            bleu: scores.get(name, {}).get("bleu", {}).get("value", {}).get("value"),
        }
        for name in twins
    ]
    number = st.column_config.NumberColumn(format="%.1f")
    st.dataframe(rows, hide_index=True, column_config={bleu: number}, width="stretch")
    return runs


def each_twin(
    names: Iterable[str], compute: Callable[[str], V]
) -> tuple[dict[str, V], dict[str, str]]:
    """What is computed with each twin, and why some refuse, by name."""
    results = dict[str, V]()
    refused = dict[str, str]()
    for name in names:
        try:
            results[name] = compute(name)
        except ValueError as error:
            refused[name] = str(error)
    return results, refused


def again(runs: Runs, what: tuple[object, ...], compute: Callable[[Translator], V]) -> dict[str, V]:
    """What every twin computes of a rearranged sentence, once; those that refuse are named."""

    def once(name: str) -> V:
        model = models.find(f"{models.TWINS}/{name}").load()
        return rearranged((name, id(model), *what), lambda: compute(model))

    with st.spinner("Running again with every twin"):
        results, refused = each_twin(runs, once)
    if refused:
        inform(plain(" ".join(f"{title(name)}: {why}" for name, why in refused.items())))
    return results


def verdict(failed: list[str]) -> str:
    """The end of a caption: the traces that failed their audit, if any did."""
    return f"audit failed: {', '.join(map(title, failed))}" if failed else "from verified traces"


def spread(values: dict[str, np.ndarray], digits: int) -> tuple[dict[str, Interval], str]:
    """Mean and ends of some values of each twin, and the means in words."""
    cells = {
        name: Interval(*map(float, (number.mean(), number.min(), number.max())))
        for name, number in values.items()
    }
    return cells, "; ".join(
        f"{title(name)}: {cell.value:.{digits}f}" for name, cell in cells.items()
    )


def twin_heads(runs: Runs, kind: str, wanted: Head | None) -> dict[str, Head]:
    """The head of each twin: the wanted one, or that with most weight on the previous token."""
    if wanted is not None:
        layers, heads = next(iter(runs.values())).config.sizes[kind]
        layer, head = map(fitted, ("layer", "head"), wanted, (layers - 1, heads - 1))
        return dict.fromkeys(runs, (layer, head))
    chosen = {}
    for name, run in runs.items():
        weights = np.stack([run.trace.weights(kind, i) for i in range(run.config.sizes[kind][0])])
        before = (
            weights.diagonal(-1, -2, -1).mean(-1) if weights.shape[-1] > 1 else weights[..., 0, 0]
        )
        layer, head = map(int, np.unravel_index(before.argmax(), before.shape))
        chosen[name] = layer, head
    return chosen


def twin_maps(runs: Runs, kind: str, wanted: Head | None) -> None:
    """One head of each twin side by side, and how far those heads look."""
    words, picker = st.columns([1, 2], vertical_alignment="center")
    words.markdown(f"**One head of the {STACKS[kind]} in each twin**")
    layers, count = next(iter(runs.values())).config.sizes[kind]
    chosen = twin_heads(runs, kind, wanted)
    names: dict[Head | None, str] = {None: "each twin's previous-token head"}
    for place in itertools.product(range(layers), range(count)):
        names[place] = f"{labels.head_phrase(*place)} of every twin"
    with picker:
        now = None if wanted is None else next(iter(chosen.values()))
        pickers.choose("positions.twin_head", "Head", names, now, "twin_head")
    with st.container(horizontal=True, gap="small"):
        for name, run in runs.items():
            view = near(run, kind, chosen[name], most=CELLS)
            head_panel(
                f"map-{name}", heatmap, title(name), view, run, size=MAP, alt=captions.summary(view)
            )
    profiles = {name: profile(run.trace, kind, chosen[name]) for name, run in runs.items()}
    reach = min(REACH, max(len(run.source_tokens) for run in runs.values()))
    span = slice(REACH - reach, (REACH if kind == "decoder" else REACH + reach) + 1)
    places = np.arange(-REACH, REACH + 1)[span]
    titles = ("distance, key − query", "weight")
    failed = [
        name
        for name, run in runs.items()
        if not run.audit((AttentionKind(kind), chosen[name][0])).passed
    ]
    ends = ", the ends hold all greater distances" if reach == REACH else ""
    panel(
        "distance",
        lambda: lines(
            places, {name: shares[span] for name, shares in profiles.items()}, titles, title
        ),
        "Attention by distance, averaged over the rows of those heads; −1 is the previous "
        f"token{ends} · {STACKS[kind]}, all "
        f"twins · {verdict(failed)}",
        alt="; ".join(
            f"{title(name)}: {shares[REACH - 1]:.2f} on the previous token"
            for name, shares in profiles.items()
        ),
    )


def profile(trace: AttentionTrace, kind: str, head: Head) -> np.ndarray:
    """(2 × REACH + 1) mean weight of a row at each distance; far ones count in the ends."""
    weights = trace.weights(kind, *head)
    sums = np.zeros(2 * REACH + 1)
    (queries, keys) = weights.shape
    for distance in range(1 - queries, keys):
        sums[min(max(distance, -REACH), REACH) + REACH] += weights.diagonal(distance).sum()
    return sums / queries


def swap(text: str, runs: Runs, wanted: tuple[int, int] | None) -> None:
    """Exchanges two words, and shows which encoders and translations notice."""
    st.markdown("##### Exchange two words: which encodings notice?")
    tokens = next(iter(runs.values())).source_tokens
    words = [word.text for word in words_of(tokens)]
    if len(words) < 2:
        inform("The sentence needs two words.")
        return
    pair = first, second = different_words(len(words), wanted)
    left, right = st.columns(2, gap="large")
    word_pickers(left.columns(2), words, pair)

    def compute(model: Translator) -> tuple[Translation, Array]:
        return swap_words(model, text, first, second)

    swapped = again(runs, ("swap", text, first, second), compute)
    if not swapped:
        return
    changes, alt = spread({name: change for name, (_, change) in swapped.items()}, 2)
    with left:
        panel(
            "swap",
            lambda: dots(changes, "change of the output, share of its length", title, 2),
            "Two words exchanged: change of each word's encoder output; dot: mean, line: "
            f"smallest to largest over {len(tokens)} tokens. 0 means that the encoder does not "
            "notice",
            alt=alt,
        )
    rows = [
        {"twin": title(name), "translation now": run.text} for name, (run, _) in swapped.items()
    ]
    right.dataframe(rows, hide_index=True, width="stretch")


def different_words(count: int, wanted: tuple[int, int] | None) -> tuple[int, int]:
    """Two different places among so many words: those wanted, as far as they are there."""
    last = count - 1
    first, second = (fitted("word", word, last) for word in wanted or (min(1, last), min(5, last)))
    if first == second:
        first = 0 if second else 1
    return first, second


def word_pickers(boxes: Sequence[Container], words: Sequence[str], pair: tuple[int, int]) -> None:
    """Lets the visitor choose both words."""
    first, second = pair

    def take_first(place: int) -> None:
        session.change(swap=(place, second))

    def take_second(place: int) -> None:
        session.change(swap=(first, place))

    names = options.words(words)
    choices = (("First word", first, take_first), ("Second word", second, take_second))
    for i, (box, (label, place, take)) in enumerate(zip(boxes, choices, strict=True)):
        with box:
            pickers.choose(
                f"positions.swap.{i}", label, names, place, take, texts=True, labelled=True
            )


def move(text: str, runs: Runs, offset: int) -> None:
    """Lets the sentence start later, and shows which twins change their weights."""
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("##### Move the sentence: which maps move?")
        label = "Start this many positions later (nothing stands before the sentence)"
        pickers.slide("positions.offset", label, offset, "offset", ends=(0, max(200, offset)))

        def compute(model: Translator) -> Moved:
            return Moved(encode_moved(model, text, offset), encode_moved(model, text, 0))

        moved = again(runs, ("move", text, offset), compute)
    if not moved:
        return
    n_layers = next(iter(runs.values())).config.sizes["encoder"][0]
    changes, alt = spread({name: traces.changes(n_layers) for name, traces in moved.items()}, 3)
    failed = [name for name, traces in moved.items() if not traces.verified]
    if offset:
        left.markdown(moving(changes))
    with right:
        panel(
            "shift",
            lambda: dots(changes, "change of an attention weight", title, 3),
            f"The sentence at positions {offset + 1}, {offset + 2}, … instead of 1, 2, …: change "
            "of the encoder's weights; dot: mean of the largest change in each head, line: "
            f"smallest to largest head. 0 means that only distances count · {verdict(failed)}",
            alt=alt,
        )


class Moved(NamedTuple):
    """A sentence that starts later, and the same at the beginning."""

    later: AttentionTrace
    usual: AttentionTrace

    def changes(self, n_layers: int) -> np.ndarray:
        """(layers, heads) the largest change of a weight of the encoder."""
        gaps = [
            np.abs(self.later.weights("encoder", layer) - self.usual.weights("encoder", layer))
            for layer in range(n_layers)
        ]
        largest: np.ndarray = np.stack(gaps).max((-2, -1))
        return largest

    @property
    def verified(self) -> bool:
        """Whether both traces pass their audit."""
        return self.later.audit().passed and self.usual.audit().passed


def moving(changes: Mapping[str, Interval]) -> str:
    """In which twins the maps move, as a sentence."""
    moved = [title(name) for name, change in changes.items() if change.high >= SAME]
    still = [title(name) for name, change in changes.items() if change.high < SAME]
    return (
        f"The maps move in {', '.join(moved) or 'none'}, and stay the same in "
        f"{', '.join(still) or 'none'}."
    )
