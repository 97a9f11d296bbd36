"""The figures in a notebook, as the package's docstring and the README show it."""

from __future__ import annotations

import contextlib
import io
import textwrap
from pathlib import Path

import plotly.io
import pytest

from explorer import figures
from transformer import load_trace, save_trace

ROOT = Path(__file__).resolve().parents[3]


def lines() -> str:
    """The five lines of the docstring."""
    _, _, code = (figures.__doc__ or "").partition("without a network:\n")
    return textwrap.dedent(code).strip()


@pytest.fixture
def renderer() -> None:
    """Leaves Plotly's choice of renderer as it was."""
    before = plotly.io.renderers.default
    yield
    plotly.io.renderers.default = before


@pytest.mark.usefixtures("renderer")
def test_five_lines_show_a_head_in_a_notebook_without_a_network(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("IPython", reason="IPython is not installed")
    monkeypatch.chdir(ROOT)
    *statements, expression = lines().splitlines()
    assert len(statements) == 4
    names: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        exec("\n".join(statements), names)
        page = eval(expression, names)._repr_mimebundle_()["text/html"]
    assert "plotly.js v" in shown.getvalue()
    assert 'src="https://cdn.plot.ly' not in shown.getvalue() + page
    assert "Plotly.newPlot" in page
    assert "old" in page


def test_every_figure_of_a_head_can_be_written_as_one_page_that_needs_no_network(translator):
    translation = translator.translate("one two three")
    view = translation.head("cross", 0, 1)
    drawn = (
        figures.heatmap(view),
        figures.lines([view]),
        figures.next_token(translation.steps),
    )
    for figure in drawn:
        page = figure.to_html(include_plotlyjs=True)
        assert "<script src" not in page


def test_a_trace_opened_from_a_file_is_drawn_alike(translator, tmp_path):
    translation = translator.translate("one two three")
    save_trace(translation, tmp_path / "trace.npz")
    opened = load_trace(tmp_path / "trace.npz")
    first, second = (figures.heatmap(run.head("decoder", 0, 0)) for run in (translation, opened))
    assert first == second
