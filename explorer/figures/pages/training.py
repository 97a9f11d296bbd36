"""A Transformer in training: shifted target and losses, and quantities against the step."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from explorer.figures.base import labels, plot, style
from explorer.figures.base.labels import percent
from explorer.figures.base.plot import Spec

COLUMNS = 40
"""Most positions that one picture shows."""
GUESSED, OWN = style.NEGATIVE, style.POSITIVE
"""Hues of a wrong guess and of what is chosen."""
_NARROWEST, _WIDEST, _ROOM = 64, 104, 860
"""Px from one position to the next, and the px that a short target fills."""
_LEFT, _RIGHT = 92, 12
_FONT = 11
_ROW = 34


@dataclass(frozen=True)
class Column:
    """One position of a target, with tokens as pieces."""

    read: str  # what the decoder reads
    token: str  # what it should predict
    loss: float  # −log p of that token, in nats
    guess: str  # its most probable token
    share: float  # the probability of that guess


def shifted_right(
    columns: Sequence[Column], chosen: int, first: int = 0, ink: str | None = None
) -> go.Figure:
    """What the decoder reads, what it should predict, and the loss of each position as bars."""
    visible = range(first, min(first + COLUMNS, len(columns)))
    losses = [columns[i].loss for i in visible]
    hues = [OWN if i == chosen else style.NEUTRAL for i in visible]
    notes = {i: _note(i, columns[i]) for i in visible}
    x = [end for i in range(len(visible) - 1) for end in (i + 0.22, i + 0.78, None)]
    y = [0.72, 0.28, None] * (len(visible) - 1)
    moves = plot.points(x, y, "lines", line={"color": style.NEUTRAL, "width": 1})
    read = {i: columns[i].read for i in visible}
    predicted = {i: columns[i].token for i in visible}
    tokens = [
        _written(read, 0, visible, ink, notes),
        _written(predicted, 1, visible, ink, notes),
    ]
    lengths = plot.bars(
        losses, hues, across=False, text=[labels.number(loss) for loss in losses]
    ) | {
        "textangle": 0,
        "constraintext": "none",
        "textfont": {"size": 10},
        "customdata": list(notes),
        **plot.noted(list(notes.values())),
        **plot.SEEN,
    }
    top = max(1.18 * max(losses, default=0.0), 0.1)
    return _columns(
        [*(trace | {"yaxis": "y2"} for trace in (moves, *tokens)), lengths],
        visible,
        plot.number_axis("loss in nats", standoff=8, domain=[0, 0.6], range=[0, top]),
        330,
        yaxis2=plot.named_axis(("reads", "to predict"), down=True, domain=[0.66, 1]),
        bargap=0.45,
        clickmode=plot.CLICKS["clickmode"],
    )


def two_ways(
    columns: Sequence[Column],
    free: Sequence[str],
    parting: int | None,
    first: int = 0,
    ink: str | None = None,
) -> go.Figure:
    """The target, the best guess under teacher forcing, the model's own text.

    Where they part is grey.
    """
    longest = max(len(columns), len(free))
    visible = range(first, min(first + COLUMNS, longest))
    end = longest if parting is None else parting
    forced = {i: columns[i] for i in visible if i < len(columns)}
    alone = {i: free[i] for i in visible if i < len(free)}
    right = {i: column.guess for i, column in forced.items() if column.guess == column.token}
    wrong = {i: column.guess for i, column in forced.items() if column.guess != column.token}
    rows: list[tuple[int, dict[int, str], str | None]] = [
        (0, {i: column.token for i, column in forced.items()}, ink),
        (1, right, ink),
        (1, wrong, GUESSED),
        (2, {i: token for i, token in alone.items() if i <= end}, ink),
        (2, {i: token for i, token in alone.items() if i > end}, "rgba(128,128,128,.85)"),
    ]
    notes = {i: _note(i, column) for i, column in forced.items()}
    data = [_written(tokens, y, visible, colour, notes) for y, tokens, colour in rows if tokens]
    grey = []
    if parting is not None and parting in visible:
        grey.append(_parting(parting - first))
    names = plot.named_axis(("target", "in training", "on its own"), down=True)
    return _columns(data, visible, names, 58 + 3 * _ROW, shapes=grey)


def _parting(column: int) -> Spec:
    """A grey column."""
    return plot.rectangle(
        column - 0.5,
        column + 0.5,
        0,
        1,
        width=0,
        yref="paper",
        fillcolor="rgba(128,128,128,.14)",
        layer="below",
    )


def _pitch(count: int) -> float:
    return min(_WIDEST, max(_NARROWEST, _ROOM / max(count, 1)))


def _columns(data: list[Spec], visible: range, y: Spec, height: int, **more: object) -> go.Figure:
    """A picture with one column per position."""
    count = max(len(visible), 4)
    numbers = plot.named_axis(
        [str(labels.count(i)) for i in visible], 10, side="top", anchor="free", position=1
    )
    across = numbers | {"range": [-0.5, count - 0.5]}
    width = round(_LEFT + _RIGHT + _pitch(len(visible)) * count)
    around = (_LEFT, 28, _RIGHT, 8)
    return plot.figure(data, across, y, height, around, width=width, hovermode="closest", **more)


def _written(
    tokens: dict[int, str], y: int, visible: range, colour: str | None, notes: dict[int, str]
) -> Spec:
    """Tokens in a row, by position; `notes` are their hover texts."""
    room = (_pitch(len(visible)) - 6) / _FONT
    pieces = {i: labels.piece(token) for i, token in tokens.items()}
    font: Spec = {"size": _FONT}
    clicked = Spec()  # how a token looks after a click: as before
    if colour is not None:
        font["color"] = colour
        clicked["textfont"] = {"color": colour}
    hover = [notes.get(i, f"step {labels.count(i)}: {piece}") for i, piece in pieces.items()]
    return plot.points(
        [i - visible.start for i in tokens],
        [y] * len(tokens),
        "text",
        text=[labels.escape(labels.fitted(piece, room)) for piece in pieces.values()],
        textfont=font,
        customdata=list(tokens),
        selected=clicked,
        unselected=clicked,
        cliponaxis=False,
        **plot.noted(hover),
    )


def _note(position: int, column: Column) -> str:
    read, token, guess = map(labels.piece, (column.read, column.token, column.guess))
    return (
        f"position {labels.count(position)}: reads {read}, is to predict {token}\n"
        f"loss {labels.number(column.loss)} nats (probability {labels.chance(-column.loss)})\n"
        f"best guess {guess} ({percent(column.share)})"
    )


_GAP, _TOP, _BOTTOM = 26, 52, 44
FAINT = "rgba(128,128,128,.42)"
"""The colour of raw values behind smoothed ones."""
_CLICKED = {"mode": "lines+markers", "marker": {"opacity": 0, "size": 8}, **plot.UNSEEN}
"""Plotly reports clicks on markers only, so a line that can be clicked has some, unseen."""
_DOTS = 40
"""A line of at most so many points shows them as dots."""


@dataclass(frozen=True)
class Curve:
    """One line."""

    name: str  # what the legend calls it
    x: Sequence[float]  # where its values are measured, such as steps
    y: Sequence[float]  # the values
    color: str  # of the line
    dash: str = "solid"  # of the line, as Plotly names it
    width: float = 2  # of the line, in px

    def trace(self, x: str) -> Spec:
        """The hover text gives the place, which is `x`, and the value."""
        hover = f"{labels.escape(x)} %{{x:,}}: %{{y:.4g}}"
        look = self.color, self.dash, self.width
        curve = plot.curve(self.name, list(self.x), list(self.y), hover, *look)
        curve["line"]["simplify"] = False
        return curve


@dataclass(frozen=True)
class Panel:
    """One panel."""

    title: str  # what its vertical axis shows
    lines: Sequence[Curve]  # what is drawn in it
    height: int = 120  # px of its axes
    from_zero: bool = True  # whether the vertical axis begins at zero
    # where the vertical axis ends, from zero on; None for what the values need
    top: float | None = None

    def axis(self, ends: Sequence[float]) -> Spec:
        """The vertical axis, between these shares of the figure's height."""
        axis = plot.number_axis(self.title, standoff=8, domain=ends, anchor="x")
        if self.from_zero:
            axis["rangemode"] = "tozero"
        else:
            axis["zeroline"] = True
        if self.top is not None:
            axis["range"] = [0, self.top]
        few = {"nticks": 5, "tickformat": "~g", "zerolinecolor": "rgba(128,128,128,.5)"}
        return axis | few


