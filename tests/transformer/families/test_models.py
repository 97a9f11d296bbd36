"""Models of every family against transformers' own, on checkpoints made here."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import bart_models
import m2m_models
import marian_models
import pytest
import t5_models
import torch
from parity import Pair, check_beam, check_forward, check_greedy, largest, logits

from explorer.lenses import alti, attribution, carried, score_parts
from explorer.lenses.inside.inside import look_inside
from explorer.lenses.inside.parts import logit_lens
from explorer.lenses.measures.attribution import saliency
from transformer import AttentionKind, Capture, load_translator
from transformer.exports.npz import load_trace, save_trace
from transformer.storage.files import CheckpointError
from transformer.translator import InputError

ENGLISH = "the cat sleeps in the old house while two dogs ran over the hills ."
LANGUAGES = m2m_models.PAIRS | {"mbart": "en_XX de_DE"}
TEXTS = {
    "marian": "the cat sat on a hat with two red dogs .",
    "t5": f"{t5_models.PREFIX}{ENGLISH}",
    "bart": "summarize the old house and the two dogs ran over the hills while birds sang .",
    **{family: f"{languages} {ENGLISH}" for family, languages in LANGUAGES.items()},
}
TARGETS = dict.fromkeys(TEXTS, "die Katze schläft und das Haus ist klein") | {
    "marian": "die Katze und zwei Hunde",
    "bart": "two dogs ran over the hills",
}
WRITE = {
    "marian": marian_models.write_marian,
    "t5": t5_models.write_t5,
    "bart": bart_models.write_bart,
    "mbart": bart_models.write_mbart,
    "m2m": m2m_models.write_m2m,
    "nllb": partial(m2m_models.write_m2m, kind="nllb"),
}
CASES: dict[tuple[str, str], dict[str, Any]] = {
    ("marian", "swish"): {},
    ("marian", "gelu, old PyTorch file"): {"activation": "gelu", "file": "old"},
    ("marian", "relu, unscaled, PyTorch file"): {"activation": "relu", "scaled": False, "file": "bin"},
    ("marian", "separate vocabularies"): {"separate": True, "seed": 1},
    ("marian", "separate vocabularies, PyTorch file"): {"separate": True, "file": "bin"},
    ("marian", "output of its own"): {"tied": False},
    ("marian", "three tables"): {"separate": True, "tied": False},
    ("marian", "shards"): {"shards": True},
    ("marian", "PyTorch shards"): {"shards": True, "file": "bin"},
    ("marian", "float16"): {"dtype": torch.float16},
    ("marian", "bfloat16, PyTorch file"): {"dtype": torch.bfloat16, "file": "bin"},
    ("marian", "6 + 6 layers of 8 heads"): {"encoder_layers": 6, "decoder_layers": 6, "heads": 8},
    ("marian", "another width in the decoder"): {"decoder_ffn": 20},
    ("marian", "one head, odd width"): {"d_model": 31, "heads": 1},
    ("t5", "relu, tied"): {},
    ("t5", "gated, untied"): {"feed_forward": "gated-gelu", "tied": False, "seed": 1},
    ("t5", "gated, tied"): {"feed_forward": "gated-gelu", "seed": 2},
    ("t5", "mT5"): {"kind": "mt5", "feed_forward": "gated-gelu", "tied": False},
    ("t5", "one wide head"): {"num_layers": 1, "num_decoder_layers": 1, "num_heads": 1, "d_kv": 30},
    ("t5", "deep encoder, d_kv as in the paper"): {"num_layers": 4, "num_decoder_layers": 1, "d_kv": 8},
    ("t5", "silu, PyTorch file"): {"feed_forward": "gated-silu", "file": "bin"},
    ("t5", "shards"): {"shards": True},
    ("t5", "bfloat16"): {"dtype": torch.bfloat16},
    ("t5", "float16, old tables"): {"dtype": torch.float16, "file": "bin", "old": True},
    ("t5", "every name of the table"): {"old": True},
    ("bart", "BART"): {},
    ("bart", "relu, scaled"): {"activation": "relu", "made": {"scale_embedding": True}, "seed": 1},
    ("bart", "one layer"): {"encoder_layers": 1, "decoder_layers": 1, "heads": 1, "seed": 2},
    ("bart", "deep encoder"): {"encoder_layers": 4, "decoder_layers": 1, "seed": 3},
    ("bart", "another width in the decoder"): {"decoder_ffn": 20},
    ("bart", "own output table"): {"untied": True},
    ("bart", "tokenizer.json"): {"whole": True},
    ("bart", "bfloat16, shards"): {"dtype": torch.bfloat16, "shards": True},
    ("mbart", "fine-tuned"): {},
    ("mbart", "pre-trained"): {"activation": "gelu", "made": {"scale_embedding": False}, "seed": 1},
    ("mbart", "one layer"): {"encoder_layers": 1, "decoder_layers": 1, "heads": 1, "seed": 2},
    ("mbart", "deep encoder"): {"encoder_layers": 4, "decoder_layers": 1, "seed": 3},
    ("mbart", "own output table"): {"untied": True},
    ("mbart", "shards"): {"shards": True},
    ("mbart", "bfloat16"): {"dtype": torch.bfloat16},
    ("m2m", "M2M-100"): {},
    ("m2m", "one layer"): {"encoder_layers": 1, "decoder_layers": 1, "heads": 1, "seed": 2},
    ("m2m", "shards"): {"shards": True},
    ("m2m", "bfloat16"): {"dtype": torch.bfloat16},
    ("nllb", "NLLB"): {"seed": 1},
    ("nllb", "deep encoder, gelu"): {"encoder_layers": 4, "decoder_layers": 1, "activation": "gelu"},
}


def open_pair(family: str, directory: Path) -> Pair:
    translator, text = load_translator(directory), TEXTS[family]
    if family in ("marian", "t5"):
        models = {"marian": marian_models, "t5": t5_models}[family]
        model, tokenizer = models.reference(directory), models.reference_tokenizer(directory)
        ids = tuple(tokenizer(text).input_ids)
        return Pair(translator, model, text, ids, translator.config.bos_id, tokenizer=tokenizer)
    if family == "bart":
        ids = tuple(bart_models.bart_ids(directory, text))
        return Pair(translator, bart_models.bart_reference(directory), text, ids, 2, 0)
    if family == "mbart":
        ids, model = bart_models.mbart_ids(directory, ENGLISH), bart_models.mbart_reference(directory)
    else:
        ids, model = m2m_models.reference_ids(directory, family, ENGLISH), m2m_models.reference(directory)
    first = translator.tokenizer.source.ids[LANGUAGES[family].split()[1]]
    return Pair(translator, model, text, tuple(ids), 2, first)


@pytest.fixture(scope="module", params=CASES, ids=", ".join)
def case(request):
    return request.param


@pytest.fixture(scope="module")
def pair(case, tmp_path_factory):
    return open_pair(case[0], WRITE[case[0]](tmp_path_factory.mktemp(case[0]), **CASES[case]))


def test_logits_encoder_output_and_every_attention_are_the_reference_s(case, pair):
    check_forward(pair, TARGETS[case[0]])


def test_greedy_search_begins_and_goes_on_as_the_reference_does(case, pair):
    ours = check_greedy(pair)
    if pair.first is not None:
        assert (ours.steps[0].token_id, ours.steps[0].forced) == (pair.first, True)


@pytest.mark.parametrize("size", [2, 4, 5])
def test_a_beam_finds_what_the_reference_s_finds_with_its_score(pair, size):
    ours = check_beam(pair, size)
    assert ours.method == f"beam-{size}"
    assert ours.attention.audit().passed


@pytest.mark.parametrize(
    "case", [each for each in CASES if each[0] in ("marian", "t5")], indirect=True, ids=str
)
def test_a_padded_batch_is_read_as_the_reference_reads_it(case, pair):
    texts = [pair.text, "the cat sat", "a dog ran over the hills and saw birds that sang"]
    batch = pair.tokenizer(texts, padding=True, return_tensors="pt")
    target = torch.tensor([[pair.start, 3, 4, 5]]).expand(3, -1)
    with torch.no_grad():
        expected = pair.model(**batch, decoder_input_ids=target).logits
        assert largest(logits(pair.translator, batch.input_ids, target), expected) <= 1e-4


MEASURED = [
    ("t5", "relu, tied"),
    ("t5", "gated, untied"),
    ("bart", "BART"),
    ("mbart", "fine-tuned"),
    ("nllb", "NLLB"),
]


@pytest.mark.parametrize("case", MEASURED, indirect=True, ids=str)
def test_every_measure_sums_to_what_the_model_computed(case, pair, tmp_path):
    translator, model = pair.translator, pair.translator.model
    forced = translator.force(pair.text, TARGETS[case[0]], capture=Capture(residual=True))
    token = forced.steps[2].token_id
    reports = [attribution(model, forced, 2, token, against).audit for against in (None, 5)]
    reports.append(alti(model, forced).audit)
    if case[0] != "t5":  # whose norms it refuses
        reports.append(saliency(translator, forced, 2, token).audit)
    for kind in AttentionKind:
        reports.append(carried(model, forced, kind, 0, 1).audit)
        reports.append(score_parts(model, forced, (kind, 1, 1), 2, 1).audit)
        reports.append(look_inside(model, forced, (kind, 1, 1), 2).audit)
    assert all(each.passed for each in reports), reports
    assert all(check.passed for check in logit_lens(model, forced, 3)[1])
    save_trace(forced, tmp_path / "trace.npz", model)
    opened = load_trace(tmp_path / "trace.npz")
    assert opened.attention.audit().passed
    assert opened.config == translator.config


BOTH = "languages; begin the text with the one that it is in"


@pytest.mark.parametrize(
    ("family", "text", "words"),
    [
        ("bart", " ", "The text is empty"),
        ("mbart", "two dogs", f"knows 52 {BOTH}"),
        *(
            ("nllb", text, f"knows 202 {BOTH}")
            for text in ("dogs", "eng_Latn dogs", "deu dogs", "eng_Latn xyz_Latn a")
        ),
        ("nllb", "eng_Latn deu_Latn", "The text is empty"),
    ],
)
def test_what_cannot_be_translated_is_refused_in_one_sentence(tmp_path, family, text, words):
    with pytest.raises(InputError, match=words):
        load_translator(WRITE[family](tmp_path)).translate(text)


NORMS, UNEQUAL, OLD = (
    "normalize_embedding = False",
    "only models with equal values",
    "25 languages, which puts",
)
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("t5", {"feed_forward_proj": "relu2"}, "has the feed-forward network 'relu2'"),
    ("t5", {"relative_attention_num_buckets": 64}, "relative_attention_num_buckets = 64; only 32"),
    ("t5", {"is_encoder_decoder": False}, "is_encoder_decoder = False; only True"),
    ("t5", {"num_heads": 300}, "n_heads is 300"),
    ("t5", {"d_model": 16_000, "d_ff": 65_000}, "far larger|holds .* numbers|parameters"),
    ("t5", {"vocab_size": 30}, "pieces with its extra ids, but config.json has 30 rows|has the shape"),
    ("t5", {"d_kv": 7}, "asks for \\(21, 24\\)"),
    ("t5", {"num_layers": 3}, "lack 8 that config.json asks for"),
    ("t5", {"num_decoder_layers": 2}, "that config.json does not describe"),
    ("t5", {"model_type": "umt5"}, "holds a umt5 model of another library"),
    ("bart", {"normalize_before": True}, "normalize_before = True; only False"),
    ("bart", {"normalize_embedding": False}, NORMS),
    ("bart", {"decoder_attention_heads": 2}, UNEQUAL),
    ("bart", {"vocab_size": 100}, "pieces, but config.json has 100 rows|shape"),
    ("mbart", {"tokenizer_class": "MBartTokenizer"}, OLD),
    ("mbart", {"vocab_size": 250_027}, OLD),
    ("mbart", {"normalize_before": False}, "normalize_before = False; only True"),
    ("mbart", {"normalize_embedding": False}, NORMS),
    ("mbart", {"max_position_embeddings": 128}, "embed_positions.weight has the shape"),
    ("mbart", {"activation_function": "relu2"}, "the activation 'relu2'; supported are"),
    ("mbart", {"vocab_size": 100}, "pieces with its languages, but config.json has 100 rows|shape"),
    ("m2m", {"normalize_before": False}, "normalize_before = False; only True"),
    ("m2m", {"static_position_embeddings": False}, "static_position_embeddings = False"),
    ("m2m", {"decoder_attention_heads": 2}, UNEQUAL),
    ("m2m", {"vocab_size": 100}, "pieces with its languages, but config.json has 100 rows|shape"),
    ("m2m", {"encoder_layers": 3}, "that config.json asks for"),
]


@pytest.mark.parametrize(("family", "values", "message"), REFUSED)
def test_what_is_not_supported_is_named(tmp_path, family, values, message):
    with pytest.raises(CheckpointError, match=message):
        load_translator(WRITE[family](tmp_path, config=values))


@pytest.mark.parametrize("family", ["bart", "mbart"])
def test_a_model_saved_without_its_output_projection_opens(tmp_path, family):
    """As transformers saves a model without its head."""
    whole = load_translator(WRITE[family](tmp_path / "whole", made={}))
    bare = load_translator(WRITE[family](tmp_path / "bare", bare=True))
    assert bare.ids(TEXTS[family]) == whole.ids(TEXTS[family])
    assert bare.model.output_bias is None
    assert torch.equal(bare.model.embedding.weight, whole.model.embedding.weight)
