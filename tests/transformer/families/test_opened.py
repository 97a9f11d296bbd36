"""What published models hold besides, or say otherwise, opens as the reference opens it, and is
said."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from parity import largest, logits
from published import TEXTS, changed, copied, model_of, published, rewritten
from safetensors.torch import load_file, save_file

from transformer import load_translator
from transformer.batches import run_batch
from transformer.families.bart import BART, MBART
from transformer.families.family import Family
from transformer.families.m2m import M2M100
from transformer.families.marian import MARIAN
from transformer.families.registry import needed_files
from transformer.families.t5 import T5
from transformer.families.weights import SINES

SHARED = "model.shared.weight"
OLD = {
    "extra_pos_embeddings": 95,
    "add_bias_logits": False,
    "classif_dropout": 0.0,
    "num_hidden_layers": 6,
}
"""OPUS-MT's first models say extra_pos_embeddings = pad_token_id + 1, which no sinusoid uses."""


@pytest.mark.parametrize(
    ("family", "name"),
    [
        (MARIAN, "Marian"),
        (T5, "T5"),
        (T5, "MT5"),
        (BART, "Bart"),
        (MBART, "MBart"),
        (M2M100, "M2M100"),
    ],
)
def test_entries_that_a_config_leaves_out_are_the_reference_s_defaults(
    family: Family, name: str, tmp_path
):
    import transformers

    values = getattr(transformers, f"{name}Config")().to_dict()
    if "scale_decoder_outputs" in values and name == "T5":
        values["scale_decoder_outputs"] = True  # said only of what is not scaled
    if values.get("decoder_start_token_id", 0) is None:  # mBART's is the end
        values["decoder_start_token_id"] = values["eos_token_id"]
    bare = {"model_type": values["model_type"]}
    assert family.config(bare, tmp_path) == family.config(values, tmp_path)
    if name == "Bart":  # the offset of its positions, in older files
        assert family.config({**bare, "extra_pos_embeddings": 2}, tmp_path) == family.config(
            values, tmp_path
        )


def bare(directory: Any) -> None:
    """Names without a prefix, as a model is saved without its output projection."""
    path = directory / "model.safetensors"
    stored = {name.removeprefix("model."): tensor for name, tensor in load_file(path).items()}
    save_file(stored, path, {"format": "pt"})


def under(name: str) -> Any:
    """The tied table under another of its names."""
    return lambda directory: rewritten(
        directory, **{name: load_file(directory / "model.safetensors")[SHARED]}, **{SHARED: None}
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda directory: changed(directory, **OLD),
        lambda directory: changed(directory, eos_token_id=[0]),
        bare,
        under("lm_head.weight"),
    ],
    ids=range(4),
)
def test_what_changes_nothing_is_passed_over(tmp_path, change):
    expected = load_translator(published("marian")).translate("the cat sat").log_probs
    change(directory := copied(tmp_path, "marian"))
    ours = load_translator(directory)
    assert ours.config.tied_embeddings
    assert ours.translate("the cat sat").log_probs == expected


@pytest.mark.parametrize(("family", "side"), [("marian", "decoder"), ("m2m", "encoder")])
def test_what_old_files_hold_besides_is_ignored_and_said(tmp_path, family, side):
    directory = copied(tmp_path, family)
    expected = load_translator(directory).translate(TEXTS[family], beam_size=1)
    names = f"model.{side}.embed_positions.weights", f"model.{side}.version"
    ours = load_translator(rewritten(directory, **{name: torch.ones(1) for name in names}))
    assert ours.translate(TEXTS[family], beam_size=1).log_probs == expected.log_probs
    assert (
        ours.notes[-1]
        == f"This model's files hold {names[0]}, which no model reads; it is ignored."
    )


@pytest.mark.parametrize("file", ["safetensors", "bin"])
def test_an_integer_buffer_that_no_model_reads_is_passed_over_and_said(tmp_path, file):
    directory = copied(tmp_path, "bart")
    expected = load_translator(directory).translate(TEXTS["bart"], beam_size=1)
    buffer = {"model.encoder.embeddings.position_ids": torch.arange(9)[None]}
    rewritten(directory, **buffer)
    if file == "bin":
        state = load_file(directory / "model.safetensors")
        torch.save(state, directory / "pytorch_model.bin")
        (directory / "model.safetensors").unlink()
    ours = load_translator(directory)
    assert ours.translate(TEXTS["bart"], beam_size=1).log_probs == expected.log_probs
    (name,) = buffer
    assert ours.notes[-1] == f"This model's files hold {name}, which no model reads; it is ignored."


