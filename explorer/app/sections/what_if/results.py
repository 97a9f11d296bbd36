"""What the changes of the visitor did to the translation; without any, what can be asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import streamlit as st

from explorer.app.address import session
from explorer.app.controls import export, panel, plain, seen
from explorer.app.sections.what_if import adding, experiments, maps
from explorer.app.server import runs
from explorer.app.server.opened import Opened, forced, per_run
from explorer.app.server.stores import held
from explorer.figures.base import labels
from explorer.figures.base.bars import percent
from explorer.figures.pages.what_if import StepMove, control_strip, delta_bars
from explorer.lenses import compare_runs
from explorer.lenses.what_if.difference import Pair
from explorer.lenses.what_if.random_heads import RandomHeads, random_heads
from explorer.lenses.what_if.two_runs import RunDifference, SharedStep
from transformer import interventions as do
from transformer.interventions import InterventionError
from transformer.run import Translation

_SEEING = (
    "The model runs twice: once as it is, once with the changes. As long as both have written the same "
    "tokens, their next-token distributions answer the same question. So they are compared there, and at "
    "the step at which the two part. After it each has a context of its own, and nothing is compared. A "
    "small effect of a switched-off head does not prove that the head does nothing: other heads may do "
    "the same."
)
_FORMULA = r"\Delta\log p = \log q(y_t) - \log p(y_t), \qquad \mathrm{KL} = \sum_v p_v \log\frac{p_v}{q_v}"
SPACE = "▁"
_JOIN = "\u2060"  # between ** and a sign, or Markdown takes ** after a letter for two stars
_SEED = 0


def show(opened: Opened) -> None:
    """The controls that add a change, and what the changes did; without changes, questions to start from."""
    adding.add(opened)
    base = runs.translate(replace(opened.asked, changes=()))
    if not opened.asked.changes:
        st.markdown(f":gray[as it is:] {plain(base.text)}")
        experiments.show(opened.source)
        return
    free = _compared(opened, base, opened.traced().translation)
    asked = experiments.asked(session.current())
    if asked is not None:
        st.markdown(f"##### {plain(asked.question)}")
    st.markdown(_sentence(free))
    if asked is not None:
        st.caption(f"What this does not prove: {asked.not_proved}")
    same_text = forced(opened, base)
    same = free if same_text is None else _compared(opened, base, same_text)
    left, right = st.columns([1, 1], gap="large")
    with left:
        _steps(same, same_text is not None)
        _control(opened, base)
    with right:
        _candidates(free)
    maps.draw(opened, same)
    seen(_SEEING, _FORMULA)


def _compared(opened: Opened, base: Translation, changed: Translation) -> RunDifference:
    return _difference(opened, id(base), id(changed), pair=(base, changed))


@per_run(16, lambda found: held(found.base) + held(found.changed))
def _difference(
    _opened: Opened, _base: int, _changed: int, *, pair: tuple[Translation, Translation]
) -> RunDifference:
    return compare_runs(*pair)


def _sentence(found: RunDifference) -> str:
    base, changed = _marked(found)
    if found.changed.method == "forced":
        return f":gray[given:] {base}  \n{_moved_most(found)}"
    if found.parting is None:
        what = "The translation stays the same."
    else:
        what = f"The translations part at step {labels.count(found.parting)}."
    return f":gray[as it is:] {base}  \n:gray[changed:] {changed}  \n{what}"


def _moved_most(found: RunDifference) -> str:
    """What changes of a translation that is given: the probability of the token that moves most."""
    step = max(found.steps, key=lambda each: abs(each.delta_log_p))
    before, after = _share(step.base.log_prob), _share(step.base.log_prob + step.delta_log_p)
    return (
        "The translation is given, so it cannot change; the probabilities of its tokens can. Most of all "
        f"“{plain(labels.piece(step.base.token))}”: {before} as it is, {after} changed."
    )


def _marked(found: RunDifference) -> list[str]:
    """Both translations, with the pieces in which they differ in bold."""
    tokens = found.base.target_tokens, found.changed.target_tokens
    return [
        "".join(_piece(tokens, pair, at) for pair in found.target).strip() or plain(run.text)
        for at, run in enumerate((found.base, found.changed))
    ]


def _piece(tokens: tuple[Sequence[str], ...], pair: Pair, side: int) -> str:
    """A piece of one side as Markdown, bold if the other side has another; empty if this side has none."""
    one, other = (None if at is None else each[at] for at, each in zip(pair, tokens, strict=True))
    piece = (one, other)[side]
    if piece is None or labels.is_special(piece):
        return ""
    word = piece.removeprefix(SPACE)
    bare, join = plain(word), "" if word.isalnum() else _JOIN
    return " " * piece.startswith(SPACE) + (bare if one == other or not bare else f"**{join}{bare}{join}**")


def _steps(found: RunDifference, forced: bool) -> None:
    moved = [_moved(i, step) for i, step in enumerate(found.steps)]
    way = (
        "the changed model reads the unchanged translation, so all steps can be compared"
        if forced
        else "up to the step at which the runs part, because a change contradicts the unchanged translation"
    )
    whole, size = float(np.nansum(found.delta_log_p)), float(np.nansum(np.abs(found.delta_log_p)))
    summed = f"together {labels.moved(whole)} nats"
    if labels.telling(size) != labels.telling(abs(whole)):
        summed += f", where gains and losses cancel; Σ|Δ| {labels.telling(size)} nats"
    st.markdown("##### How probable the unchanged translation is now")
    panel(
        "what-if.delta",
        lambda: delta_bars(moved, found.parting),
        "Δ log p of each token of the unchanged translation: amber became less probable, purple more; "
        f"{way}; {summed} · {found.base.model}",
        lambda: _table(found),
    )


def _table(found: RunDifference) -> export.Table:
    """The steps as numbers."""
    names = ("step", "token", "log p as it is, nats", "log p changed, nats", "Δ log p, nats", "KL, nats")
    rows = [
        (
            labels.count(i),
            step.base.token,
            step.base.log_prob,
            step.base.log_prob + step.delta_log_p,
            step.delta_log_p,
            step.kl,
        )
        for i, step in enumerate(found.steps)
    ]
    return [names, *rows]


def _moved(number: int, step: SharedStep) -> StepMove:
    note = (
        f"step {labels.count(number)}: {labels.piece(step.base.token)}\n"
        f"as it is: {_share(step.base.log_prob)}\n"
        f"Δ log p {labels.moved(step.delta_log_p)} nats\nKL {_kl(step)}"
    )
    return StepMove(step.base.token, step.delta_log_p, note)


def _candidates(found: RunDifference) -> None:
    """The next-token distributions of the step at which the runs part, else of the step that changed most."""
    at = found.parting if found.parting is not None and found.parting < len(found.steps) else None
    if at is None:
        at = int(np.nanargmax(found.kl)) if not np.isnan(found.kl).all() else 0
    step = found.steps[at]
    why = "at which the runs part" if at == found.parting else "that changed most"
    st.markdown(f"##### The next token at step {labels.count(at)}, {why}")
    st.table(
        {
            "token": [labels.piece(each.token) for each in step.candidates[:8]],
            "as it is": [_share(each.base) for each in step.candidates[:8]],
            "changed": [_share(each.changed) for each in step.candidates[:8]],
        }
    )
    st.caption(f"KL(as it is ‖ changed) = {_kl(step)}")


def _kl(step: SharedStep) -> str:
    return "not known" if step.kl != step.kl else f"{labels.telling(step.kl)} nats"


def _share(log_prob: float) -> str:
    return "–" if log_prob != log_prob else percent(float(np.exp(log_prob)))


def _control(
    opened: Opened,  # the sentence with its changes
    base: Translation,  # the run without changes, whose translation is measured
) -> None:
    """Draws the effect of the last change of heads among those of other heads, if there is one."""
    taken = [each for each in opened.asked.changes if each.part in ("scores", "weights", "heads")]
    if not taken:
        return
    st.markdown("##### The same change at other heads")
    try:
        with st.spinner("Measuring the same change at other heads …"):
            found = _measured(opened, base.target_ids, taken[-1])
    except InterventionError as error:
        st.caption(plain(f"There is no control: {error}"))
        return
    notes = [f"{each}: {labels.number(effect, '+.3f')} nats" for each, effect in _rows(found)]
    panel(
        "what-if.control",
        lambda: control_strip(found.effect, found.effects.tolist(), notes),
        _caption(found, len(opened.asked.changes) - 1, base.model),
        lambda: [("change", "Δ log p, nats"), *_rows(found)],
    )


@per_run(64)
def _measured(opened: Opened, base_ids: tuple[int, ...], change: do.Intervention) -> RandomHeads:
    beside = [each for each in opened.asked.changes if each != change]
    return random_heads(opened.source.translator(), opened.asked.text, base_ids, change, beside, seed=_SEED)


def _rows(found: RandomHeads) -> list[tuple[str, float]]:
    """Each change and its effect: the visitor's own, then the others."""
    effects = [found.effect, *found.effects.tolist()]
    return [
        (str(each), effect) for each, effect in zip((found.change, *found.controls), effects, strict=True)
    ]


def _caption(found: RandomHeads, beside: int, model: str) -> str:
    count, effect = len(found.controls), labels.moved(found.effect)
    which = f"all {count} others" if found.complete else f"{count} at random, seed {_SEED}"
    with_rest = f", beside the other {'change' if beside == 1 else f'{beside} changes'}" if beside else ""
    return (
        f"Δ log p of the unchanged translation by “{found.change}” (bar: {effect}){with_rest}, and by the "
        f"same change at other heads of the layer (dots: {which}); {found.as_large} of {count} move it as "
        f"far · {model}"
    )
