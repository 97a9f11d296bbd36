"""Encoders alone as transformers keeps them: every number, head and token as in the reference."""

import json
import unicodedata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from encoder_models import (
    KINDS,
    SEGMENTLESS,
    reference,
    tokenizer_of,
    write_encoder,
)

from transformer import Capture, Translator, load_encoder
from transformer.families.encoder import EncoderFamily
from transformer.families.registry import ENCODERS, family_of
from transformer.text.words import is_mask, is_special, word_groups

NEAR = 1e-5
TEXT = "The old house, and the 2 Dogs ran\n near a naïve café."
TYPED = json.loads((Path(__file__).parent / "typed.json").read_text())


class Pair(NamedTuple):
    """A directory, opened by this package and by transformers."""

    ours: Translator
    theirs: Any
    tokenizer: Any
    kind: str
    directory: Path

    @property
    def mask(self) -> str:
        """What a masked word is typed as."""
        return str(self.tokenizer.mask_token)

    @property
    def end(self) -> str:
        """What a pair is divided by."""
        return str(self.tokenizer.sep_token)

    def read(self, *texts: str) -> dict[str, torch.Tensor]:
        """What the reference reads of a text or of two."""
        read = dict(self.tokenizer(*texts, return_tensors="pt"))
        if self.kind in SEGMENTLESS:
            read.pop("token_type_ids", None)
        return read

    def computed(self, *texts: str) -> Any:
        """What the reference computes of a text or of two."""
        options = {"output_attentions": True, "output_hidden_states": True}
        with torch.inference_mode():
            return self.theirs(**self.read(*texts), **options)


@pytest.fixture(scope="module", params=KINDS, ids=list(KINDS))
def pair(request: Any, tmp_path_factory: Any) -> Pair:
    kind = request.param
    directory = write_encoder(tmp_path_factory.mktemp("encoder"), kind)
    ours = load_encoder(directory, "cpu")
    return Pair(ours, reference(directory, kind), tokenizer_of(directory), kind, directory)


def ids_of(run: Any, ours: Translator) -> list[int]:
    return list(ours.ids_of(run)["encoder"])


def largest(ours: Any, theirs: torch.Tensor) -> float:
    return float((torch.as_tensor(ours) - theirs).abs().max())


def check(pair: Pair, *texts: str) -> Any:
    """Ids, streams and every head of a run are the reference's."""
    run = pair.ours.fill(pair.end.join(texts), capture=Capture(residual=True))
    assert ids_of(run, pair.ours) == pair.read(*texts)["input_ids"][0].tolist()
    expected = pair.computed(*texts)
    assert largest(run.trace.embeddings["encoder"].input, expected.hidden_states[0][0]) < NEAR
    passed = run.config.stacks["encoder"].passed()
    for layer, stream in enumerate(expected.hidden_states[1:]):
        assert largest(run.stream(passed[2 * layer + 1]).stream, stream[0]) < NEAR
    for layer, weights in enumerate(expected.attentions):
        for head in range(run.config.n_heads):
            assert largest(run.weights("encoder", layer, head), weights[0, head]) < NEAR
    assert run.audit().passed
    return run, expected


def test_streams_and_every_head_are_the_reference_s(pair: Pair) -> None:
    check(pair, TEXT)


def test_a_pair_of_texts_is_read_as_the_reference_reads_it(pair: Pair) -> None:
    run, _ = check(pair, "the old house", "two dogs ran")
    single, _ = check(pair, "the old house two dogs ran")
    assert run.config.n_segments == (
        0 if pair.kind == "DistilBERT" else 1 + (pair.kind not in SEGMENTLESS)
    )
    assert len(run.source_tokens) == len(single.source_tokens) + run.config.n_separators


def test_what_a_mask_stands_for_is_the_reference_s(pair: Pair) -> None:
    text = f"the {pair.mask} house and {pair.mask} dogs"
    run, expected = check(pair, text)
    masked = [place for place, piece in enumerate(run.source_tokens) if is_mask(piece)]
    if pair.ours.config.mask_id is None:
        assert masked == []
        assert run.predict is None
        assert run.fills == {}
        return
    ids = torch.tensor([ids_of(run, pair.ours)])
    assert largest(pair.ours.model(ids), expected.logits) < NEAR
    assert masked == [place for place, i in enumerate(ids[0]) if i == pair.tokenizer.mask_token_id]
    assert list(run.fills) == masked
    for place, fill in run.fills.items():
        log_probs = expected.logits[0, place].log_softmax(-1)
        assert fill.token_id == int(log_probs.argmax())
        assert fill.log_prob == pytest.approx(float(log_probs.max()), abs=NEAR)


