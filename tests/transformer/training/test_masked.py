"""Texts with masked pieces: what is hidden, what is to be predicted, and what it costs."""

import random
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch
from corpus import SOURCE_WORDS
from programs import main

from transformer import load_encoder
from transformer.config import EncoderConfig
from transformer.model import EncoderModel
from transformer.text.tokenizer import Tokenizer
from transformer.training.loss import SummedLoss, evaluate_loss
from transformer.training.masked import MaskedTexts, encode_texts


def counted(count: int) -> list[str]:
    """Lines of numbers in their order, each from another one on: what hides in one is certain."""
    draw = random.Random(0)
    starts = [draw.randrange(5) for _ in range(count)]
    return [" ".join(SOURCE_WORDS[start : start + 5]) for start in starts]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(counted(50), 320, at_most=True, masks=True)


@pytest.fixture(scope="module")
def texts(tokenizer: Tokenizer) -> MaskedTexts:
    return encode_texts(counted(2_000), tokenizer)


def test_a_batch_hides_ordinary_pieces_and_wants_nothing_else(
    texts: MaskedTexts, tokenizer: Tokenizer
) -> None:
    pad, bos, eos, _ = texts.special
    for batch in islice(texts.batches(600, seed=3), 20):
        ids = batch.src_ids
        wanted = batch.tgt_ids != pad
        assert (ids[:, 0] == bos).all()
        assert not wanted[:, 0].any()
        assert not wanted[(ids == eos) | (ids == pad)].any()
        assert wanted.any(1).all()
        assert batch.tokens == int(wanted.sum())
        assert (ids == texts.mask_id)[wanted].any()
        assert not (ids == texts.mask_id)[~wanted].any()
        rows = torch.where(wanted, batch.tgt_ids, ids).tolist()
        for row in rows:  # with what is wanted, it is one of the texts again
            assert tokenizer.source.text(row) in counted(2_000)


def test_eight_of_ten_chosen_pieces_are_masked_and_one_is_another_piece(
    texts: MaskedTexts,
) -> None:
    masked = same = other = ordinary = 0
    for batch in islice(texts.batches(4_000, seed=0), 60):
        wanted = batch.tgt_ids != texts.special.pad
        read = batch.src_ids[wanted]
        masked += int((read == texts.mask_id).sum())
        same += int((read == batch.tgt_ids[wanted]).sum())
        other += int(((read != texts.mask_id) & (read != batch.tgt_ids[wanted])).sum())
        ordinary += int((batch.src_ids > 2).sum())
    chosen = masked + same + other
    assert masked / chosen == pytest.approx(0.8, abs=0.02)
    assert other / chosen == pytest.approx(0.1, abs=0.02)
    assert 0.15 < chosen / ordinary < 0.25  # in short texts at least one of each


def test_a_batch_is_the_same_after_a_pause_and_another_in_the_next_epoch(
    texts: MaskedTexts,
) -> None:
    straight = list(islice(texts.batches(500, seed=1), 6))
    (later,) = islice(texts.batches(500, seed=1, skip=4), 1)
    assert torch.equal(straight[4].src_ids, later.src_ids)
    assert torch.equal(straight[4].tgt_ids, later.tgt_ids)
    few = replace(texts, source=texts.source[:3], target=texts.target[:3])
    first, second = islice(few.batches(500, seed=1), 2)
    assert not torch.equal(first.tgt_ids, second.tgt_ids)
    measured = [[batch.src_ids.tolist() for batch in texts.in_order(500)] for _ in range(2)]
    assert measured[0] == measured[1]


@pytest.mark.parametrize("transform", [True, False])
def test_the_loss_is_that_of_the_chosen_pieces_one_by_one(
    texts: MaskedTexts, transform: bool
) -> None:
    torch.manual_seed(0)
    config = EncoderConfig(
        vocab_size=texts.n_pieces,
        mask_id=texts.mask_id,
        d_model=16,
        d_ff=32,
        n_heads=2,
        n_layers=1,
        max_positions=32,
        dropout=0.0,
        output_bias=True,
        output_transform=transform,
    )
    model = EncoderModel(config).eval().requires_grad_(False)
    few = replace(texts, source=texts.source[:7], target=texts.target[:7])
    expected = count = 0.0
    batches = list(few.in_order(60))
    for batch in batches:
        for row, wanted in zip(batch.src_ids, batch.tgt_ids, strict=True):
            length = int((row == texts.special.eos).nonzero()[0]) + 1
            logits = model(row[None, :length])[0]  # without padding
            for place, token in enumerate(wanted[:length].tolist()):
                if token != texts.special.pad:
                    expected -= float(logits[place].log_softmax(-1)[token])
                    count += 1
    summed = SummedLoss(model, 0.0, torch.float32)
    assert float(sum(summed(batch) for batch in batches)) == pytest.approx(expected, rel=1e-5)
    assert evaluate_loss(model, few, 60) == pytest.approx(expected / count, rel=1e-5)


def test_a_vocabulary_without_a_mask_is_refused() -> None:
    plain = Tokenizer.train(counted(50), 300, at_most=True)
    with pytest.raises(ValueError, match="no piece <mask>"):
        encode_texts(["one two"], plain)


def test_the_command_trains_an_encoder_that_knows_what_is_hidden(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("\n".join(counted(600)))
    sizes = ["--vocab-size", "280", "--d-model", "32", "--d-ff", "64", "--n-heads", "2"]
    sizes += ["--n-layers", "2", "--positions", "rotary", "--max-length", "40", "--dropout", "0"]
    steps = ["--steps", "250", "--learning-rate", "1e-2", "--warmup", "30", "--device", "cpu"]
    steps += ["--batch-positions", "700"]
    output = tmp_path / "counts"
    files = ["--text", str(text), "--valid", str(text), "--output", str(output)]
    assert main(["train-masked", *files, *sizes, *steps]) == 0
    model = load_encoder(output)
    run = model.fill("two three four five six")
    assert run.predict is not None
    inner = range(1, len(run.source_tokens) - 1)
    predictions = run.predict(inner)
    right = [
        fill.alternatives[0].token == run.source_tokens[at] for at, fill in predictions.items()
    ]
    assert sum(right) / len(right) > 0.9
    assert "pipeline_tag: fill-mask" in model.card
    assert main(["train-masked", *files, *sizes, *steps, "--resume", "--steps", "251"]) == 0
