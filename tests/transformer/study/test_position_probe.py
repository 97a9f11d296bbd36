from __future__ import annotations

from corpus import number_pairs
from random_models import random_model

from transformer.study.position_probe import position_probes
from transformer.text.pairs import SentencePair
from transformer.text.vocabulary import Tokenizer
from transformer.translate.translator import Translator


def twin(tokenizer: Tokenizer, positions: str) -> Translator:
    model = random_model(vocab_size=tokenizer.vocab_size, positions=positions, norm="pre", scale=0.02)
    return Translator(model, tokenizer, name=positions)


def test_a_probe_reads_positions_that_were_added_and_none_that_were_not(tokenizer: Tokenizer) -> None:
    twins = {name: twin(tokenizer, name) for name in ("sinusoidal", "none")}
    found = position_probes(twins, [SentencePair(*pair) for pair in number_pairs(60, seed=3)])
    assert found["sentences"] == 60
    assert found["models"]["sinusoidal"]["value"] > 0.9
    assert found["models"]["none"]["value"] < 0.5
    for each in found["models"].values():
        assert each["low"] <= each["value"] <= each["high"] <= 1


def test_the_same_twin_gives_the_same_value(tokenizer: Tokenizer) -> None:
    some = {"rotary": twin(tokenizer, "rotary")}
    pairs = [SentencePair(*pair) for pair in number_pairs(20, seed=4)]
    assert position_probes(some, pairs) == position_probes(some, pairs)
