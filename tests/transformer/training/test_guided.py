"""Guided alignment: the loss is that of its definition, and a guided head looks where it is told to."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus import number_pairs
from programs import main

from transformer.lenses.scores.gold_links import align_gold
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer.runs.translator import load_translator
from transformer.text.links import GoldPair
from transformer.text.pairs import SentencePair
from transformer.text.vocabulary import Tokenizer
from transformer.training.batches import encode_pairs, make_batch
from transformer.training.guided import Guide, GuidedHead, guided_loss, with_links

PAIRS = [SentencePair(*pair) for pair in number_pairs(40)]
CONFIG = TransformerConfig(
    vocab_size=300, d_model=16, d_ff=16, n_heads=2, n_encoder_layers=1, n_decoder_layers=2, dropout=0.0
)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train([text for pair in PAIRS for text in (pair.source, pair.target)], 300)


def in_order(pair: SentencePair) -> GoldPair:
    """The pair with each word linked to the word at the same place."""
    source, target = tuple(pair.source.split()), tuple(pair.target.split())
    links = frozenset((i, i) for i in range(min(len(source), len(target))))
    return GoldPair(source, target, links, links)


def backwards(gold: GoldPair) -> GoldPair:
    """The pair with its links mirrored."""
    links = frozenset((len(gold.source) - 1 - i, j) for i, j in gold.sure)
    return GoldPair(gold.source, gold.target, links, links)


def line(gold: GoldPair) -> str:
    links = " ".join(f"{i}-{j}" for i, j in sorted(gold.sure))
    return f"{' '.join(gold.source)}\t{' '.join(gold.target)}\t{links}\n"


def test_the_row_that_reads_a_token_should_look_at_the_pieces_of_its_linked_words(
    tokenizer: Tokenizer,
) -> None:
    data = with_links(encode_pairs(PAIRS[:2], tokenizer), PAIRS[:2], [in_order(PAIRS[0])], tokenizer)
    looks = make_batch(data, [0, 1]).links
    assert looks is not None
    assert looks[1].sum() == 0
    assert looks[0, 0].sum() == 0
    assert set(looks[0].sum(-1).tolist()) == {0.0, 1.0}
    pieces = tokenizer.pieces(data.source[0])
    begins = [i for i, piece in enumerate(pieces) if piece.startswith("▁")]
    stop = begins[1] if len(begins) > 1 else len(pieces)
    assert looks[0, 1].nonzero().flatten().tolist() == list(range(stop))


def test_the_loss_is_the_cross_entropy_of_the_heads_own_weights(tokenizer: Tokenizer) -> None:
    model = Transformer(CONFIG)
    data = with_links(encode_pairs(PAIRS[:6], tokenizer), PAIRS[:6], map(in_order, PAIRS), tokenizer)
    batch = make_batch(data, range(6))
    assert batch.links is not None
    guide = Guide(GuidedHead.read("2.1", CONFIG))
    model.features(batch.src_ids, batch.tgt_input_ids, guide)
    assert guide.log_weights is not None
    found = guided_loss(guide.log_weights, batch.links)
    expected = 0.0
    for row in range(6):
        source = batch.src_ids[row][batch.src_ids[row] != 0][None]
        target = batch.tgt_input_ids[row][batch.tgt_input_ids[row] != 0][None]
        alone = Guide(GuidedHead(1, 0))
        model.features(source, target, alone)
        assert alone.log_weights is not None
        looks = batch.links[row, : target.shape[1], : source.shape[1]]
        expected -= float((looks * alone.log_weights[0].detach()).sum())
    assert float(found.detach()) == pytest.approx(expected, rel=1e-4)
    found.backward()
    gradient = model.decoder.layers[1].cross_attention.q_proj.weight.grad
    assert gradient is not None
    assert gradient[:8].abs().sum() > 0
    assert gradient[8:].abs().sum() == 0


@pytest.mark.parametrize("text", ["", "1", "0.1", "3.1", "1.3", "1.1.1", "a.b"])
def test_a_head_that_the_model_does_not_have_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"write LAYER\.HEAD, from 1\.1 to 2\.2"):
        GuidedHead.read(text, CONFIG)


def test_a_guided_head_learns_links_that_translation_would_not_teach(tmp_path: Path) -> None:
    train, links = tmp_path / "train.tsv", tmp_path / "links.tsv"
    gold = [backwards(in_order(pair)) for pair in PAIRS]
    train.write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in PAIRS), encoding="utf-8")
    links.write_text("".join(map(line, gold)), encoding="utf-8")
    command = ["train", "--preset", "tiny", "--vocab-size", "300", "--dropout", "0", "--steps", "150"]
    command += ["--train", str(train), "--valid", str(train), "--output", str(tmp_path / "run")]
    command += ["--guided-alignment", "2.3", "--links", str(links), "--guided-weight", "1", "--device", "cpu"]
    assert main(command) == 0
    scores = align_gold(load_translator(tmp_path / "run"), gold).scores("read")
    assert scores[1][2].aer < 0.1
    assert min(each.aer for each in scores[0]) > 0.3


def test_links_without_a_guided_head_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["train", "--train", "a", "--valid", "b", "--output", str(tmp_path / "run"), "--links", "c"]
    assert main(command) == 2
    assert "need each other" in capsys.readouterr().err


def test_an_aligner_links_the_words_of_pairs(tmp_path: Path) -> None:
    pytest.importorskip("eflomal", reason="the aligner eflomal is not installed")
    data, output = tmp_path / "pairs.tsv", tmp_path / "links.tsv.gz"
    data.write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in PAIRS), encoding="utf-8")
    assert main(["links", "--data", str(data), "--output", str(output)]) == 0
