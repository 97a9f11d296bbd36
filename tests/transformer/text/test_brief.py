"""Every public value prints on three lines at most, however large it is."""

from __future__ import annotations

import pytest
from random_models import random_language_model

import transformer
from explorer.lenses import compare_runs
from transformer import AttentionKind, Capture, Sampling, Translator, Window
from transformer.config import Sublayer
from transformer.text.brief import LINES, WIDTH


@pytest.fixture
def values(translator: Translator) -> list[object]:
    model = random_language_model(vocab_size=translator.tokenizer.vocab_size, trained_length=30)
    text_generator = Translator(model, translator.tokenizer)
    run = translator.translate("one two three four", beam_size=2, tree=True, capture=Capture(residual=True))
    assert run.attention is not None
    return [
        *(translator, translator.model, translator.tokenizer, translator.config),
        *(run, run.steps[0], run.tree, run.attention, run.attention.layer("cross", 0)),
        *(
            run.head("cross", 0, 0),
            run.stream(Sublayer("encoder", 0, "feed_forward")),
            compare_runs(run, run),
        ),
        *(text_generator, text_generator.model, text_generator.generate("one", max_length=6)),
        *(text_generator.config, transformer.Hooks(), AttentionKind.CROSS),
        *(Capture(), Sampling(top_p=0.9), Window(0, 2, 0, 3)),
    ]


def test_every_public_value_prints_on_three_lines_at_most(values: list[object]):
    for each in values:
        told = repr(each)
        assert told.count("\n") < LINES, told
        assert len(told) <= 5 * WIDTH, told
        assert type(each).__name__ in told
    public = {getattr(transformer, name) for name in transformer.__all__ if name[0].isupper()}
    assert public <= {type(each) for each in values}


def test_a_value_tells_its_texts_and_the_shapes_of_its_arrays(translator: Translator):
    run = translator.translate("one two three four")
    assert f"text={run.text!r}" in repr(run)
    rows, columns = run.head("cross", 0, 0).weights.shape
    assert f"weights=ndarray {rows}×{columns}" in " ".join(repr(run.head("cross", 0, 0)).split())
    assert f"vocab_size={translator.tokenizer.vocab_size})" in repr(translator.tokenizer)