@pytest.mark.parametrize(
    ("side", "dtype"), [*zip(SINES, (torch.float32, torch.float16), strict=True)]
)
def test_stored_positions_are_taken_over_exactly_and_others_refused(tmp_path, side, dtype):
    directory = copied(tmp_path, "marian")
    table = model_of(directory).state_dict()[side].to(dtype)
    ours = load_translator(rewritten(directory, **{side: table}))
    stack = getattr(ours.model, SINES[side])
    assert torch.equal(stack.positions.added(64).cpu(), table.float())
    with pytest.raises(ValueError, match="does not hold Marian's sinusoids"):
        load_translator(rewritten(directory, **{side: table + 0.02}))


def test_the_output_is_as_published_tied_or_not_scaled_or_not(tmp_path):
    """transformers 5 saves an untied T5 as tied; a second entry says whether the output is
    scaled."""
    from transformers import T5Config

    assert load_translator(published("bart", bare=True)).model.output_bias is None
    untied = copied(tmp_path, "marian")
    table = load_file(untied / "model.safetensors")[SHARED]
    rewritten(untied, **{"lm_head.weight": table.flip(0).contiguous()})
    values = T5Config(tie_word_embeddings=False).to_dict()
    assert (values["tie_word_embeddings"], values["scale_decoder_outputs"]) == (True, False)
    entries = {"tie_word_embeddings": True, "scale_decoder_outputs": False}
    for directory, source, name in (
        (untied, [5, 6, 0], "tied_embeddings"),
        (published("t5", config=entries), [0, 5, 6], "scaled_output"),
    ):
        ours = load_translator(directory)
        ids = torch.tensor([source])
        read = torch.tensor([[ours.config.bos_id, 4, 5]])
        mask = torch.ones_like(ids)
        with torch.no_grad():
            options = {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": read}
            expected = model_of(directory)(**options).logits
        assert largest(logits(ours, ids, read), expected) <= 1e-4
        assert not getattr(ours.config, name)


UNAPPLIED = "This model's files set {}, which this package does not apply."
SAID: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    (
        "marian",
        {
            "repetition_penalty": 1.5,
            "do_sample": False,
            "eos_token_id": [0],
            "decoder_start_token_id": 7,
        },
        (
            UNAPPLIED.format("decoder_start_token_id = 7"),
            UNAPPLIED.format("repetition_penalty = 1.5"),
        ),
    ),
    ("marian", {"num_beams": 200}, ("This model's files ask for 200 beams; it searches with 64.",)),
    (
        "t5",
        {"max_length": 12, "no_repeat_ngram_size": 3, "min_length": 5, "repetition_penalty": 1.5},
        (
            "This model's search keeps rules of its own: no end before 4 tokens and no 3 tokens "
            "in a row twice.",
            UNAPPLIED.format("repetition_penalty = 1.5"),
        ),
    ),
]


@pytest.mark.parametrize(("family", "rules", "notes"), SAID)
def test_rules_that_are_not_applied_or_unusual_are_said_with_every_translation(
    tmp_path, family, rules, notes
):
    ours = load_translator(changed(copied(tmp_path, family), "generation_config.json", **rules))
    assert ours.notes == notes
    assert {*notes} <= {*ours.translate("the cat", capture=False, beam_size=1).notes}
    assert ours.rules.beam_size == min(rules.get("num_beams", ours.rules.beam_size), 64)


