"""What people save today opens: tokenizer.json alone, added tokens, languages that the files name; and what
would open silently wrong is refused."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import bart_models
import m2m_models
import marian_models
import pytest
import t5_models
import torch
from parity import TEXTS, Pair, check_forward, check_greedy
from safetensors.torch import load_file, save_file
from saved_models import PAIRS, WRITE, saved_tokenizer, write_saved

from transformer import Sampling, Translator, load_translator
from transformer.batches import hypotheses
from transformer.storage.files import CheckpointError
from transformer.translator import InputError

ODD = [
    *TEXTS,
    "the <extra_id_0> house foo <extra_id_9>is",
    "foofoo the</s>foo <mask> b <unk><pad>",
    "▁the▁cat",
    "  two  spaces ",
    "“quoted” – dash…",
    "龘 a 龘s tyv_Cyrl",
]
ADDED = {"foo": False, "tyv_Cyrl": True}
REFERENCE = {
    "t5": t5_models.reference,
    "bart": bart_models.bart_reference,
    "mbart": bart_models.mbart_reference,
    "m2m": m2m_models.reference,
    "nllb": m2m_models.reference,
}


@pytest.fixture(scope="module", params=WRITE)
def saved(request, tmp_path_factory) -> tuple[str, Path, Translator]:
    directory = write_saved(tmp_path_factory.mktemp("saved"), request.param, ADDED)
    return request.param, directory, load_translator(directory)


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_ids_pieces_and_text_are_the_reference_s(saved, text):
    family, directory, ours = saved
    reference, pair = saved_tokenizer(directory), PAIRS.get(family, "")
    cut = ours.tokenizer.cut(f"{pair} {text}")
    read = cut.clean.text.removeprefix(pair).strip()
    ids = reference(read).input_ids
    assert [*cut.ids, ours.config.eos_id] == ids
    assert ours.tokenizer.decode(ids) == reference.decode(ids, skip_special_tokens=True).strip()
    assert len(cut.ids) == len(cut.pieces) == len(cut.words)
    assert bool(cut.unknown) == ("<unk>" in reference.convert_ids_to_tokens(ids) and family != "bart") or (
        "<unk>" in text
    )
    if family != "bart":  # whose pieces are named by their text
        assert list(ours.pieces(ids, "source")) == reference.convert_ids_to_tokens(ids)


def test_a_saved_model_gives_the_reference_s_numbers(saved):
    family, directory, ours = saved
    pair = PAIRS.get(family, "")
    ids = saved_tokenizer(directory)("the cat sleeps in the old house .").input_ids
    text = f"{pair} the cat sleeps in the old house .".strip()
    firsts = {
        "bart": 0,
        **{f: ours.tokenizer.source.ids[p.split()[1]] for f, p in PAIRS.items() if f == family},
    }
    compared = Pair(
        ours, REFERENCE[family](directory), text, tuple(ids), ours.config.bos_id, firsts.get(family)
    )
    check_forward(compared, "two dogs ran over the hills")
    check_greedy(compared, 1)


def test_added_tokens_stay_whole_and_an_added_language_is_offered(saved):
    family, _, ours = saved
    pair, languages = PAIRS.get(family, ""), ours.config.language_pieces
    assert "foo" in ours.tokenizer.cut(f"{pair} the foo is").pieces
    assert languages[:2] == tuple(pair.split())
    assert ("tyv_Cyrl" in languages) == bool(pair)
    if pair:
        into = ours.translate(f"{languages[0]} tyv_Cyrl the house", beam_size=1, capture=False)
        assert into.target_tokens[0] == "tyv_Cyrl"


def test_a_tokenizer_that_frames_texts_otherwise_is_refused(tmp_path):
    directory = write_saved(tmp_path, "mbart")
    settings(directory, tokenizer_class="TokenizersBackend")
    load_translator(directory)
    path = directory / "tokenizer.json"
    whole = json.loads(path.read_text())
    frame = whole["post_processor"]["single"]
    whole["post_processor"]["single"] = frame[1:] + frame[:1]  # as MBartTokenizer has it
    path.write_text(json.dumps(whole))
    with pytest.raises(CheckpointError, match="puts other tokens around a text"):
        load_translator(directory)


def test_neither_truncation_nor_padding_nor_a_large_file_is_taken_over(tmp_path):
    directory = write_saved(tmp_path, "t5")
    text, path = "the cat sleeps in the old house", directory / "tokenizer.json"
    ids = load_translator(directory).ids(text)
    tokenizer = saved_tokenizer(directory).backend_tokenizer
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding(length=40)
    tokenizer.save(str(path))
    assert load_translator(directory).ids(text) == ids
    with path.open("r+b") as file:
        file.truncate(65 * 2**20)
    with pytest.raises(CheckpointError, match=r"tokenizer\.json is larger than 64 MiB"):
        load_translator(directory)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"model": 1}', "\ud800"])
@pytest.mark.parametrize("family", WRITE)
def test_a_damaged_tokenizer_is_one_sentence(tmp_path, family, content):
    directory = (
        write_saved(tmp_path, family, encoder_layers=1) if family != "t5" else write_saved(tmp_path, "t5")
    )
    (directory / "tokenizer.json").write_text(content, encoding="utf-8", errors="surrogatepass")
    with pytest.raises(CheckpointError, match="is damaged or is not a vocabulary"):
        load_translator(directory)


def changed_model(directory: Path, **entries: Any) -> Path:
    """A directory whose tokenizer.json says something else of its model."""
    path = directory / "tokenizer.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(values | {"model": values["model"] | entries}), encoding="utf-8")
    return directory


def test_a_vocabulary_without_an_unknown_piece_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match=r"has no piece for what it cannot spell\.$"):
        load_translator(changed_model(write_saved(tmp_path, "t5"), unk_id=None))


def test_a_text_is_always_read_alike(tmp_path):
    directory, text = (
        write_saved(tmp_path, "nllb"),
        "eng_Latn deu_Latn the little houses are sleeping quietly",
    )
    ids = load_translator(directory).ids(text)
    ours = load_translator(changed_model(directory, dropout=0.9))
    assert [ours.ids(text) for _ in range(5)] == [ids] * 5


def settings(directory: Path, file: str = "tokenizer_config.json", **entries: Any) -> None:
    path = directory / file
    values = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(values | entries))


@pytest.mark.parametrize(
    "place", ["added_tokens.json", "added_tokens_decoder", "tokenizer.json", "listed", "named"]
)
def test_an_added_language_beside_sentencepiece_is_found_wherever_it_stands(tmp_path, place):
    directory = m2m_models.write_m2m(tmp_path, kind="nllb")
    number = load_translator(directory).config.vocab_size - 3
    entry = {"content": "tyv_Cyrl", "special": True}
    if place == "added_tokens.json":
        settings(directory, place, tyv_Cyrl=number)
    elif place == "tokenizer.json":
        head = {"added_tokens": [entry | {"id": number}], "model": {}}
        (directory / place).write_text(json.dumps(head))
    elif place == "named":
        settings(directory, extra_special_tokens={"tuvan": "tyv_Cyrl"})
    elif place == "listed":
        settings(directory, additional_special_tokens=["tyv_Cyrl"])
    else:
        settings(directory, **{place: {str(number): entry}})
    ours = load_translator(directory)
    assert ours.token_id("tyv_Cyrl") == number
    run = ours.translate("eng_Latn tyv_Cyrl the house is small", beam_size=1)
    assert (run.steps[0].token_id, run.steps[0].forced) == (number, True)
    assert ours.config.language_pieces[-1] == "tyv_Cyrl"


@pytest.mark.parametrize(
    "damage", [[1], {"a": 1}, {"5": 7}, {"5": {"content": 3}}, {"5": {}}, "tyv"], ids=range(6)
)
def test_damaged_entries_of_added_tokens_add_nothing(tmp_path, damage):
    directory = m2m_models.write_m2m(tmp_path, kind="nllb")
    before = load_translator(directory).tokenizer.source.ids
    for name in ("added_tokens_decoder", "additional_special_tokens", "extra_special_tokens"):
        settings(directory, **{name: damage})
    (directory / "tokenizer.json").write_text(json.dumps({"added_tokens": damage}))
    settings(directory, "added_tokens.json", far=10**9, less=-1, word="1")
    assert load_translator(directory).tokenizer.source.ids == before
    settings(directory, added_tokens_decoder={"9" * 5000: {"content": "x"}})
    assert load_translator(directory).tokenizer.source.ids == before


@pytest.mark.parametrize("family", ["marian", "m2m", "t5", "bart"])
def test_tokens_added_to_sentencepiece_are_cut_and_spelled_as_the_reference_does(tmp_path, family):
    from transformers import BartTokenizer, M2M100Tokenizer

    write, reference = {
        "marian": (marian_models.write_marian, marian_models.reference_tokenizer),
        "m2m": (m2m_models.write_m2m, M2M100Tokenizer.from_pretrained),
        "t5": (t5_models.write_t5, t5_models.reference_tokenizer),
        "bart": (bart_models.write_bart, BartTokenizer.from_pretrained),
    }[family]
    directory = write(tmp_path, **({"languages": True} if family == "marian" else {}))
    number = load_translator(directory).config.vocab_size - (6 if family == "t5" else 2)  # the next one
    if family == "marian":  # room for two more
        _widened(directory)
        number += 2
    settings(directory, "added_tokens.json", foo=number)
    ours, theirs = load_translator(directory), reference(directory)
    lead = {"marian": ">>fra<< ", "m2m": "__en__ __de__ "}.get(family, "")
    for text in ("the foo is small", "foofoo the", "a foo"):
        ids = list(ours.tokenizer.cut(lead + text).ids)
        expected = theirs(text if family == "m2m" else lead + text).input_ids
        assert number in ids
        assert [*ids, ours.config.eos_id] == expected
        spelled = theirs.decode(expected, skip_special_tokens=True).removeprefix("__en__")
        assert ours.tokenizer.decode(ids) == spelled.strip()


def _widened(directory: Path) -> None:
    """Two rows more in the tables of a Marian model."""
    state = load_file(directory / "model.safetensors")
    for name, tensor in state.items():
        if name == "model.shared.weight":
            state[name] = torch.cat([tensor, tensor[:2] + 0.1])
        elif name == "final_logits_bias":
            state[name] = torch.cat([tensor, tensor[:, :2]], dim=1)
    save_file(state, directory / "model.safetensors", {"format": "pt"})
    rows = len(state["model.shared.weight"])
    settings(directory, "config.json", vocab_size=rows, decoder_vocab_size=rows)


NAMED: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("nllb", {"src_lang": "fra_Latn", "tgt_lang": "por_Latn"}, {}, "fra_Latn por_Latn"),
    ("nllb", {"tgt_lang": "ace_Arab"}, {}, "ace_Latn ace_Arab"),
    ("nllb", {"src_lang": "fra_Latn"}, {"forced_bos_token_id": "deu_Latn"}, "fra_Latn deu_Latn"),
    ("nllb", {"src_lang": "xx", "tgt_lang": 3}, {}, "ace_Arab ace_Latn"),
    ("m2m", {"src_lang": "ja", "tgt_lang": "cs"}, {}, "__ja__ __cs__"),
    ("mbart", {"tgt_lang": "ro_RO"}, {}, "ar_AR ro_RO"),
    ("marian", {"target_lang": "por"}, {}, ">>por<< or >>fra<< or >>spa<<"),
]


@pytest.mark.parametrize(("family", "named", "generation", "words"), NAMED)
def test_the_sentence_proposes_the_languages_that_the_files_name(tmp_path, family, named, generation, words):
    if family == "marian":
        directory = marian_models.write_marian(tmp_path, languages=True)
    else:
        options = {"kind": family} if family != "mbart" else {}
        directory = WRITE[family](tmp_path, **options)
    settings(directory, **named)
    ids = load_translator(directory).tokenizer.source.ids
    settings(directory, "generation_config.json", **{name: ids[piece] for name, piece in generation.items()})
    with pytest.raises(InputError, match=f"such as {words}\\."):
        load_translator(directory).translate("the house")


OTHERWISE, START, EVEN = "orders tokens otherwise than", "gives padding no position", "need an even width"
CLASSES = [
    ("m2m", "SMALL100Tokenizer"),
    ("mbart", "MBartTokenizer"),
    ("mbart", "MBartTokenizerFast"),
    ("mbart", "AlbertTokenizer"),
    ("t5", "RobertaTokenizer"),
    ("bart", "GPT2Tokenizer"),
    ("marian", "T5Tokenizer"),
]
REFUSED: list[tuple[str, str, dict[str, Any], str]] = [
    *((family, "tokenizer_config.json", {"tokenizer_class": name}, OTHERWISE) for family, name in CLASSES),
    ("m2m", "tokenizer_config.json", {"legacy_behaviour": True}, "legacy_behaviour = True; only False"),
    ("t5", "config.json", {"tokenizer_class": "ByT5Tokenizer"}, f"'ByT5Tokenizer', which {OTHERWISE}"),
    ("m2m", "config.json", {"decoder_start_token_id": 1}, START),
    ("bart", "tokenizer_config.json", {"add_prefix_space": True}, "says add_prefix_space, which is not"),
    ("m2m", "config.json", {"d_model": 31, "encoder_attention_heads": 1, "decoder_attention_heads": 1}, EVEN),
]


@cache
def original(family: str, folder: Path) -> Path:
    write = marian_models.write_marian if family == "marian" else WRITE[family]
    directory: Path = write(folder / family)
    return directory


@pytest.mark.parametrize(("family", "file", "entries", "words"), REFUSED)
def test_what_would_open_silently_wrong_is_refused_by_name(tmp_path_factory, family, file, entries, words):
    directory = original(family, tmp_path_factory.getbasetemp() / "originals")
    before = (directory / file).read_bytes() if (directory / file).exists() else None
    settings(directory, file, **entries)
    with pytest.raises(CheckpointError, match=words) as caught:
        load_translator(directory)
    assert "\n" not in str(caught.value)
    (directory / file).unlink() if before is None else (directory / file).write_bytes(before)
    assert load_translator(directory).translate("the house", capture=False) if family == "t5" else True


@pytest.mark.parametrize("family", ["marian", *WRITE])
def test_padding_is_never_written(tmp_path, monkeypatch, family):
    options = {"kind": family} if family in ("m2m", "nllb") else {}
    write = marian_models.write_marian if family == "marian" else WRITE[family]
    ours = load_translator(write(tmp_path, generation={"max_length": 8}, **options))
    pad, logits = ours.config.pad_id, ours.model.logits

    def raised(*arguments: Any, **named: Any) -> torch.Tensor:
        found = logits(*arguments, **named).clone()
        found[..., pad] += 100
        return found

    monkeypatch.setattr(ours.model, "logits", raised)
    text = f"{PAIRS.get(family, '')} the cat sleeps".strip()
    for more in ({"beam_size": 1}, {"beam_size": 4}, {"beam_size": 1, "sample": Sampling(seed=3)}):
        run = ours.translate(text, capture=False, **more)
        assert len(run.target_ids) > 1
        assert pad not in run.target_ids
        assert run.steps[-1].alternatives[0].token_id == pad  # the model's own distribution is shown
    (other,) = hypotheses(ours, [text], beam_size=1)
    assert pad not in other.token_ids


def test_what_old_marian_files_hold_besides_is_ignored_and_said(tmp_path):
    expected = load_translator(marian_models.write_marian(tmp_path)).translate("the cat", beam_size=1)
    path = tmp_path / "model.safetensors"
    more = {
        name: torch.ones(1) for name in ("model.encoder.version", "model.decoder.embed_positions.weights")
    }
    save_file(load_file(path) | more, path, {"format": "pt"})
    ours = load_translator(tmp_path)
    assert ours.translate("the cat", beam_size=1).log_probs == expected.log_probs
    assert any(" which no model reads; it is ignored" in note for note in ours.notes)
