"""A run on this server while it goes on: its curves, its maps, and both in sentences."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

from explorer.app.address import session
from explorer.app.controls import Picture, Table, chart, export, panel, part, plain
from explorer.app.server.workshop.plan import OWN, Plan
from explorer.app.server.workshop.run import KIND, Curves, PairLook, TrainingRun, look
from explorer.app.shell.fitting import fit_head
from explorer.figures import Tile, heatmap, overview_spec
from explorer.figures.base import captions, style
from explorer.figures.base.bars import percent
from explorer.figures.maps.heatmap import LARGEST
from explorer.figures.pages.training.curves import FAINT, Curve, Panel, panels
from transformer import Translation
from transformer.config import Head
from transformer.training.progress import duration
from transformer.training.toys import TOYS
from transformer.view import HeadView, Window

_MAP, _TILES = 400, 320
"""Px of the map, and of the tiles of all heads."""
_SEEING = (
    "A new model learns a small task in a process of its own. After some steps it is measured on pairs it "
    "never saw: the loss of the right output, and how many outputs are exactly right. Then its weights are "
    "saved, and the maps show cross-attention on one such pair: each row predicts a token, each column is a "
    "token of the source."
)
NAMES = {name: f"{name}: {toy.about}" for name, toy in TOYS.items()} | {OWN: "your own pairs (TSV)"}
"""The tasks as options of a list."""


def bar(run: TrainingRun) -> None:
    """Draws the bar of progress."""
    curves = run.curves()
    st.progress(min(1.0, curves.step / run.asked.plan.steps), plain(progress(run, curves)))


def show_run(run: TrainingRun) -> None:
    """Draws the curves and the maps."""
    curves = run.curves()
    left, right = st.columns([1, 1.05], gap="medium")
    with left:
        st.markdown(exact_sentence(curves))
        panel("training here", lambda: _drawn(curves), _about(run), seeing=_SEEING, saved=False)
    with right:
        found = look(run)
        if found is None:
            st.caption("The maps appear with the first checkpoint, in a few seconds.")
        else:
            _maps(run, found)


def parts(curves: Curves) -> list[Panel]:
    """The panels of a run; both appear at once, empty at first."""
    losses = [
        _curve("training loss", curves.loss, FAINT, width=1.5),
        _curve("validation loss", curves.valid, style.NEGATIVE),
    ]
    shares = tuple((step, 100 * share) for step, share in curves.exact)
    return [
        Panel("loss in nats", losses, 170),
        Panel("exact in %", [_curve("exact matches", shares, style.POSITIVE)], 120, top=102),
    ]


def _curve(name: str, points: tuple[tuple[int, float], ...], color: str, width: float = 2) -> Curve:
    return Curve(name, [step for step, _ in points], [value for _, value in points], color, width=width)


def _about(run: TrainingRun) -> str:
    return f"Loss per token and share of exact matches against the step · {plan(run.asked.plan)}"


def _drawn(curves: Curves) -> go.Figure:
    return panels(parts(curves), "step")


@part
def saving(run: TrainingRun) -> None:
    """Draws the export button for the curves and the map.

    It stands outside the part that draws itself again every second: Streamlit sends the parts of a fragment
    inside another one even if it has dropped what comes before them, and the browser then refuses them.
    """
    with export.popover("export.training run", 260) as opened:
        if opened:
            export.offer("training run", _pictures(run), session.current())


def _pictures(run: TrainingRun) -> dict[str, Picture]:
    """Files on offer, by the names of the choice."""
    curves = run.curves()
    found = {
        "curves": Picture(
            lambda: _drawn(curves),
            _about(run),
            sentence=False,
            name="training run",
            table=lambda: table(curves),
        )
    }
    if (seen := look(run)) is not None:
        view = _view(seen)
        found["map"] = Picture(
            lambda: heatmap(view, _MAP), _caption(view), view.audit, table=lambda: cells(view)
        )
    return found


def table(curves: Curves) -> Table:
    """Every point that is drawn, for CSV."""
    named = {"training loss": curves.loss, "validation loss": curves.valid, "exact matches": curves.exact}
    points = [(name, *point) for name, found in named.items() for point in found]
    return [("quantity", "step", "value"), *points]


def _maps(run: TrainingRun, found: PairLook) -> None:
    st.markdown(written_sentence(run, found))
    view = _view(found)
    why = "" if session.current().born else " · the head whose rows differ most"
    panel(
        "training here map",
        lambda: heatmap(view, _MAP),
        f"{_caption(view)}{why}",
        alt=captions.summary(view),
        audit=view.audit,
        width="content",
        saved=False,
    )
    _tiles(found.forced, KIND, head_of(found))


def _tiles(shown: Translation, kind: str, head: Head) -> None:
    """Draws all heads of a kind; a click opens one."""
    heads = range(shown.config.n_heads)
    site = next(each for each in shown.config.sites.values() if each.kind.value == kind)
    found = [
        [Tile.of(shown.weights(kind, layer, i), shown.mask(kind, layer, i)) for i in heads]
        for layer in range(site.n_layers)
    ]

    def choose(picked: object) -> None:
        if isinstance(picked, (list, tuple)) and len(picked) == 2:
            session.change(born=(int(picked[0]), int(picked[1])))

    told = f"All heads of {captions.KIND_NAMES[kind].lower()}"
    key = f"training.tiles.{kind}.{site.n_layers}.{len(heads)}"
    chart(key, style.figure(overview_spec(found, kind, head, width=_TILES)), f"{told}, {shown.model}", choose)
    st.caption(plain(f"{told} · {shown.model} · click a tile to open it"))


def _view(found: PairLook) -> HeadView:
    """As much of the head's map as one figure holds."""
    rows, columns = (min(LARGEST, len(t)) for t in (found.forced.target_tokens, found.forced.source_tokens))
    return found.forced.head(KIND, *head_of(found), Window(0, rows, 0, columns))