def test_the_rules_of_files_are_ours_wherever_they_stand(tmp_path):
    directory = copied(tmp_path, "marian")
    changed(directory, "generation_config.json", bad_words_ids=[[0], [7]], suppress_tokens=[0])
    ours = load_translator(directory)
    assert ours.rules.forbidden == ((7,), (0,), (ours.config.pad_id,))  # the end may be suppressed
    (directory / "generation_config.json").unlink()  # as in older models
    changed(directory, num_beams=6, max_length=12, bad_words_ids=[[7]], forced_eos_token_id=0)
    rules = load_translator(directory).rules
    ids = rules.forbidden, rules.forced_end, rules.end_id
    assert (rules.beam_size, rules.max_length, ids) == (
        6,
        11,
        (((7,), (ours.config.pad_id,)), 0, 0),
    )
    changed(
        directory, max_new_tokens=9, min_new_tokens=3, length_penalty=0.7, no_repeat_ngram_size=2
    )
    rules = load_translator(directory).rules
    assert (rules.max_length, rules.min_tokens, rules.length_penalty, rules.no_repeat) == (
        9,
        3,
        0.7,
        2,
    )


def test_what_a_t5_is_for_stands_in_its_files(tmp_path):
    madlad = load_translator(published("t5", symbols=("<2de>", "<2pt>", "<2xx_Latn>"))).config
    assert (madlad.task, madlad.language_pieces) == ("translate", ("<2de>", "<2pt>", "<2xx_Latn>"))
    assert madlad.prompt_texts == ()
    plain = load_translator(published("t5")).config
    assert (plain.task, plain.eos_id, len(plain.prompt_texts)) == ("write", 1, 4)
    tasks = {str(n): {"prefix": f"task {n}: "} for n in range(10)} | {
        "bad": {"prefix": "a\nb"},
        "none": 3,
    }
    named = load_translator(changed(copied(tmp_path, "t5"), task_specific_params=tasks)).config
    assert named.prompt_texts == tuple(f"task {n}: " for n in range(8))


OWN = {"content": "[PAD]", "special": True, "lstrip": False, "rstrip": False, "normalized": False}


@pytest.mark.parametrize("named", ["[PAD]", OWN], ids=["text", "entry"])
def test_a_fine_tuner_s_own_padding_pads(tmp_path, named):
    """Its id stands in config.json, its name in the tokenizer's settings; `<pad>` still begins an
    output."""
    usual = load_translator(published("t5"))
    directory = copied(tmp_path, "t5")
    changed(directory, pad_token_id=206)
    entries = {"pad_token": named, "added_tokens_decoder": {"206": OWN}}
    changed(directory, "tokenizer_config.json", **entries)
    ours = load_translator(directory)
    assert (ours.config.pad_id, ours.config.bos_id, ours.rules.forbidden) == (206, 0, ((206,),))
    texts = ["the house", "the cat sleeps in the old house"]
    runs = run_batch(ours, texts)
    assert [run.log_probs for run in runs] == [
        pytest.approx(run.log_probs, abs=1e-5) for run in run_batch(usual, texts)
    ]
    assert set(runs[0].source_tokens[len(ours.ids(texts[0])) + 1 :]) == {"[PAD]"}


def test_padding_of_the_source_is_named_by_the_source_s_vocabulary(tmp_path):
    directory = copied(tmp_path, "marian", separate=True)
    ids = json.loads((directory / "target_vocab.json").read_text())
    word = next(piece for piece, number in ids.items() if number == 3)
    changed(directory, "target_vocab.json", **{"<pad>": 3, word: 2})
    model = load_translator(directory)
    texts = ["the cat", "the cat sat on a mat and saw two dogs"]
    (short, long) = run_batch(model, texts)
    n_padding = len(long.source_tokens) - len(model.ids(texts[0])) - 1
    assert short.source_tokens[-n_padding:] == ("<pad>",) * n_padding
    pieces = short.attention.tokens["encoder"].pieces
    assert pieces == short.source_tokens
    for run in (short, long):
        assert run.audit().passed


def test_a_recording_names_padding_as_its_vocabulary_does(tmp_path):
    """`<pad>` beside the id of a padding that is spelled otherwise is no recording of it."""
    directory = copied(tmp_path, "t5")
    changed(directory, pad_token_id=206)
    entries = {"pad_token": OWN, "added_tokens_decoder": {"206": OWN}}
    changed(directory, "tokenizer_config.json", **entries)
    (short, _) = run_batch(load_translator(directory), ["the house", "the cat sleeps in the house"])
    read = short.attention.tokens["encoder"]
    renamed = tuple("<pad>" if piece == "[PAD]" else piece for piece in read.pieces)
    tokens = short.attention.tokens | {"encoder": replace(read, pieces=renamed)}
    forged = replace(
        short, source_tokens=renamed, attention=replace(short.attention, tokens=tokens)
    )
    checks = {check.name: check.passed for check in forged.audit().checks}
    assert short.audit().passed
    assert not checks["pieces"]


