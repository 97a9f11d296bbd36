"""Sampling: its settings, the tree of several draws, and each step's distribution before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.kinds import SAMPLE
from explorer.app.controls import Table, panel, pickers, plain
from explorer.app.sections.beam_search import node
from explorer.app.sections.beam_search.tree import beside_greedy, choose, node_rows
from explorer.app.server import per_run, runs
from explorer.app.server.hosted import Bounds
from explorer.app.server.opened import Opened
from explorer.app.server.runs import Drawing
from explorer.app.shell import sampling, waiting
from explorer.figures.base import labels
from explorer.figures.base.bars import percent
from explorer.figures.pages.distributions import before_after
from explorer.figures.pages.search import KEPT, STEPS, WON, Beside, Branch, search_tree
from explorer.lenses.targets.filters import FilteredStep
from transformer.run import Translation
from transformer.sampling import Draws

_LEGEND = {WON: "the most probable", KEPT: "the others"}
_SEEING = (
    "Each draw follows one output. At each step, temperature T reshapes the distribution; top-k keeps the k "
    "most probable tokens; top-p keeps the fewest whose probabilities reach p. What is left is rescaled to "
    "sum to 1, and one token is drawn. log p is always the model's own, before all of this."
)
_ALL = 0.9995
"""Probability from which nothing worth mentioning is left out."""
_FORMULA = r"p_T(v) = \frac{p(v)^{1/T}}{\sum_{w} p(w)^{1/T}}"


def show(opened: Opened, now: State) -> None:
    _settings(now)
    drawing, first = runs.drawing_of(now), _first_seed(now)
    seeds = range(first, first + now.draws)
    asked = replace(opened.asked, target=None)
    with waiting.progress(f"Drawing {now.draws} samples", stop="sampling.stop") as tell:
        draws = per_run.drawn(asked, drawing, seeds, tell)
    greedy = runs.translate(replace(asked, decode="greedy", drawing=runs.USUAL))
    chosen = _chosen(draws, now)
    sample = draws.nodes[chosen].samples[0]
    st.markdown(_found(draws, seeds, greedy))
    _picture(draws, greedy, chosen, drawing, seeds, now)
    _sample(replace(asked, decode=f"{SAMPLE}{seeds[sample]}", drawing=drawing), seeds[sample])
    _table_of_draws(draws, seeds)


def _first_seed(now: State) -> int:
    if now.seed is not None:
        return now.seed
    return int(now.decode.removeprefix(SAMPLE)) if now.decode.startswith(SAMPLE) else 1


def _chosen(draws: Draws, now: State) -> int:
    if now.node is not None and now.node < len(draws.nodes):
        return now.node
    return draws.leaf(draws.best)


def _take_draws(count: int) -> None:
    session.change(draws=count, node=None)


def _settings(now: State) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="search-settings"):
        for draw in sampling.controls(now):
            with st.container(width=150):
                draw()
        with st.container(width=150):
            most = max(int(Bounds.from_environment().draws), now.draws)
            pickers.slide("draws", "Draws", now.draws, _take_draws, ends=(1, most))
        st.button(
            "Draw others",
            key="search.again",
            icon=":material/casino:",
            help="Takes the next seeds; a seed always draws the same sample",
            on_click=_again,
        )


def _again() -> None:
    now = session.current()
    session.change(**{**session.RUN, "seed": _first_seed(now) + now.draws})


def _found(draws: Draws, seeds: range, greedy: Translation) -> str:
    """Outputs of the draws, in words."""
    texts = [each.text for each in draws.translations]
    best = draws.translations[draws.best]
    different, same = len(set(texts)), texts.count(greedy.text)
    many = "1 draw" if len(texts) == 1 else f"{len(texts)} draws"
    wrote = "1 translation" if different == 1 else f"{different} different translations"
    told = (
        "no draw writes this"
        if not same
        else "1 draw writes this"
        if same == 1
        else f"{same} draws write this"
    )
    sums = labels.number(sum(best.log_probs)), labels.number(sum(greedy.log_probs))
    return (
        f"{many}, {wrote}.  \n"
        f":gray[most probable, seed {seeds[draws.best]}:] {plain(best.text) or '◌'} "
        f":gray[(Σ log p {sums[0]})]  \n"
        f":gray[greedy search:] {plain(greedy.text) or '◌'} :gray[(Σ log p {sums[1]}; {told})]"
    )


def _picture(
    draws: Draws, greedy: Translation, chosen: int, drawing: Drawing, seeds: range, now: State
) -> None:
    branches = _branches(draws, seeds)
    beside = _greedy(draws, greedy)
    first = min(now.first or 0, max(0, max(each.step for each in branches) + 1 - STEPS))
    panel(
        "samples",
        partial(search_tree, branches, _LEGEND, beside, chosen, first, greedy.decoder_input_tokens[0]),
        f"{len(draws.translations)} samples, {drawing}, seeds {seeds[0]} to {seeds[-1]} · columns are steps "
        f"· thickness = share of samples that take the line · {greedy.model}",
        lambda: _table(draws, seeds),
        seeing=_SEEING,
        formula=_FORMULA,
        take=lambda place: choose(draws.nodes, place),
        scrolls=True,
        inked=True,
    )


def _branches(draws: Draws, seeds: range) -> list[Branch]:
    parents = {each.parent for each in draws.nodes}
    count = len(draws.translations)
    return [
        Branch(
            each.token,
            each.step,
            each.parent,
            len(each.samples) / count,
            WON if draws.best in each.samples else KEPT,
            i not in parents,
            f"{labels.piece(each.token)} · step {labels.count(each.step)}\n"
            f"log p {labels.number(each.log_prob)} · Σ log p {labels.number(each.total)}\n"
            f"{len(each.samples)} of {count} samples: {_seeds(each.samples, seeds)}",
        )
        for i, each in enumerate(draws.nodes)
    ]


def _seeds(samples: Sequence[int], seeds: range) -> str:
    return ("seed " if len(samples) == 1 else "seeds ") + ", ".join(str(seeds[each]) for each in samples)


def _greedy(draws: Draws, greedy: Translation) -> Beside:
    inside, log_probs = draws.along(greedy.target_ids), [each.log_prob for each in greedy.steps]
    return beside_greedy(greedy.target_tokens, log_probs, inside, "greedy search; no sample takes it")


def _table(draws: Draws, seeds: range) -> Table:
    taken = [" ".join(str(seeds[sample]) for sample in each.samples) for each in draws.nodes]
    return node_rows(draws.nodes, {"seeds": taken})


def _table_of_draws(draws: Draws, seeds: range) -> None:
    order = sorted(range(len(seeds)), key=lambda i: -sum(draws.translations[i].log_probs))
    shown = [draws.translations[i] for i in order]
    st.markdown("##### All draws, most probable first")
    st.dataframe(
        {
            "seed": [seeds[i] for i in order],
            "translation": [each.text for each in shown],
            "tokens": [len(each.target_tokens) for each in shown],
            "Σ log p": [sum(each.log_probs) for each in shown],
        },
        hide_index=True,
        key="search.samples",
        on_select=lambda: session.on_pick(
            "search.samples", lambda row: choose(draws.nodes, draws.leaf(order[int(row)]))
        ),
        selection_mode="single-row",
        column_config={"Σ log p": st.column_config.NumberColumn(format="%.2f")},
        alt="The samples, most probable first",
    )


def _sample(asked: runs.Request, seed: int) -> None:
    opened = Opened(asked, runs.traced(asked), None)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.markdown(f"##### Seed {seed}: {plain(opened.translation.text) or '◌'}", width="stretch")
        st.button(
            "Show this sample on every page", key="search.take", on_click=_everywhere, args=(asked.decode,)
        )
    node.view(opened, lambda now, looks: _distribution(opened, now))


def _everywhere(decode: str) -> None:
    session.change(**{**session.RUN, "decode": decode, "target": None})


def _distribution(opened: Opened, now: State) -> None:
    """The distribution of the cursor's step, before and after."""
    steps = per_run.filtered(opened)
    at = min(now.step or 0, len(steps) - 1)
    step, drawn = steps[at], opened.translation.steps[at]
    written = next(i for i, each in enumerate(step.tokens) if each.token_id == drawn.token_id)
    panel(
        "distribution",
        lambda: before_after(
            [each.token for each in step.tokens],
            [each.before for each in step.tokens],
            [each.after for each in step.tokens],
            written,
        ),
        f"Step {labels.count(at)}, which drew “{labels.piece(drawn.token)}”: the distribution before and "
        f"after {opened.asked.drawing}; {_left(step)} · {opened.translation.model}",
        beside=(1.5, 1),
    )


def _left(step: FilteredStep) -> str:
    """Share of a distribution that the filters leave."""
    if step.mass > _ALL:
        return "every token can be drawn"
    kept = "1 token" if step.left == 1 else f"{step.left:,} tokens"
    return f"{kept} can be drawn, with {percent(step.mass)} of the model's probability"
