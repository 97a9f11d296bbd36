"""Encoders alone as transformers keeps them: every number, head and token as in the reference."""

import json
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from encoder_models import (
    KINDS,
    SEGMENTLESS,
    changed_config,
    reference,
    rewritten,
    tokenizer_of,
    write_encoder,
)
from refusals import refused
from safetensors.torch import load_file

from transformer import (
    Capture,
    Translator,
    load_encoder,
    load_language_model,
    load_translator,
)
from transformer.families.alone import FIELDS
from transformer.families.distilbert import FIELDS as DISTIL_FIELDS
from transformer.families.encoder import EncoderFamily
from transformer.families.registry import ENCODERS, family_of
from transformer.reader import InputError
from transformer.storage.files import CheckpointError
from transformer.text.tokenizer import TokenizerError
from transformer.text.words import is_mask, is_special, word_groups

NEAR = 1e-5
NEAR_LOGITS = 5e-5
Tensors = dict[str, torch.Tensor]
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


def test_typed_padding_is_a_token_as_in_the_reference_or_refused(pair: Pair) -> None:
    text = f"the {pair.tokenizer.pad_token} house"
    if pair.theirs.config.model_type in ("roberta", "xlm-roberta"):
        with refused(TokenizerError, "no position for <pad>"):
            pair.ours.fill(text)
        return
    check(pair, text)


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
    assert largest(pair.ours.model(ids), expected.logits) < NEAR_LOGITS
    assert masked == [place for place, i in enumerate(ids[0]) if i == pair.tokenizer.mask_token_id]
    assert list(run.fills) == masked
    for place, fill in run.fills.items():
        log_probs = expected.logits[0, place].log_softmax(-1)
        assert fill.token_id == int(log_probs.argmax())
        assert fill.log_prob == pytest.approx(float(log_probs.max()), abs=NEAR_LOGITS)


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
        assert prediction.log_prob == pytest.approx(wanted, abs=NEAR_LOGITS)


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
    "The language codes are en_US, pt_BR and zh_CN. The flag <s> is gone.",
    "猫が寝ている 。",
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


def logits_of(directory: Path) -> torch.Tensor:
    """What a directory's model computes of a few ids."""
    with torch.inference_mode():
        logits: torch.Tensor = load_encoder(directory, "cpu").model(torch.tensor([[2, 9, 17, 3]]))
    return logits


def bare(tensors: Tensors) -> Tensors:
    return {name.removeprefix("bert."): tensor for name, tensor in tensors.items()}


def old_norms(tensors: Tensors) -> Tensors:
    older = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    spelled = dict[str, torch.Tensor]()
    for name, tensor in tensors.items():
        for now, before in older.items():
            name = name.replace(now, before)
        spelled[name] = tensor
    return spelled


def twice(tensors: Tensors) -> Tensors:
    more = {
        "cls.predictions.decoder.weight": tensors["bert.embeddings.word_embeddings.weight"].clone(),
        "cls.predictions.decoder.bias": tensors["cls.predictions.bias"].clone(),
    }
    return tensors | more


def other_bias_name(tensors: Tensors) -> Tensors:
    rest = dict(tensors)
    rest["cls.predictions.decoder.bias"] = rest.pop("cls.predictions.bias")
    return rest


def unread(tensors: Tensors) -> Tensors:
    more = {
        "bert.embeddings.position_ids": torch.arange(300)[None],
        "bert.pooler.dense.weight": torch.ones(48, 48),
        "cls.seq_relationship.bias": torch.ones(2),
    }
    return tensors | more


@pytest.mark.parametrize("spelling", [bare, old_norms, twice, other_bias_name, unread])
def test_files_of_every_spelling_are_one_model(
    spelling: Callable[[Tensors], Tensors], tmp_path: Path
) -> None:
    directory = write_encoder(tmp_path, "BERT")
    before = logits_of(directory)
    rewritten(directory, spelling)
    assert torch.equal(logits_of(directory), before)
    assert load_encoder(directory, "cpu").notes == ()


def test_an_old_file_of_pytorch_s_opens(tmp_path: Path) -> None:
    directory = write_encoder(tmp_path, "BERT")
    before = logits_of(directory)
    path = directory / "model.safetensors"
    torch.save(old_norms(load_file(path)), directory / "pytorch_model.bin")
    path.unlink()
    assert torch.equal(logits_of(directory), before)


