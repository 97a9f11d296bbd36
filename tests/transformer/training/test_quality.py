"""BLEU during training is that of the package's greedy translations; it leaves the model as it was."""

from __future__ import annotations

import pytest
import torch
from closed_form import CASES
from corpus import number_pairs

from transformer.batches import translate_all
from transformer.commands.evaluate import corpus_scores
from transformer.model import Transformer
from transformer.text.pairs import SentencePair
from transformer.training.progress import TerminalLine
from transformer.training.quality import GreedyBleu
from transformer.training.trainer import TrainingStep
from transformer.translator import Translator, load_translator

PAIRS = [SentencePair(*pair) for pair in number_pairs(30)]


def test_bleu_is_sacrebleu_s_of_the_greedy_translations(closed_form_models):
    translator = load_translator(closed_form_models["copy"])
    measure = GreedyBleu(PAIRS, translator.tokenizer, 12, 40)
    assert len(measure.pairs) == 12
    outputs = translate_all(translator, [pair.source for pair in measure.pairs], 1)
    found = measure(translator.model)
    assert found["bleu"] == corpus_scores(outputs, measure.pairs)["bleu"]


def test_only_outputs_that_are_their_reference_count_as_exact(closed_form_models):
    translator = load_translator(closed_form_models["copy"])
    words = CASES["copy"].sentence.split()
    texts = [" ".join(words[: i + 1]) for i in range(len(words))]
    own = [SentencePair(text, translator.translate(text).text) for text in texts]
    wrong = [SentencePair(own[0].source, f"{own[0].target} x"), SentencePair(own[1].source, "x"), *own[2:]]
    for pairs, share in ((own, 1.0), (wrong, 1 - 2 / len(own))):
        measure = GreedyBleu(pairs, translator.tokenizer, len(pairs), 40)
        found = measure(translator.model)
        assert found["exact"] == pytest.approx(share)


def test_a_model_in_training_is_in_training_afterwards_and_draws_no_random_number(translator: Translator):
    model = Transformer(translator.config).train()
    measure, before = GreedyBleu(PAIRS, translator.tokenizer, 5, 40), torch.get_rng_state()
    assert measure(model)["bleu_sentences"] == 5
    assert model.training
    assert torch.equal(torch.get_rng_state(), before)
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_a_model_whose_numbers_overflow_has_no_bleu(translator: Translator):
    model = Transformer(translator.config)
    torch.nn.init.constant_(model.embedding.weight, torch.nan)
    measure = GreedyBleu(PAIRS, translator.tokenizer, 5, 40)
    assert measure(model) == {}


def test_pairs_that_training_leaves_out_are_not_translated(translator: Translator):
    long = [SentencePair("one " * 50, "eins"), *PAIRS]
    measure = GreedyBleu(long, translator.tokenizer, 200, 20)
    assert measure.pairs == PAIRS
    assert GreedyBleu(PAIRS, translator.tokenizer, 200, 2).pairs == []
    assert GreedyBleu(PAIRS, translator.tokenizer, 0, 40)(Transformer(translator.config)) == {}


def test_the_line_of_progress_tells_bleu():
    progress = TerminalLine(10, 1e12, "a peak")
    step = TrainingStep(10, 1.0, 0.1, 1.0, 100, 1.0, valid_loss=2.0, bleu=23.46, bleu_sentences=5, exact=0.2)
    progress.show(step)
    assert progress.line().endswith("valid 2.000 · BLEU 23.5 · 20 % exact")


def test_another_case_is_not_exact(closed_form_models):
    translator = load_translator(closed_form_models["copy"])
    text = CASES["copy"].sentence
    pair = SentencePair(text, translator.translate(text).text.swapcase())
    measure = GreedyBleu([pair], translator.tokenizer, 1, 40)
    found = measure(translator.model)
    assert found["exact"] == 0
