"""What the changes of the visitor did to the translation, and to the attention of every head."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

from explorer.app.address import session
from explorer.app.address.kinds import write_head
from explorer.app.controls import panel, pickers, plain, seen
from explorer.app.controls.text import refusal
from explorer.app.sections.what_if import changes, experiments
from explorer.app.server import runs
from explorer.app.server.stores import bytes_of, remembered
from explorer.app.server.view import View, forced
from explorer.app.shell import changed, menu
from explorer.app.shell.changed import step_name
from explorer.figures.base import labels
from explorer.figures.base.captions import KIND_NAMES
from explorer.figures.base.labels import chance
from explorer.figures.base.tasks import WORDS
from explorer.figures.pages.heads import Cell, head_grid
from explorer.figures.pages.what_if import StepMove, control_strip, delta_bars
from explorer.lenses import compare_runs
from explorer.lenses.what_if.controls import RandomHeads, random_heads
from explorer.lenses.what_if.two_runs import Pair, RunDifference, predicted
from transformer import interventions as do
from transformer.config import Head
from transformer.interventions import Intervention, InterventionError
from transformer.run import Translation
from transformer.text import words

SEEING = (
    "The model runs twice: as it is, and with the changes. The next-token distributions are "
    "compared up to the step at which the two part; after it each has a context of its own. A "
    "small effect of a switched-off head does not prove that it does nothing: other heads may do "
    "the same."
)
FORMULA = (
    r"\Delta\log p = \log q(y_t) - \log p(y_t), \qquad \mathrm{KL} = \sum_v p_v \log\frac{p_v}{q_v}"
)
SPACE = "▁"
JOIN = "\u2060"  # between ** and a sign, or Markdown takes ** after a letter for two stars
Runs = tuple[Translation, Translation]
SEED, CANDIDATES = 0, 8


def show(opened: View) -> None:
    """The controls that add a change, and what the changes did.

    Without changes, questions to start from.
    """
    changes.add(opened)
    base = runs.translate(replace(opened.run_key, changes=()))
    if not opened.run_key.changes:
        st.markdown(f":gray[as it is:] {plain(base.text or base.source_text)}")
        experiments.show(opened.source)
        return
    new = opened.traced().translation
    free = compared(opened, id(base), id(new), pair=(base, new))
    experiment = experiments.held_experiment(session.current())
    if experiment is not None:
        st.markdown(f"##### {plain(experiment.question)}")
    st.markdown(outcome(free))
    if experiment is not None:
        st.caption(f"What this does not prove: {experiment.not_proved}")
    if not free.steps:
        maps(opened, free)
        return
    same_text = forced(opened, base.target_ids)
    same = (
        free
        if same_text is None
        else compared(opened, id(base), id(same_text), pair=(base, same_text))
    )
    left, right = st.columns([1, 1], gap="large")
    with left:
        steps(same, same_text is not None)
        control(opened, base)
    with right:
        candidates(free)
    maps(opened, same)
    seen(SEEING, FORMULA)


@remembered(16, lambda both: bytes_of(both.base) + bytes_of(both.changed))
def compared(_opened: View, _base: int, _other: int, *, pair: Runs) -> RunDifference:
    """The difference of two runs, which their ids tell apart; kept."""
    return compare_runs(*pair)


def outcome(both: RunDifference) -> str:
    """Both outputs, what differs in bold, and where they part.

    Of a given one, what moved most.
    """
    if not both.steps:
        return "No word is predicted here; the maps show what changed."
    if not both.base.steps:
        return _outcome_at_masks(both)
    tokens = both.base.target_tokens, both.changed.target_tokens
    base, new = (
        "".join(_piece(tokens, pair, side) for pair in both.target).replace("****", "").strip()
        or plain(run.text or run.source_text)
        for side, run in enumerate((both.base, both.changed))
    )
    if both.changed.method == "forced":
        step = max(both.steps, key=lambda each: abs(each.delta_log_p))
        token = plain(labels.piece(step.base.token))
        log_p = step.base.log_prob
        return (
            f":gray[given:] {base}  \nThe output is given, so it cannot change; the "
            "probabilities of "
            f"its tokens can. Most of all “{token}”: {chance(log_p)} as it is, "
            f"{chance(log_p + step.delta_log_p)} changed."
        )
    parted = (
        "" if both.parting is None else f"The outputs part at step {labels.count(both.parting)}."
    )
    what = parted or "The output stays the same."
    return f":gray[as it is:] {base}  \n:gray[changed:] {new}  \n{what}"


def _outcome_at_masks(both: RunDifference) -> str:
    """Both texts with their masks filled, and at how many another word is the most probable."""
    same = sum(step.base.token_id == step.changed.token_id for step in both.steps)
    masks = labels.counted(len(both.steps), "mask")
    what = f"Another word is the most probable at {len(both.steps) - same} of {masks}."
    if same == len(both.steps):
        what = "The most probable word stays the same at every mask."
    alone = len(both.target) - len(both.shared)
    if alone:
        what += f" In one text only, so compared with nothing: {labels.counted(alone, 'mask')}."
    base = plain(both.base.text)
    new = plain(both.changed.text)
    return f":gray[as it is:] {base}  \n:gray[changed:] {new}  \n{what}"


def _piece(tokens: tuple[Sequence[str], ...], pair: Pair, side: int) -> str:
    """A piece of one side as Markdown, bold if the other side has another.

    Empty if this side has none.
    """
    one, after = (None if at is None else piece[at] for at, piece in zip(pair, tokens, strict=True))
    piece = (one, after)[side]
    if piece is None or words.is_special(piece):
        return ""
    word = words.readable(piece) if words.in_bytes(piece) else piece.removeprefix(SPACE)
    bare = plain(word)
    join = "" if word.isalnum() else JOIN
    return " " * piece.startswith(SPACE) + (
        bare if one == after or not bare else f"**{join}{bare}{join}**"
    )


def nats(value: float) -> str:
    return "not known" if value != value else f"{labels.telling(value)} nats"


def steps(both: RunDifference, is_forced: bool) -> None:
    """Δ log p of each token of the unchanged output."""
    rows, moved = [], []
    for (at, _), step in zip(both.shared, both.steps, strict=True):
        token, log_p, delta = step.base.token, step.base.log_prob, step.delta_log_p
        rows.append((at + 1, token, log_p, log_p + delta, delta, step.kl))
        before = f"{step_name(both.base, at)}: {labels.piece(token)}\nas it is: {chance(log_p)}"
        note = f"{before}\nΔ log p {labels.moved(delta)} nats\nKL {nats(step.kl)}"
        moved.append(StepMove(token, delta, note))
    way = WORDS[both.base.config.task].comparable
    if is_forced:
        way = "the changed model reads the unchanged output, so all steps can be compared"
    total = float(np.nansum(both.delta_log_p))
    size = float(np.nansum(np.abs(both.delta_log_p)))
    summed = f"together {labels.moved(total)} nats"
    if labels.telling(size) != labels.telling(abs(total)):
        summed += f", where gains and losses cancel; Σ|Δ| {labels.telling(size)} nats"
    names = (
        "step",
        "token",
        "log p as it is, nats",
        "log p changed, nats",
        "Δ log p, nats",
        "KL, nats",
    )
    panel(
        "what-if.delta",
        lambda: delta_bars(moved, both.parting),
        "Δ log p of each token of the unchanged output: amber became less probable, purple "
        f"more; {way}; {summed} · {both.base.model}",
        lambda: [names, *rows],
        heading="##### How probable the unchanged output is now",
    )


def candidates(both: RunDifference) -> None:
    """The next-token distributions of the step at which the runs part, else of the step that
    changed most."""
    at, why = both.parting, "at which the runs part"
    if at is None or at >= len(both.steps):
        at = int(np.nan_to_num(both.kl, nan=-1.0).argmax())
        why = "that changed most"
    step = both.steps[at]
    what = WORDS[both.base.config.task].predicted
    st.markdown(f"##### {what} at {step_name(both.base, both.shared[at][0])}, {why}")
    likely = step.candidates[:CANDIDATES]
    columns = {"token": [labels.piece(alternative.token) for alternative in likely]}
    columns |= {"as it is": [chance(alternative.base) for alternative in likely]}
    st.table(columns | {"changed": [chance(alternative.changed) for alternative in likely]})
    st.caption(f"KL(as it is ‖ changed) = {nats(step.kl)}")


def control(opened: View, base: Translation) -> None:
    """The effect of the last change of heads among those of other heads, if there is one."""
    of_heads = [
        change for change in opened.run_key.changes if change.part in ("scores", "weights", "heads")
    ]
    if not of_heads:
        return
    st.markdown("##### The same change at other heads")
    try:
        with st.spinner("Measuring the same change at other heads …"):
            ids = tuple(step.token_id for step in predicted(base))
            beside = _beside(opened, ids, of_heads[-1])
    except InterventionError as error:
        st.caption(f"There is no control: {refusal(error)}")
        return
    count = len(beside.controls)
    rest = len(opened.run_key.changes) - 1
    effects = [beside.effect, *beside.effects.tolist()]
    rows = list(zip(map(str, (beside.change, *beside.controls)), effects, strict=True))
    lines = [f"{change}: {labels.number(by, '+.3f')} nats" for change, by in rows]
    which = f"all {count} others" if beside.complete else f"{count} at random, seed {SEED}"
    others = f", beside the other {'change' if rest == 1 else f'{rest} changes'}" if rest else ""
    panel(
        "what-if.control",
        lambda: control_strip(effects[0], effects[1:], lines),
        f"Δ log p of the unchanged output by “{beside.change}” (bar: "
        f"{labels.moved(effects[0])}){others}, and by the same change at other heads of the layer "
        f"(dots: {which}); {beside.as_large} of {count} move it as far · {base.model}",
        lambda: [("change", "Δ log p, nats"), *rows],
    )


@remembered(64)
def _beside(opened: View, base_ids: tuple[int, ...], change: Intervention) -> RandomHeads:
    rest = [acting for acting in opened.run_key.changes if acting != change]
    return random_heads(
        opened.source.load(), opened.run_key.text, base_ids, change, rest, seed=SEED
    )


def maps(opened: View, both: RunDifference) -> None:
    """The largest change of every head as tiles, and what can be done with the chosen one."""
    now = session.current()
    kind = opened.source.kind(now.kind)
    head: Head = getattr(now, kind)
    st.markdown("##### How the attention of every head changes")
    pickers.kind_picker(kind, opened.kinds)

    def tile(value: float, name: str) -> Cell:
        says = labels.telling(value)
        return Cell(
            value * (value >= labels.ROUNDING),
            says,
            "",
            f"{name}: a weight changes by up to {says}",
        )

    largest = both.largest(kind).tolist()
    tiles = [
        [tile(x, labels.head_phrase(i, j)) for j, x in enumerate(row)]
        for i, row in enumerate(largest)
    ]
    left, right = st.columns([1, 1], gap="large")
    panel(
        "what-if.heads",
        partial(head_grid, tiles, kind, head),
        (
            f"{KIND_NAMES[kind]}: the largest change of a weight in each head, over the rows that "
            "both runs have"
        ),
        key=f"what-if.heads.{kind}",
        place=left,
        take=lambda chosen: session.change(**{kind: tuple(chosen)}),
        inked=True,
    )
    change = do.ablate(kind, *head)
    name = labels.head_phrase(*head)
    off = change in now.changes
    with right:
        at = {kind: write_head(head), "kind": kind, "against": "unchanged"}
        menu.link(
            "what_if/compare", f"See both maps of {name}", ":material/compare:", "content", **at
        )
        st.button(
            f"Switch {name} {'on again' if off else 'off'}",
            icon=":material/power_settings_new:",
            on_click=changed.remove if off else changed.add,
            args=(change,),
            key="what-if.switch",
        )