def _caption(view: HeadView) -> str:
    return captions.caption(view).replace("{step}", "")


def head_of(found: PairLook) -> Head:
    """The chosen head, or the telling one; one that the model lacks moves to the nearest."""
    config = found.forced.config
    size = config.stacks["decoder"].n_layers, config.n_heads
    return fit_head(KIND, session.current().born, size, found.telling)[0]


def cells(view: HeadView) -> Table:
    """The weights of a head, for CSV."""
    rows = view.predicted_tokens or view.query_tokens
    return [
        ("predicts", "reads", "weight"),
        *(
            (row, key, float(view.weights[i, j]))
            for i, row in enumerate(rows)
            for j, key in enumerate(view.key_tokens)
        ),
    ]


def plan(asked: Plan) -> str:
    """A task and its sizes, for a line of progress."""
    about = "own pairs" if asked.task == OWN else asked.task
    long = f", at most {asked.length} letters" if asked.task in TOYS and TOYS[asked.task].spelled else ""
    layers = f"{asked.layers} + {asked.layers} layers"
    return f"{about}{long} · {layers}, d_model {asked.width}, heads: {asked.heads}"


def progress(run: TrainingRun, curves: Curves) -> str:
    """Progress of a run."""
    total = run.asked.plan.steps
    if run.paused:
        state = "paused at step"
    elif not curves.step:
        return f"{plan(run.asked.plan)} · starting"
    else:
        state = "step"
    return f"{plan(run.asked.plan)} · {state} {curves.step:,} of {total:,} · {duration(curves.seconds)}"


def ended(run: TrainingRun) -> str:
    """End of a run, and its remains."""
    kept = "" if run.has_model else " Nothing is left of it."
    return f"**{plain(plan(run.asked.plan))}.** {plain(run.told)}{kept}"


def exact_sentence(curves: Curves) -> str:
    """Results of the last evaluation."""
    if not curves.exact:
        return "The first evaluation has not come yet."
    step, share = curves.exact[-1]
    return (
        f"At step {step:,}, the model writes **{percent(share)}** of the held-out pairs exactly as they "
        "should be."
    )


def written_sentence(run: TrainingRun, look: PairLook) -> str:
    """The pair on the screen under the checkpoint."""
    pair = run.asked.shown
    read = f"After step {look.step:,}, the model reads “{plain(pair.source)}”"
    start = f"{read}, which is not in its training data, and writes "
    if not look.written:
        return f"{start}nothing; the right output is “{plain(pair.target)}”."
    right = look.written == pair.target
    verdict = "which is right." if right else f"but the right output is “{plain(pair.target)}”."
    return f"{start}“{plain(look.written)}”, {verdict}"
