"""Exact matches: counted as a visitor would, and without a trace in the run."""

from __future__ import annotations

from array import array
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from closed_form import CASES
from corpus import number_pairs

from transformer import load_translator
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer.text.pairs import SentencePair
from transformer.text.vocabulary import Tokenizer
from transformer.training.batches import EncodedPairs, encode_pairs
from transformer.training.runs.exact import ExactMatches, exact_matches
from transformer.training.trainer import Trainer, TrainingOptions

POSITIONS = 256


@pytest.fixture
def data(tokenizer: Tokenizer) -> EncodedPairs:
    return encode_pairs([SentencePair(*pair) for pair in number_pairs(30)], tokenizer)


@pytest.fixture
def trainer(tokenizer: Tokenizer, data: EncodedPairs) -> Trainer:
    sizes = {"d_model": 8, "n_heads": 2, "d_ff": 8, "n_encoder_layers": 1, "n_decoder_layers": 1}
    torch.manual_seed(3)
    model = Transformer(TransformerConfig(vocab_size=tokenizer.vocab_size, **sizes))
    return Trainer(model, data, TrainingOptions(steps=20))


def test_only_targets_that_the_model_writes_itself_count(closed_form_models: dict[str, Path]) -> None:
    translator = load_translator(closed_form_models["copy"])
    words = CASES["copy"].sentence.split()
    texts = [" ".join(words[: i + 1]) for i in range(len(words))]
    runs = [translator.translate(text).target_ids for text in texts]
    assert all(run[-1] == translator.config.eos_id for run in runs)
    own, ids = (
        [array("i", row) for row in rows] for rows in ([r[:-1] for r in runs], map(translator.ids, texts))
    )
    assert exact_matches(translator.model, EncodedPairs(ids, own), POSITIONS) == 1
    wrong = EncodedPairs(ids, [own[0][:-1], own[1] + array("i", [5]), *own[2:]])
    assert exact_matches(translator.model, wrong, POSITIONS) == pytest.approx(1 - 2 / len(ids))


def test_measuring_changes_nothing_of_the_run(trainer: Trainer, data: EncodedPairs) -> None:
    done = replace(trainer.advance(), valid_loss=2.0, valid_loss_average=1.0)
    before = {name: tensor.clone() for name, tensor in trainer.state_tensors().items()}
    assert ExactMatches(trainer, data, 5).measured(done).exact == 0
    assert trainer.model.training
    after = trainer.state_tensors()
    assert all(torch.equal(after[name], before[name]) for name in before)


def test_a_step_without_an_evaluation_or_without_pairs_stays_as_it_is(
    trainer: Trainer, data: EncodedPairs
) -> None:
    done = trainer.advance()
    assert ExactMatches(trainer, data, 5).measured(done) is done
    evaluated = replace(done, valid_loss=1.0)
    assert ExactMatches(trainer, data, 0).measured(evaluated) is evaluated
