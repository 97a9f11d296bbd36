"""A Transformer in training: shifted target and losses, and quantities as lines against the
step."""

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
    shown = range(first, min(first + COLUMNS, len(columns)))
    losses = [columns[i].loss for i in shown]
    hues = [OWN if i == chosen else style.NEUTRAL for i in shown]
    notes = {i: _note(i, columns[i]) for i in shown}
    x = [at for i in range(len(shown) - 1) for at in (i + 0.22, i + 0.78, None)]
    moves = plot.points(
        x, [0.72, 0.28, None] * (len(shown) - 1), "lines", line={"color": style.NEUTRAL, "width": 1}
    )
    written = [
        _written({i: getattr(columns[i], name) for i in shown}, y, shown, ink, notes)
        for y, name in enumerate(("read", "token"))
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
        [*({**each, "yaxis": "y2"} for each in (moves, *written)), lengths],
        shown,
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
    """The target, the best guess under teacher forcing, the model's own text; where they part is
    grey."""
    longest = max(len(columns), len(free))
    shown = range(first, min(first + COLUMNS, longest))
    end = longest if parting is None else parting
    forced = {i: columns[i] for i in shown if i < len(columns)}
    own = {i: free[i] for i in shown if i < len(free)}
    wrong = {i for i, each in forced.items() if each.guess != each.token}
    rows: list[tuple[int, dict[int, str], str | None]] = [
        (0, {i: each.token for i, each in forced.items()}, ink),
        (1, {i: each.guess for i, each in forced.items() if i not in wrong}, ink),
        (1, {i: each.guess for i, each in forced.items() if i in wrong}, GUESSED),
        (2, {i: token for i, token in own.items() if i <= end}, ink),
        (2, {i: token for i, token in own.items() if i > end}, "rgba(128,128,128,.85)"),
    ]
    notes = {i: _note(i, each) for i, each in forced.items()}
    data = [_written(tokens, y, shown, colour, notes) for y, tokens, colour in rows if tokens]
    grey = []
    if parting is not None and parting in shown:
        at = parting - first
        look: Spec = {
            "width": 0,
            "yref": "paper",
            "fillcolor": "rgba(128,128,128,.14)",
            "layer": "below",
        }
        grey.append(plot.rectangle(at - 0.5, at + 0.5, 0, 1, **look))
    names = plot.named_axis(("target", "in training", "on its own"), down=True)
    return _columns(data, shown, names, 58 + 3 * _ROW, shapes=grey)


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
    room = (_pitch(len(visible)) - 6) / _FONT
    whole = {i: labels.piece(token) for i, token in tokens.items()}
    font = {} if colour is None else {"color": colour}
    same = {"textfont": font} if font else {}
    told = [notes.get(i, f"step {labels.count(i)}: {text}") for i, text in whole.items()]
    return plot.points(
        [i - visible.start for i in tokens],
        [y] * len(tokens),
        "text",
        text=[labels.escape(labels.fitted(text, room)) for text in whole.values()],
        textfont={"size": _FONT} | font,
        customdata=list(tokens),
        selected=same,
        unselected=same,
        cliponaxis=False,
        **plot.noted(told),
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
"""Plotly reports clicks on markers only, so a line that can be clicked has some that nobody
sees."""
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
        told = f"{labels.escape(x)} %{{x:,}}: %{{y:.4g}}"
        look = self.color, self.dash, self.width
        drawn = plot.curve(self.name, list(self.x), list(self.y), told, *look)
        return drawn | {"line": drawn["line"] | {"simplify": False}}


@dataclass(frozen=True)
class Panel:
    """One panel."""

    title: str  # what its vertical axis shows
    lines: Sequence[Curve]  # what is drawn in it
    height: int = 120  # px of its axes
    from_zero: bool = True  # whether the vertical axis begins at zero
    top: float | None = (
        None  # where the vertical axis ends, from zero on; None for what the values need
    )


def curves(lines: Sequence[Curve], titles: tuple[str, str], mark: float | None = None) -> go.Figure:
    """Draws some lines from zero on, with what the axes show; a thin vertical line stands at
    `mark`."""
    return plot.figure(
        [line.trace(titles[0]) for line in lines],
        plot.number_axis(titles[0], standoff=8, rangemode="tozero", tickformat=",d"),
        plot.number_axis(titles[1], standoff=8, rangemode="tozero", tickformat="~g"),
        340,
        (72, 34, 14, 46),
        shapes=[] if mark is None else [plot.stroke(x=mark)],
        hovermode="closest",
        **plot.legend(),
    )


def panels(parts: Sequence[Panel], x: str, mark: float | None = None) -> go.Figure:
    """Panels with one horizontal axis; the legend names a line once, and none that is its panel's
    title."""
    inner = sum(part.height for part in parts) + _GAP * (len(parts) - 1)
    data = list[Spec]()
    axes = Spec()
    above = 0
    named = set[str]()
    for number, part in enumerate(parts):
        axis = f"{number + 1 if number else ''}"
        ends = [max(0.0, 1 - (above + part.height) / inner), 1 - above / inner]
        above += part.height + _GAP
        zero: Spec = {"rangemode": "tozero"} if part.from_zero else {"zeroline": True}
        zero |= {} if part.top is None else {"range": [0, part.top]}
        few: Spec = {"nticks": 5, "tickformat": "~g", "zerolinecolor": "rgba(128,128,128,.5)"}
        axes[f"yaxis{axis}"] = plot.number_axis(
            part.title, standoff=8, domain=ends, anchor="x", **zero, **few
        )
        for line in part.lines:
            known = line.name in named | {part.title}
            named.add(line.name)
            trace = line.trace(x) | {
                "yaxis": f"y{axis}",
                "customdata": list(line.x),
                "showlegend": not known,
            }
            if mark is not None:
                trace |= _CLICKED
            elif len(line.x) <= _DOTS:
                trace |= {"mode": "lines+markers", "marker": {"size": 4, "color": line.color}}
            data.append(trace)
    return plot.figure(
        data,
        plot.number_axis(
            x, standoff=8, anchor=f"y{len(parts) if len(parts) > 1 else ''}", tickformat=",d"
        ),
        axes.pop("yaxis"),
        inner + _TOP + _BOTTOM,
        (72, _TOP, 14, _BOTTOM),
        **axes,
        hovermode="closest",
        **(
            {}
            if mark is None
            else {"shapes": [plot.stroke(x=mark)], "clickmode": plot.CLICKS["clickmode"]}
        ),
        **plot.legend(),
    )
