"""Sampling: its settings, the tree of several draws, and each step's distribution before and
after."""

from dataclasses import replace

import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.kinds import SAMPLE
from explorer.app.address.page_values import Maps, Sampling, Tree
from explorer.app.controls import panel, pickers, plain
from explorer.app.maps.looking import Looks
from explorer.app.sections.beam_search.tree import choose, outputs, picture, view
from explorer.app.server import per_run, runs
from explorer.app.server.hosted import Bounds
from explorer.app.server.run_key import USUAL
from explorer.app.server.view import View
from explorer.app.shell import sampling, waiting
from explorer.figures.base.labels import count, number, percent, piece
from explorer.figures.pages.distributions import before_after
from explorer.figures.pages.search import KEPT, STEPS, WON, Branch
from transformer.run import Translation
from transformer.sampling import Draws

SEEING = (
    "Each draw follows one output. At each step, temperature T reshapes the distribution; top-k "
    "keeps the k most probable tokens, top-p the fewest whose probabilities reach p. One token is "
    "drawn from what is left. log p is the model's own, before all of this."
)
FORMULA = r"p_T(v) = \frac{p(v)^{1/T}}{\sum_{w} p(w)^{1/T}}"
ALL = 0.9995  # probability from which nothing worth mentioning is left out


def show(opened: View, now: State) -> None:
    values = now.values(Sampling)
    first = values.seed
    if first is None:
        first = int(now.decode.removeprefix(SAMPLE)) if now.decode.startswith(SAMPLE) else 1
    seeds = range(first, first + values.draws)
    drawing = runs.drawing_of(now)
    settings(now, seeds)
    asked = replace(opened.run_key, target=None, decode="greedy", drawing=USUAL)
    with waiting.progress(f"Drawing {values.draws} samples", stop="sampling.stop") as tell:
        draws = per_run.drawn(asked, drawing, seeds, tell=tell)
    greedy = runs.translate(asked)
    st.markdown(summary(draws, seeds, greedy))

    nodes = draws.nodes
    drawn = len(draws.translations)
    chosen = now.values(Tree).node
    if chosen is None or chosen >= len(nodes):
        chosen = draws.leaves[draws.best]
    parents = {node.parent for node in nodes}
    branches = [
        Branch(
            token=each.token,
            step=each.step,
            parent=each.parent,
            share=len(each.samples) / drawn,
            fate=WON if draws.best in each.samples else KEPT,
            ended=i not in parents,
            note=f"{piece(each.token)} · step {count(each.step)}\n"
            f"log p {number(each.log_prob)} · Σ log p {number(each.total)}\n"
            f"{len(each.samples)} of {drawn} samples: seed{'s' * (len(each.samples) > 1)} "
            f"{', '.join(str(seeds[sample]) for sample in each.samples)}",
        )
        for i, each in enumerate(nodes)
    ]
    picture(
        "samples",
        branches,
        names={WON: "the most probable", KEPT: "the others"},
        tree=draws,
        greedy=(greedy.target_ids, greedy.target_tokens, [step.log_prob for step in greedy.steps]),
        lost="greedy search; no sample takes it",
        chosen=chosen,
        first=min(now.values(Maps).first or 0, max(0, nodes[-1].step + 1 - STEPS)),
        run=greedy,
        caption=f"{drawn} samples, {drawing}, seeds {seeds[0]} to {seeds[-1]} · columns are steps · "
        "thickness = share of samples that take the line",
        more={"seeds": [" ".join(str(seeds[sample]) for sample in each.samples) for each in nodes]},
        seeing=SEEING,
        formula=FORMULA,
    )

    seed = seeds[nodes[chosen].samples[0]]
    asked = replace(asked, decode=f"{SAMPLE}{seed}", drawing=drawing)
    sample = View(asked, runs.translate(asked, whole=True), None)
    everywhere = {**session.RUN, "decode": asked.decode, "target": None}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.markdown(f"##### Seed {seed}: {plain(sample.translation.text) or '◌'}", width="stretch")
        show_it = "Show this sample on every page"
        st.button(show_it, "search.take", on_click=session.change, kwargs=everywhere)
    view(sample, lambda now, looks: distribution(sample, now, looks))

    st.markdown("##### All draws, most probable first")
    order = sorted(range(drawn), key=lambda i: -sum(draws.translations[i].log_probs))
    found = [draws.translations[i] for i in order]
    columns: dict[str, list[object]] = {
        "seed": [seeds[i] for i in order],
        "translation": [each.text for each in found],
        "tokens": [len(each.target_tokens) for each in found],
        "Σ log p": [sum(each.log_probs) for each in found],
    }
    take = lambda row: choose(nodes, draws.leaves[order[row]])  # noqa: E731
    outputs("search.samples", columns, take, "The samples, most probable first")


def settings(now: State, seeds: range) -> None:
    values = now.values(Sampling)
    with st.container(
        horizontal=True, vertical_alignment="bottom", gap="medium", key="search-settings"
    ):
        for draw in sampling.CONTROLS:
            with st.container(width=150):
                draw(now)
        ends = (1, max(int(Bounds.from_environment().draws), values.draws))
        take = lambda count: session.change(draws=count, node=None)  # noqa: E731
        pickers.slide("draws", "Draws", values.draws, take, ends=ends, width=150)
        others = {**session.RUN, "seed": seeds.stop}
        does, icon = (
            "Takes the next seeds; a seed always draws the same sample",
            ":material/casino:",
        )
        st.button(
            "Draw others", "search.again", does, icon=icon, on_click=session.change, kwargs=others
        )


def summary(draws: Draws, seeds: range, greedy: Translation) -> str:
    """The most probable of the draws, and whether any writes what greedy search does, as
    Markdown."""
    texts = [translation.text for translation in draws.translations]
    best = draws.translations[draws.best]
    different = len(set(texts))
    same = texts.count(greedy.text)
    many = f"{len(texts)} draw{'s' * (len(texts) != 1)}"
    wrote = f"{different} different translations" if different > 1 else "1 translation"
    told = f"{same or 'no'} draw{'s' * (same > 1)} write{'s' * (same < 2)} this"
    return (
        f"{many}, {wrote}.  \n"
        f":gray[most probable, seed {seeds[draws.best]}:] {plain(best.text) or '◌'} "
        f":gray[(Σ log p {number(sum(best.log_probs))})]  \n"
        f":gray[greedy search:] {plain(greedy.text) or '◌'} "
        f":gray[(Σ log p {number(sum(greedy.log_probs))}; {told})]"
    )


def distribution(opened: View, now: State, _looks: Looks) -> None:
    """The distribution of the cursor's step, before and after temperature, top-k and top-p."""
    steps = per_run.filtered(opened)
    run = opened.translation
    at = min(now.step or 0, len(steps) - 1)
    step = steps[at]
    drawn = run.steps[at]
    left = "every token can be drawn"
    if step.mass <= ALL:
        tokens = f"{step.left:,} token{'s' * (step.left != 1)}"
        left = f"{tokens} can be drawn, with {percent(step.mass)} of the model's probability"
    chosen = next(i for i, n in enumerate(step.tokens) if n.token_id == drawn.token_id)
    names, before, after = zip(
        *((token.token, token.before, token.after) for token in step.tokens), strict=True
    )
    panel(
        "distribution",
        lambda: before_after(names, before, after, chosen),
        f"Step {count(at)}, which drew “{piece(drawn.token)}”: the distribution before and after "
        f"{opened.run_key.drawing}; {left} · {run.model}",
        beside=(1.5, 1),
    )