@pytest.mark.parametrize("kind", ["Bert", "Roberta", "XLMRoberta", "DistilBert", "Electra"])
def test_entries_that_a_config_leaves_out_are_the_reference_s_defaults(
    kind: str, tmp_path: Path
) -> None:
    import transformers

    values = getattr(transformers, f"{kind}Config")().to_dict() | {"embedding_size": 256}
    family = next(family for family in ENCODERS if values["model_type"] in family.types)
    sizes = {*FIELDS.values(), *DISTIL_FIELDS.values(), "model_type", "embedding_size"}
    least = {name: value for name, value in values.items() if name in sizes}
    assert family.config(least, tmp_path) == family.config(values, tmp_path)


def test_an_output_of_its_own_is_the_one_that_predicts(tmp_path: Path) -> None:
    directory = write_encoder(tmp_path, "BERT")
    table = torch.randn(tokenizer_of(directory).vocab_size, 48)
    bias = torch.randn(len(table))
    more = {"cls.predictions.decoder.weight": table, "cls.predictions.decoder.bias": bias}
    rewritten(directory, lambda tensors: tensors | more)
    ours = load_encoder(directory, "cpu")
    assert not ours.config.tied_embeddings
    ids = torch.tensor([[2, 9, 17, 3]])
    with torch.inference_mode():
        assert largest(ours.model(ids), reference(directory, "BERT")(ids).logits) < NEAR_LOGITS
    rewritten(directory, lambda tensors: tensors | {"cls.predictions.decoder.weight": table * 2})
    assert not torch.equal(logits_of(directory), ours.model(ids))


def test_a_head_of_another_task_is_passed_over_and_said(tmp_path: Path) -> None:
    directory = write_encoder(tmp_path, "MiniLM")
    rewritten(directory, lambda tensors: tensors | {"classifier.weight": torch.ones(2, 48)})
    notes = load_encoder(directory, "cpu").notes
    assert [note.split(":")[0] for note in notes] == [
        "This model has no output for masked words",
        "This model's files hold classifier.weight, which this package does not compute.",
    ]


OLDER_FILES = {
    "BERT": ("vocab.txt", {}),
    "BERT, cased, tanh-approximated": ("vocab.txt", {"do_lower_case": False}),
    "RoBERTa": ("merges.txt", {}),
    "XLM-R": ("sentencepiece.bpe.model", {}),
}


@pytest.mark.parametrize("kind", OLDER_FILES)
def test_older_files_of_a_vocabulary_mean_the_same(kind: str, tmp_path: Path) -> None:
    directory = write_encoder(tmp_path, kind)
    whole = load_encoder(directory, "cpu")
    (file, settings) = OLDER_FILES[kind]
    if file == "vocab.txt":
        ids = tokenizer_of(directory).get_vocab()
        lines = "".join(f"{piece}\n" for piece in sorted(ids, key=ids.__getitem__))
        (directory / file).write_text(lines, encoding="utf-8")
    (directory / "tokenizer.json").unlink()
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))
    older = load_encoder(directory, "cpu")
    assert older.config == whole.config
    for text in NASTY:
        # of marks out of order the libraries sentencepiece and tokenizers make other characters
        if kind != "XLM-R" or unicodedata.is_normalized("NFC", text):
            assert older.cut(text).ids == whole.cut(text).ids, text
    for text in TYPED:
        ours = older.cut(text)
        places = zip(ours.pieces, ours.words, whole.cut(text).words, strict=True)
        assert all(one == other for piece, one, other in places if piece != "▁"), text


def test_strange_settings_of_a_file_of_pieces_are_followed(tmp_path: Path) -> None:
    directory = write_encoder(tmp_path, "BERT")
    ids = tokenizer_of(directory).get_vocab()
    lines = sorted(ids, key=ids.__getitem__)
    (directory / "tokenizer.json").unlink()
    lines[lines.index("[MASK]")] = "<hidden>"
    (directory / "vocab.txt").write_text("\n".join(lines), encoding="utf-8")
    settings = {"mask_token": {"content": "<hidden>"}, "strip_accents": False}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))
    ours = load_encoder(directory, "cpu")
    assert len(ours.fill("the <hidden> house").fills) == 1
    assert ours.cut("caf\u00e9").unknown


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "relative keys": ("BERT", {"position_embedding_type": "relative_key"}, "relative_key"),
    "a decoder": ("BERT", {"is_decoder": True}, "is_decoder"),
    "cross-attention": ("RoBERTa", {"add_cross_attention": True}, "add_cross_attention"),
    "narrow embeddings": ("ELECTRA", {"embedding_size": 24}, "as wide as their layers"),
    "another activation than the head's": ("RoBERTa", {"hidden_act": "relu"}, "hidden_act"),
    "another padding": ("XLM-R", {"pad_token_id": 0}, "pad_token_id"),
    "an activation": ("DistilBERT", {"activation": "tanh"}, "tanh"),
    "no width": ("BERT", {"hidden_size": None}, "hidden_size"),
    "a width that is a text": ("BERT", {"hidden_size": "48"}, "d_model"),
    "positions that are a text": ("RoBERTa", {"max_position_embeddings": "9"}, "max_positions"),
    "heads that do not fit": ("BERT", {"num_attention_heads": 5}, "n_heads"),
    "too many layers": ("BERT", {"num_hidden_layers": 5}, "lack"),
    "too few layers": ("BERT", {"num_hidden_layers": 2}, "include"),
    "too few positions": ("BERT", {"max_position_embeddings": 200}, "shape"),
    "an output that is not there": ("BERT", {"tie_word_embeddings": False}, "lack"),
    **{
        f"model_type {kind}": ("BERT", {"model_type": kind}, f"holds a {kind} model")
        for kind in ("albert", "deberta-v2", "modernbert", "longformer", "mpnet")
    },
}


