"""The surprisal of two sentences, token by token."""

from __future__ import annotations

from figures.pages.language.pair import Read, surprisals


def test_places_with_different_tokens_name_both_and_bars_hold_the_bits() -> None:
    figure = surprisals(Read(("▁A", "▁b", "</s>"), (1.0, 2.0, 0.5)), Read(("▁A", "▁<c>"), (1.0, 4.0)))
    assert list(figure.layout.xaxis.ticktext) == ["A", "b / &lt;c&gt;", "&lt;/s&gt;"]
    assert [list(bars.y) for bars in figure.data] == [[1.0, 2.0, 0.5], [1.0, 4.0]]
    assert [bars.name for bars in figure.data] == ["first sentence", "second sentence"]
