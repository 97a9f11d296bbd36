"""Sampling: settings, the tree of several draws, each step's distribution before and after."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.kinds import SAMPLE
from explorer.app.address.page_values import Sampling, Tree
from explorer.app.controls import panel, pickers, plain
from explorer.app.maps.looking import Looks
from explorer.app.sections.beam_search.tree import choose, first_step, outputs, picture, view
from explorer.app.server import per_run, runs
from explorer.app.server.hosted import Bounds
from explorer.app.server.run_key import Drawing, RunKey
from explorer.app.server.view import View
from explorer.app.shell import sampling, waiting
from explorer.figures.base import labels
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
    """Draws the settings, the tree of all draws, the chosen sample, and the draws as a table."""
    values = now.values(Sampling)
    first = first_seed(now)
    seeds = range(first, first + values.draws)
    drawing = Drawing.of(now)
    settings(now, seeds)
    run_key = opened.run_key.writing("greedy")
    with waiting.progress(f"Drawing {values.draws} samples", stop="sampling.stop") as tell:
        draws = per_run.drawn(run_key, drawing, seeds, tell=tell)
    greedy = runs.translate(run_key)
    st.markdown(summary(draws, seeds, greedy))

    nodes = draws.nodes
    chosen = now.values(Tree).node
    if chosen is None or chosen >= len(nodes):
        chosen = draws.leaves[draws.best]
    caption = (
        f"{len(draws.translations)} samples, {drawing}, seeds {seeds[0]} to {seeds[-1]} · columns "
        "are steps · thickness = share of samples that take the line"
    )
    picture(
        "samples",
        branches(draws, seeds),
        names={WON: "the most probable", KEPT: "the others"},
        tree=draws,
        greedy=(greedy.target_ids, greedy.target_tokens, [step.log_prob for step in greedy.steps]),
        lost="greedy search; no sample takes it",
        chosen=chosen,
        first=min(first_step(opened, now), max(0, nodes[-1].step + 1 - STEPS)),
        run=greedy,
        caption=caption,
        more={"seeds": [" ".join(seeds_of(node.samples, seeds)) for node in nodes]},
        seeing=SEEING,
        formula=FORMULA,
    )

    seed = seeds[nodes[chosen].samples[0]]
    one_sample(replace(run_key, decode=f"{SAMPLE}{seed}", drawing=drawing), seed)
    all_samples(draws, seeds)


def first_seed(now: State) -> int:
    """The first seed: that of the address, else of the sample that is on every page, else 1."""
    seed = now.values(Sampling).seed
    if seed is not None:
        return int(seed)
    if now.decode.startswith(SAMPLE):
        return int(now.decode.removeprefix(SAMPLE))
    return 1


def seeds_of(samples: Sequence[int], seeds: range) -> list[str]:
    """The seeds of some samples as texts."""
    return [str(seeds[sample]) for sample in samples]


def branches(draws: Draws, seeds: range) -> list[Branch]:
    """The tree of all draws: the more samples take a token, the thicker is its line."""
    nodes = draws.nodes
    drawn = len(draws.translations)
    parents = {node.parent for node in nodes}
    tree = []
    for i, node in enumerate(nodes):
        samples = len(node.samples)
        noun = "seeds" if samples > 1 else "seed"
        note = (
            f"{piece(node.token)} · step {count(node.step)}\n"
            f"log p {number(node.log_prob)} · Σ log p {number(node.total)}\n"
            f"{samples} of {drawn} samples: {noun} {', '.join(seeds_of(node.samples, seeds))}"
        )
        branch = Branch(
            token=node.token,
            step=node.step,
            parent=node.parent,
            share=samples / drawn,
            fate=WON if draws.best in node.samples else KEPT,
            ended=i not in parents,
            note=note,
        )
        tree.append(branch)
    return tree


def one_sample(run_key: RunKey, seed: int) -> None:
    """The chosen sample with its attention, and the distribution of the cursor's step."""
    sample = View(run_key, runs.translate(run_key, whole=True), None)
    everywhere = {**session.RUN, "decode": run_key.decode, "target": None}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.markdown(f"##### Seed {seed}: {plain(sample.translation.text) or '◌'}", width="stretch")
        show_it = "Show this sample on every page"
        st.button(show_it, "search.take", on_click=session.change, kwargs=everywhere)
    view(sample, lambda now, looks: distribution(sample, now, looks))


def all_samples(draws: Draws, seeds: range) -> None:
    """A table of all draws; a click chooses one."""
    st.markdown("##### All draws, most probable first")
    translations = draws.translations
    order = sorted(range(len(translations)), key=lambda i: -sum(translations[i].log_probs))
    samples = [translations[i] for i in order]
    columns: dict[str, list[object]] = {
        "seed": [seeds[i] for i in order],
        "output": [draw.text for draw in samples],
        "tokens": [len(draw.target_tokens) for draw in samples],
        "Σ log p": [sum(draw.log_probs) for draw in samples],
    }

    def take(row: int) -> None:
        choose(draws.nodes, draws.leaves[order[row]])

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

        def take(count: float) -> None:
            session.change(draws=count, node=None)

        pickers.slide("draws", "Draws", values.draws, take, ends=ends, width=150)
        st.button(
            "Draw others",
            "search.again",
            "Takes the next seeds; a seed always draws the same sample",
            icon=":material/casino:",
            on_click=session.change,
            kwargs={**session.RUN, "seed": seeds.stop},
        )


def summary(draws: Draws, seeds: range, greedy: Translation) -> str:
    """The most probable of the draws, and whether any writes as greedy search does, in Markdown."""
    texts = [translation.text for translation in draws.translations]
    best = draws.translations[draws.best]
    different = len(set(texts))
    wrote = f"{different} different outputs" if different > 1 else "1 output"
    same = texts.count(greedy.text)
    drew = f"{same} draws write" if same > 1 else f"{same or 'no'} draw writes"
    return (
        f"{labels.counted(len(texts), 'draw')}, {wrote}.  \n"
        f":gray[most probable, seed {seeds[draws.best]}:] {plain(best.text) or '◌'} "
        f":gray[(Σ log p {number(sum(best.log_probs))})]  \n"
        f":gray[greedy search:] {plain(greedy.text) or '◌'} "
        f":gray[(Σ log p {number(sum(greedy.log_probs))}; {drew} this)]"
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
        tokens = f"{step.left:,} tokens" if step.left != 1 else "1 token"
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
