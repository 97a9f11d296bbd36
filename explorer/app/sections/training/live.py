"""A run on this server while it goes on: its curves, its maps, and both in sentences."""

import streamlit as st

from explorer.app.address import session
from explorer.app.address.page_values import Live
from explorer.app.controls import chart, panel, plain
from explorer.app.server.training import KIND, PairLook, TrainingRun, look
from explorer.app.server.training_plan import OWN, Plan
from explorer.app.shell.fitting import fit_head
from explorer.figures import Tile, heatmap, overview_spec
from explorer.figures.base import captions, style
from explorer.figures.base.labels import percent
from explorer.figures.maps.heatmap import LARGEST
from explorer.figures.pages.training import FAINT, Curve, Panel, panels
from transformer.training.history import thinned
from transformer.training.progress import duration
from transformer.training.toys import TOYS
from transformer.training.trainer import TrainingStep
from transformer.view import Window

MAP, TILES = 400, 320  # px of the map, and of the tiles of all heads
SEEING = (
    "A new model learns a small task in a process of its own. Now and then it is measured on "
    "pairs it never saw, and its weights are saved: the maps show cross-attention on one such "
    "pair."
)


def sizes(plan: Plan) -> str:
    about = "own pairs" if plan.task == OWN else plan.task
    about += (
        f", at most {plan.length} letters" if plan.task in TOYS and TOYS[plan.task].spelled else ""
    )
    return (
        f"{about} · {plan.layers} + {plan.layers} layers, d_model {plan.width}, heads: {plan.heads}"
    )


def progress(run: TrainingRun, steps: list[TrainingStep]) -> str:
    at = f"step {len(steps):,} of {run.total:,} · {duration(sum(step.seconds for step in steps))}"
    return f"{sizes(run.plan)} · {at if steps else 'starting'}"


def show_run(run: TrainingRun, steps: list[TrainingStep]) -> None:
    curves = points(steps)
    at = look(run)
    left, right = st.columns([1, 1.05], gap="medium")
    with left:
        told = "The first evaluation has not come yet."
        if curves["exact matches"]:
            step, share = curves["exact matches"][-1]
            told = (
                f"At step {step:,}, the model writes **{percent(share)}** of the held-out pairs "
                "exactly."
            )
        st.markdown(told)
        rows = [(name, *point) for name, of in curves.items() for point in of]
        panel(
            "training run",
            lambda: panels(parts(curves), "step"),
            f"Loss per token and share of exact matches against the step · {sizes(run.plan)}",
            lambda: [("quantity", "step", "value"), *rows],
            seeing=SEEING,
            sentence=False,
        )
    with right:
        if at is None:
            st.caption("The maps appear with the first checkpoint, in a few seconds.")
        else:
            maps(run, at)


def points(steps: list[TrainingStep]) -> dict[str, list[tuple[int, float]]]:
    """Steps and values of each curve: the training loss, as means over neighbouring steps; the
    validation loss of the weights that would be kept; the share of held-out pairs that are written
    exactly."""
    trained = thinned(steps).training if steps else {"step": [], "smoothed_loss": []}
    valid = ((each.step, [each.valid_loss, each.valid_loss_average]) for each in steps)
    lowest = ((step, [loss for loss in losses if loss is not None]) for step, losses in valid)
    return {
        "training loss": [*zip(map(int, trained["step"]), trained["smoothed_loss"], strict=True)],
        "validation loss": [(step, min(losses)) for step, losses in lowest if losses],
        "exact matches": [(each.step, each.exact) for each in steps if each.exact is not None],
    }


def parts(curves: dict[str, list[tuple[int, float]]]) -> list[Panel]:
    """The panels of a run; both appear at once, empty at first."""

    def curve(name: str, color: str, width: float = 2, times: int = 1) -> Curve:
        at = [step for step, _ in curves[name]]
        return Curve(name, at, [times * value for _, value in curves[name]], color, width=width)

    losses = curve("training loss", FAINT, 1.5), curve("validation loss", style.NEGATIVE)
    exact = curve("exact matches", style.POSITIVE, times=100)
    return [Panel("loss in nats", losses, 170), Panel("exact in %", [exact], 120, top=102)]


def maps(run: TrainingRun, at: PairLook) -> None:
    """What the model writes of a pair that it never saw, one head of cross-attention, and all of
    them."""
    pair, forced, config = run.example, at.forced, at.forced.config
    born = session.values(Live).born
    head = fit_head(KIND, born, config.sizes[KIND], at.telling)
    rows, columns = (
        min(LARGEST, len(tokens)) for tokens in (forced.target_tokens, forced.source_tokens)
    )
    view = forced.head(KIND, *head, Window(0, rows, 0, columns))
    right = f"the right output is “{plain(pair.target)}”."
    wrote = f"“{plain(at.written)}”, {'which is right.' if at.written == pair.target else f'but {right}'}"
    st.markdown(
        f"After step {at.step:,}, the model reads “{plain(pair.source)}”, which is not in its "
        f"training data, and writes {wrote if at.written else f'nothing; {right}'}"
    )
    panel(
        "training here map",
        lambda: heatmap(view, MAP),
        captions.caption(view).replace("{step}", "")
        + " · the head whose rows differ most" * (born is None),
        alt=captions.summary(view),
        audit=view.audit,
        width="content",
    )
    layers, heads = map(range, config.sizes[KIND])
    tiles = [
        [Tile.of(forced.weights(KIND, i, j), forced.mask(KIND, i, j)) for j in heads]
        for i in layers
    ]

    def choose(picked: tuple[int, int]) -> None:
        session.change(born=tuple(map(int, picked)))

    told = f"All heads of {captions.KIND_NAMES[KIND].lower()}"
    figure = style.figure(overview_spec(tiles, KIND, (view.layer, view.head), width=TILES))
    key = f"training.tiles.{KIND}.{len(layers)}.{len(heads)}"
    chart(key, figure, f"{told}, {at.forced.model}", choose)
    st.caption(plain(f"{told} · {at.forced.model} · click a tile to open it"))