def test_an_old_pytorch_file_is_read_once_and_a_zip_file_is_mapped(monkeypatch):
    calls, load = [], torch.load
    monkeypatch.setattr(
        torch, "load", lambda *each, **more: calls.append(more["mmap"]) or load(*each, **more)
    )
    for file, mapped in (("old", False), ("bin", True)):
        load_translator(published("marian", file=file))
        assert {*calls} == {mapped}
        assert mapped or len(calls) == 1
        calls.clear()


CONFIG, SAFE, TORCH = "config.json", "model.safetensors", "pytorch_model.bin"
SHARDS = [f"{SAFE}.index.json", *(f"model-0000{number}-of-00002.safetensors" for number in (1, 2))]
OPUS = [CONFIG, "source.spm", "target.spm", "vocab.json"]
SAVED = [CONFIG, "tokenizer.json", "tokenizer_config.json"]
LISTS: list[tuple[list[str], list[str], list[str]]] = [
    ([*OPUS, TORCH, *SHARDS, "flax_model.msgpack"], OPUS, SHARDS),
    ([*OPUS, TORCH], OPUS, [TORCH]),
    ([*OPUS, TORCH, SAFE, *SHARDS], OPUS, [SAFE]),
    ([*OPUS, SHARDS[0]], OPUS, []),
    ([*reversed(SAVED), SAFE, "special_tokens_map.json"], SAVED, [SAFE]),
    ([CONFIG, "merges.txt", "vocab.json", SAFE], [CONFIG, "merges.txt", "vocab.json"], [SAFE]),
    (
        [*SAVED, "merges.txt", "vocab.json", SAFE],
        [CONFIG, "merges.txt", "vocab.json", *SAVED[1:]],
        [SAFE],
    ),
    ([*SAVED, "spiece.model", SAFE], [CONFIG, "spiece.model", "tokenizer_config.json"], [SAFE]),
    ([*SAVED, "vocab.txt", SAFE], SAVED, [SAFE]),
    ([CONFIG, "vocab.txt", SAVED[2], TORCH], [CONFIG, "vocab.txt", SAVED[2]], [TORCH]),
    (
        [*SAVED, "sentencepiece.bpe.model", SAFE],
        [CONFIG, "sentencepiece.bpe.model", *SAVED[1:]],
        [SAFE],
    ),
    (
        [CONFIG, "tokenizer.model", "README.md", "x.py"],
        [CONFIG, "tokenizer.model", "README.md"],
        [SAFE],
    ),
]
"""Files of a model on the Hub; those that are needed or welcome besides weights; and those of
weights."""


@pytest.mark.parametrize(("names", "besides", "weights"), LISTS, ids=range(len(LISTS)))
def test_safetensors_go_before_pytorch_and_one_file_before_shards(names, besides, weights):
    assert needed_files(names) == (besides, weights)


@pytest.mark.parametrize("family", ["t5", "marian"])
def test_an_opened_model_outlives_its_files(tmp_path: Path, family: str) -> None:
    """A mapped file that is cut off would end the process at the next product."""
    directory = copied(tmp_path, family)
    opened = load_translator(directory).model.state_dict()
    weights = directory / "model.safetensors"
    os.truncate(weights, 0)
    expected = load_translator(published(family)).model.state_dict()
    assert opened.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(opened[name], tensor), name


def test_sinusoids_of_a_file_are_of_its_model_alone(tmp_path):
    plain = load_translator(published("marian")).model
    formula = plain.decoder.positions.table.clone()
    directory = copied(tmp_path, "marian")
    rewritten(directory, **{"model.decoder.embed_positions.weight": formula + 0.005})
    ours = load_translator(directory).model
    assert torch.equal(ours.decoder.positions.table, formula + 0.005)
    for stack in (ours.encoder, plain.encoder, plain.decoder):
        assert torch.equal(stack.positions.table, formula)