def test_any_word_is_predicted_as_if_it_were_masked(pair: Pair) -> None:
    run = pair.ours.fill(TEXT)
    if run.predict is None:
        assert pair.ours.config.mask_id is None
        return
    predictions = run.predict(range(1, 6))
    read = pair.read(TEXT)
    for place, prediction in predictions.items():
        ids = read["input_ids"].clone()
        ids[0, place] = pair.tokenizer.mask_token_id
        with torch.inference_mode():
            logits = pair.theirs(**read | {"input_ids": ids}).logits[0, place]
        assert prediction.token_id == read["input_ids"][0, place]
        wanted = float(logits.log_softmax(-1)[prediction.token_id])
        assert prediction.log_prob == pytest.approx(wanted, abs=NEAR)


NASTY = (
    *TYPED,
    "İstanbul ıssız Σίσυφος ὈΔΥΣΣΕΎΣ ﬁne ½ ²",
    "不同的 文字 in one 句子。",
    "a\u200bb\ufeffc\u00add\x00e\x7ff\ufffdg",
    "unaffordable UNAFFORDABLE readings-houses don't",
    "x" * 150 + " the",
    "##ing ## [CLS] a [UNK] [unused1] <s> b <unk>",
    "🏳️‍🌈 👨‍👩‍👧 e\u0301\u0327",
    "the_old.house/two\\dogs@near#river",
    "٣ ४ Ⅷ ①",
)


def test_nasty_texts_have_the_ids_of_the_reference(pair: Pair) -> None:
    for text in NASTY:
        ids = pair.tokenizer(text)["input_ids"]
        run = pair.ours.cut(text)
        assert [number for number, _ in pair.ours.framed(run)] == ids, text


def test_every_piece_stands_where_its_text_does(pair: Pair) -> None:
    for text in NASTY:
        cut = pair.ours.cut(text)
        words = text.split()
        for piece, word in zip(cut.pieces, cut.words, strict=True):
            bare = piece.strip("▁").casefold()
            if word >= 0 and bare.isascii() and bare.isalpha() and not is_special(piece):
                plain = unicodedata.normalize("NFKD", words[word]).casefold()
                assert bare in plain, (text, piece)


def test_words_are_joined_of_their_pieces(pair: Pair) -> None:
    cut = pair.ours.cut("the unaffordable readings")
    assert len(cut.pieces) > 3
    assert [group.text.casefold() for group in word_groups(cut.pieces)] == [
        "the",
        "unaffordable",
        "readings",
    ]
    assert [group.text for group in cut.groups()] == ["the", "unaffordable", "readings"]


def test_the_filled_text_is_written_without_special_pieces(pair: Pair) -> None:
    run = pair.ours.fill(f"the {pair.mask} house")
    if pair.ours.config.mask_id is None:
        assert run.text == ""
        return
    ids = ids_of(run, pair.ours)
    (place,) = run.fills
    ids[place] = run.fills[place].token_id
    assert run.text.split() == pair.tokenizer.decode(ids, skip_special_tokens=True).split()


def test_every_family_says_where_all_weights_of_its_models_lie(pair: Pair) -> None:
    family = family_of(pair.directory)
    assert isinstance(family, EncoderFamily)
    sources = set(family.sources(pair.ours.config))
    if pair.ours.config.mask_id is not None:
        sources |= set(family.head.sources(()))
    assert pair.ours.model.state_dict().keys() == sources


def test_a_directory_s_family_is_known_by_its_type(tmp_path: Path) -> None:
    for family in ENCODERS:
        for kind in family.types:
            (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
            assert family_of(tmp_path) is family


def test_a_padded_text_is_read_as_alone(pair: Pair) -> None:
    ids = torch.tensor([ids_of(pair.ours.fill(TEXT), pair.ours)])
    padded = torch.nn.functional.pad(ids, (0, 5), value=pair.ours.config.pad_id)
    with torch.inference_mode():
        alone = pair.ours.model.features(ids)
        assert np.allclose(pair.ours.model.features(padded)[:, : ids.shape[1]], alone, atol=NEAR)
