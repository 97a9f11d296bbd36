"""Firefox's models in our Transformer: equal to their formulas, with and without a cache."""

from __future__ import annotations

import gzip
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from firefox_files import CONFIG, PIECES, content, packed, random_model, settings, vocabulary, write_firefox
from firefox_reference import Reference

from transformer import load_translator
from transformer.families.firefox.config import SETTINGS
from transformer.families.firefox.family import Firefox
from transformer.families.firefox.items import TEXT, Items
from transformer.families.firefox.model import load_firefox
from transformer.families.registry import family_of
from transformer.model.sites import AttentionKind
from transformer.runs.corpus import translate_batched
from transformer.storage.files import CheckpointError

ROOT = Path(__file__).resolve().parents[4]
BUNDLED = ROOT / "assets" / "models" / "firefox-en-pt"
SOURCE, TARGET = [5, 9, 33, 12, 7, 0], [8, 21, 40, 2]
START = CONFIG.bos_id


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_firefox(tmp_path_factory.mktemp("firefox") / "enpt", random_model())


@pytest.fixture(scope="module")
def model(folder):
    return load_firefox(folder).model


def logits(model, source, target):
    return model(torch.tensor([source]), torch.tensor([[START, *target]]))[0]


def test_a_folder_gives_the_weights_that_were_written(folder, model):
    original = random_model()
    content(original)  # rounds to 8 bits
    assert isinstance(family_of(folder), Firefox)
    assert model.config == CONFIG
    for name, weight in original.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], weight, rtol=0, atol=1e-7)


@pytest.mark.parametrize("source", [SOURCE, [3, 0]])
def test_the_logits_are_those_of_an_independent_computation(folder, model, source):
    reference = Reference(Items(folder / "model.enpt.intgemm.alphas.bin"), 2, 3, 2)
    expected = reference.logits(source, TARGET)
    np.testing.assert_allclose(logits(model, source, TARGET).numpy(), expected, atol=1e-4)


def test_a_step_with_a_cache_gives_the_row_of_a_whole_pass(model):
    whole = logits(model, SOURCE, TARGET)
    memory, cache = model.encode(torch.tensor([SOURCE])), model.new_cache()
    for row, token in enumerate([START, *TARGET]):
        step = model.logits(model.decode(torch.tensor([[token]]), memory, cache=cache))[0, -1]
        torch.testing.assert_close(step, whole[row], rtol=0, atol=1e-5)


def test_a_beam_may_reorder_the_cached_states(model):
    memory = model.encode(torch.tensor([SOURCE])).expand(2, -1, -1)
    cache = model.new_cache()
    model.decode(torch.tensor([[START, 8], [START, 21]]), memory, cache=cache)
    cache.select(torch.tensor([1, 0]))
    swapped = model.logits(model.decode(torch.tensor([[40], [40]]), memory, cache=cache))[:, -1]
    torch.testing.assert_close(swapped[0], logits(model, SOURCE, [21, 40])[-1], rtol=0, atol=1e-5)


def test_the_decoder_reads_no_later_token_and_no_padding(model):
    whole = logits(model, SOURCE, TARGET)
    torch.testing.assert_close(logits(model, SOURCE, TARGET[:2]), whole[:3], rtol=0, atol=1e-5)
    pad = CONFIG.pad_id
    padded = model(torch.tensor([[*SOURCE, pad, pad]]), torch.tensor([[START, *TARGET, pad]]))[0]
    torch.testing.assert_close(padded[: len(TARGET) + 1], whole, rtol=0, atol=1e-5)


def test_the_first_row_reads_a_vector_of_zeros(model):
    assert not model.embedding(torch.tensor([START])).any()
    assert model.embedding(torch.tensor([CONFIG.vocab_size - 1])).any()


def test_its_decoder_has_no_self_attention(model):
    assert set(model.config.sites) == {AttentionKind.ENCODER, AttentionKind.CROSS}
    assert model.config.stacks["decoder"].sublayers == ("recurrence", "cross_attention", "feed_forward")


def test_float32_items_give_the_same_model(tmp_path, model):
    original = random_model()
    content(original)  # rounds to 8 bits
    other = load_firefox(write_firefox(tmp_path, original, eight_bits=False)).model
    torch.testing.assert_close(logits(other, SOURCE, TARGET), logits(model, SOURCE, TARGET))