def curves(lines: Sequence[Curve], titles: tuple[str, str], mark: float | None = None) -> go.Figure:
    """Draws some lines from zero on, with what the axes show; a thin line stands at `mark`."""
    return plot.figure(
        [line.trace(titles[0]) for line in lines],
        plot.number_axis(titles[0], standoff=8, rangemode="tozero", tickformat=",d"),
        plot.number_axis(titles[1], standoff=8, rangemode="tozero", tickformat="~g"),
        340,
        (72, 34, 14, 46),
        shapes=_strokes(mark),
        hovermode="closest",
        **plot.legend(),
    )


def _strokes(mark: float | None) -> list[Spec]:
    """A thin upright line at a place, if there is one."""
    return [] if mark is None else [plot.stroke(x=mark)]


def panels(parts: Sequence[Panel], x: str, mark: float | None = None) -> go.Figure:
    """Panels with one horizontal axis, each with its lines.

    The legend names a line once, and none that is its panel's title.
    """
    inner = sum(panel.height for panel in parts) + _GAP * (len(parts) - 1)
    data = list[Spec]()
    axes = Spec()
    above = 0
    named = set[str]()
    for number, panel in enumerate(parts):
        axis = _axis_number(number)
        ends = [max(0.0, 1 - (above + panel.height) / inner), 1 - above / inner]
        above += panel.height + _GAP
        axes[f"yaxis{axis}"] = panel.axis(ends)
        for line in panel.lines:
            known = line.name in named | {panel.title}
            named.add(line.name)
            place = {"yaxis": f"y{axis}", "customdata": list(line.x), "showlegend": not known}
            look = _look(line, clicked=mark is not None)
            data.append(line.trace(x) | place | look)
    layout: Spec = {"hovermode": "closest"}
    if mark is not None:
        layout |= {"shapes": _strokes(mark), "clickmode": plot.CLICKS["clickmode"]}
    lowest = f"y{_axis_number(len(parts) - 1)}"
    return plot.figure(
        data,
        plot.number_axis(x, standoff=8, anchor=lowest, tickformat=",d"),
        axes.pop("yaxis"),
        inner + _TOP + _BOTTOM,
        (72, _TOP, 14, _BOTTOM),
        **axes,
        **layout,
        **plot.legend(),
    )


def _axis_number(place: int) -> str:
    """What Plotly adds to the name of an axis: nothing to that of the first."""
    return str(place + 1) if place else ""


def _look(line: Curve, *, clicked: bool) -> Spec:
    """The marks of a line: unseen ones if it can be clicked, dots if it has few points."""
    if clicked:
        return _CLICKED
    if len(line.x) <= _DOTS:
        return {"mode": "lines+markers", "marker": {"size": 4, "color": line.color}}
    return {}