@pytest.mark.parametrize(("kind", "entries", "words"), REFUSED.values(), ids=list(REFUSED))
def test_what_cannot_be_exact_is_refused_by_name(
    kind: str, entries: dict[str, Any], words: str, tmp_path: Path
) -> None:
    directory = write_encoder(tmp_path, kind)
    changed_config(directory, **entries)
    with refused(CheckpointError, words):
        load_encoder(directory, "cpu")


def framed_otherwise(directory: Path, **entries: Any) -> None:
    """Another post-processor of a tokenizer.json."""
    path = directory / "tokenizer.json"
    values = json.loads(path.read_text())
    values["post_processor"] |= entries
    path.write_text(json.dumps(values))


def place(name: str, type_id: int = 0) -> Any:
    kind = "Sequence" if name in "AB" else "SpecialToken"
    return {kind: {"id": name, "type_id": type_id}}


FRAMES = {
    "two starts": {"single": [*map(place, ("[CLS]", "[CLS]", "A", "[SEP]"))]},
    "no end": {"single": [*map(place, ("[CLS]", "A"))]},
    "a pair without an end": {"pair": [*map(place, ("[CLS]", "A", "[SEP]", "B"))]},
    "a pair numbered otherwise": {
        "pair": [
            *map(place, ("[CLS]", "A")),
            *(place(name, 1) for name in ("[SEP]", "B", "[SEP]")),
        ]
    },
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=list(FRAMES))
def test_a_text_that_is_framed_otherwise_is_refused(frame: dict[str, Any], tmp_path: Path) -> None:
    directory = write_encoder(tmp_path, "BERT")
    framed_otherwise(directory, **frame)
    with refused(CheckpointError, "(puts other tokens|numbers the texts)"):
        load_encoder(directory, "cpu")


def test_a_directory_without_a_vocabulary_or_with_a_foreign_one_is_refused(tmp_path: Path) -> None:
    directory = write_encoder(tmp_path, "BERT")
    (directory / "tokenizer.json").unlink()
    with refused(CheckpointError, r"no tokenizer.json and no vocab.txt"):
        load_encoder(directory, "cpu")
    settings = {"tokenizer_class": "BertJapaneseTokenizer"}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))
    with refused(CheckpointError, "BertJapaneseTokenizer"):
        load_encoder(directory, "cpu")
    (directory / "tokenizer_config.json").unlink()
    for content in (b"\xff\xfe", b"a\nb\n", b"[UNK]\na\n"):
        (directory / "vocab.txt").write_bytes(content)
        with refused(CheckpointError, "vocab.txt"):
            load_encoder(directory, "cpu")


def test_a_text_is_as_long_as_the_table_of_positions_at_most(tmp_path: Path) -> None:
    directory = write_encoder(tmp_path, "RoBERTa", max_position_embeddings=14)
    ours = load_encoder(directory, "cpu")
    assert ours.config.max_positions == 12
    assert len(ours.fill("!" * 10).source_tokens) == 12
    with refused(InputError, "13 tokens; shorten it to at most 12"):
        ours.fill("!" * 11)


def test_an_encoder_is_opened_by_what_it_does(tmp_path: Path) -> None:
    directory = write_encoder(tmp_path, "DistilBERT")
    for load in (load_translator, load_language_model):
        with refused(CheckpointError, "load_encoder"):
            load(directory, "cpu")
    assert load_translator(directory, "cpu", task=None).config.task == "fill"
    with refused(ValueError, "task"):
        load_translator(directory, "cpu", task="sing")  # type: ignore[arg-type]