def test_a_text_is_translated_and_its_cross_attention_proved(folder):
    found = load_translator(folder).translate("the old house", max_length=8)
    assert found.attention.audit().passed
    assert {view.kind for view in (found.head("cross", 1, 1), found.head("encoder", 2, 0))}
    assert found.decoder_input_tokens[0] == "◌"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dec-cell: ssru", "dec-cell: gru", "dec-cell"),
        ("postprocess: dan", "postprocess: da", "transformer-postprocess"),
        ("heads: 2", "heads: 3", "n_heads"),
        ("heads: 2", "heads: two", "two"),
        ("dim-emb: 16\n", "", "dim-emb"),
        ("enc-depth: 3", "enc-depth: 4", "encoder_l4"),
        ("enc-depth: 3", "enc-depth: 99999999999", "n_encoder_layers"),
        ("dim-ffn: 24", "dim-ffn: 32", "shape"),
        ("activation: relu", "activation: tanh", "activation"),
    ],
)
def test_other_architectures_are_refused_in_a_sentence(tmp_path, old, new, message):
    folder = write_firefox(tmp_path, random_model())
    text = settings().replace(old, new)
    assert text != settings()
    items = [item for item in content(random_model()) if item[0] != SETTINGS]
    items.append((SETTINGS, TEXT, (len(text),), text.encode()))
    (folder / "model.enpt.intgemm.alphas.bin").write_bytes(packed(items))
    with pytest.raises(CheckpointError, match=message) as caught:
        load_firefox(folder)
    assert "\n" not in str(caught.value)


def test_two_models_in_a_folder_and_none_are_refused(tmp_path):
    folder = write_firefox(tmp_path, random_model(replace(CONFIG, n_encoder_layers=1)))
    (folder / "model.other.bin").write_bytes(b"")
    with pytest.raises(CheckpointError, match="leave only"):
        load_firefox(folder)
    with pytest.raises(CheckpointError, match="no complete model"):
        load_firefox(tmp_path.parent)


@pytest.mark.parametrize("kind", ["zip", "gztar"])
def test_an_archive_is_opened_like_its_folder(tmp_path, kind):
    model = random_model()
    write_firefox(tmp_path / "all" / "enpt", model)
    archive = shutil.make_archive(str(tmp_path / "enpt"), kind, tmp_path / "all")
    translator = load_translator(archive)
    assert translator.name.startswith("enpt")
    folder = load_translator(tmp_path / "all" / "enpt")
    assert translator.translate("the old house").text == folder.translate("the old house").text


def test_a_folder_is_opened_as_it_is_published(tmp_path):
    folder = write_firefox(tmp_path / "enpt", random_model())
    expected = load_translator(folder).translate("the old house").text
    (folder / "README.md").write_text("A card.", encoding="utf-8")
    for file in [*folder.glob("model.*"), *folder.glob("vocab.*")]:
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
        opened = load_translator(folder)
        assert (opened.translate("the old house").text, opened.card) == (expected, "A card.")
        assert opened.name == "enpt"
    packed = next(folder.glob("model.*.gz"))
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(CheckpointError, match="damaged"):
        load_firefox(folder)
    packed.rename(packed.with_suffix(".zst"))
    with pytest.raises(CheckpointError, match=r"\.zst is packed .* unpack it first"):
        load_firefox(folder)


def test_what_unpacks_to_too_much_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    folder = write_firefox(tmp_path / "enpt", random_model())
    size = sum(file.stat().st_size for file in folder.iterdir())
    for file in list(folder.glob("model.*")):
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    monkeypatch.setattr("transformer.families.firefox.folder.MAX_UNPACKED_BYTES", size)
    load_firefox(folder)
    monkeypatch.setattr("transformer.families.firefox.folder.MAX_UNPACKED_BYTES", size - 1)
    with pytest.raises(CheckpointError, match="more than"):
        load_firefox(folder)


def test_a_folder_that_is_nobody_s_is_called_that(tmp_path):
    (tmp_path / "notes.txt").write_text("no model", encoding="utf-8")
    for path, what in ((tmp_path, "folder"), (tmp_path / "notes.txt", "file")):
        with pytest.raises(CheckpointError, match=f"The {what} .* holds no model that this package knows"):
            load_translator(path)


def test_a_damaged_archive_and_one_of_two_models_give_a_sentence(tmp_path):
    folder = write_firefox(tmp_path / "enpt", random_model())
    archive = Path(shutil.make_archive(str(tmp_path / "enpt"), "zip", folder))
    whole = archive.read_bytes()
    archive.write_bytes(whole[:200] + bytes(50) + whole[250:])
    with pytest.raises(CheckpointError, match=r"enpt\.zip") as caught:
        load_firefox(archive)
    assert "\n" not in str(caught.value)
    with zipfile.ZipFile(archive, "w") as twice:
        for place in "ab":
            for file in folder.iterdir():
                twice.write(file, f"{place}/{file.name}")
    with pytest.raises(CheckpointError, match="two files named"):
        load_firefox(archive)


def test_each_language_may_have_its_own_pieces(tmp_path):
    config = replace(CONFIG, shared_embeddings=False)
    model = random_model(config)
    folder = write_firefox(tmp_path / "zh", model)
    loaded = load_firefox(folder)
    assert not loaded.config.shared_embeddings
    src, tgt = torch.tensor([[5, 7, 9, 0]]), torch.tensor([[CONFIG.bos_id, 11, 12]])
    torch.testing.assert_close(loaded.model(src, tgt), model(src, tgt), atol=2e-2, rtol=0)
    assert load_translator(folder).translate("the old house").steps
    (folder / "trgvocab.enpt.spm").write_bytes(vocabulary(eos_id=2))
    with pytest.raises(CheckpointError, match="two vocabularies that give </s> or <unk> different ids"):
        load_firefox(folder)
    (folder / "trgvocab.enpt.spm").write_bytes(vocabulary(PIECES - 5))
    with pytest.raises(CheckpointError, match="the weight decoder_Wemb has the shape"):
        load_firefox(folder)


@pytest.mark.parametrize(("depth", "own"), [(2, PIECES), (4, PIECES - 9), (2, PIECES + 3)])
def test_the_sizes_of_today_s_models_open_and_vocabularies_may_differ_in_size(tmp_path, depth, own):
    """Six layers in the encoder, two or four in the decoder."""
    config = replace(
        CONFIG,
        shared_embeddings=False,
        n_encoder_layers=6,
        n_decoder_layers=depth,
        target_vocab_size=own,
        bos_id=own,
    )
    folder = write_firefox(tmp_path / "zh", random_model(config))
    reference = Reference(Items(folder / "model.enpt.intgemm.alphas.bin"), 2, 6, depth)
    translator = load_translator(folder)
    found = translator.model(torch.tensor([SOURCE]), torch.tensor([[own, *TARGET]]))[0]
    assert found.shape == (len(TARGET) + 1, own)
    np.testing.assert_allclose(found.numpy(), reference.logits(SOURCE, TARGET), atol=1e-4)
    translation = translator.translate("the old house", max_length=8)
    assert translation.attention.audit().passed
    alone, _ = translator.hypotheses(["the old house", "we often see the quick brown fox"], 4, 8)
    assert alone.token_ids == translator.translate("the old house", 4, 8).target_ids


def test_a_search_never_writes_the_unknown_piece(tmp_path):
    model = random_model()
    with torch.no_grad():
        model.output_bias[CONFIG.unk_id] = 100
    translator = load_translator(write_firefox(tmp_path / "enpt", model))
    translation = translator.translate("the old house", max_length=5)
    assert CONFIG.unk_id not in [step.token_id for step in translation.steps]
    assert all(step.forced for step in translation.steps)


@pytest.mark.skipif(not BUNDLED.is_dir(), reason="the bundled model is not here")
@pytest.mark.parametrize(("name", "count"), [("firefox", 100), ("reference", 60)])
def test_the_bundled_model_writes_what_mozilla_s_engine_writes(name: str, count: int):
    lines = (ROOT / "tests" / "blind" / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    texts, engine = zip(*(line.split("\t") for line in lines), strict=True)
    written = translate_batched(load_translator(BUNDLED), texts, 1)
    same = sum(one == other for one, other in zip(written, engine, strict=True))
    assert len(texts) == count
    assert same >= 0.95 * count
