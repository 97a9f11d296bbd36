"""Marian models against transformers' own, on checkpoints made here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from marian_models import reference, reference_tokenizer, write_marian

from transformer import AttentionKind, Translation, load_translator, packed
from transformer.beam import beam_search
from transformer.decoding import DecodingState, decode, finish
from transformer.exports.npz import load_trace, save_trace

ROOT = Path(__file__).parents[4]
TEXT = "the cat sat on a hat with two red dogs ."

PAD = 94
"""The last piece of ``write_marian``; published files forbid it, too."""
RULES: dict[str, dict[str, Any]] = {
    "penalty": {"length_penalty": 0.6},
    "no penalty": {"length_penalty": 0.0},
    "stops early": {"early_stopping": True},
    "never stops early": {"early_stopping": "never", "length_penalty": 1.5},
    "no token twice running": {"bad_words_ids": [[9], *([n, n] for n in range(60))]},
    "scaled to one": {"bad_words_ids": [[n] for n in (*range(5, 40), PAD)], "renormalize_logits": True},
    "no forced end": {"forced_eos_token_id": None},
    "suppressed": {"suppress_tokens": [3, 4, 5]},
}


GREEDY_RULES = [
    name for name, rules in RULES.items() if not {"length_penalty", "early_stopping"} & set(rules)
]


@pytest.mark.parametrize(
    ("name", "num_beams"), [*((name, 3) for name in RULES), *((name, 1) for name in GREEDY_RULES)]
)
def test_the_rules_of_generation_config_are_kept_as_the_reference_keeps_them(tmp_path, name, num_beams):
    rules = {"max_length": 14, "num_beams": num_beams, "forced_eos_token_id": 0} | RULES[name]
    translator = load_translator(write_marian(tmp_path, seed=2, generation=rules))
    rows = torch.tensor([reference_tokenizer(tmp_path)(TEXT).input_ids])
    expected = reference(tmp_path).generate(rows, return_dict_in_generate=True, output_scores=True)
    written, ours = expected.sequences[0, 1:].tolist(), translator.translate(TEXT)
    written = written[: written.index(0) + 1] if 0 in written else written
    assert [step.token_id for step in ours.steps] == written
    assert ours.method == ("greedy" if num_beams == 1 else "beam-3")
    if num_beams > 1:
        request = DecodingState(translator.model, rows.to(translator.device))
        (found,) = finish(beam_search(request, 13, num_beams, translator.rules))
        assert found.score == pytest.approx(float(expected.sequences_scores[0]), abs=1e-4)


def test_more_beams_than_can_be_shown_are_bounded_with_a_note(tmp_path):
    found = load_translator(write_marian(tmp_path, generation={"num_beams": 200, "max_length": 20}))
    assert found.rules.beam_size == 64
    assert "This model's files ask for 200 beams; it searches with 64." in found.notes


@pytest.fixture(scope="module")
def deep(tmp_path_factory):
    shape = {"encoder_layers": 6, "decoder_layers": 6, "heads": 8}
    return load_translator(write_marian(tmp_path_factory.mktemp("deep"), languages=True, **shape))


def test_a_forced_token_shows_the_model_s_own_distribution_and_says_so(deep):
    translation = deep.translate(f">>fra<< {TEXT}", beam_size=1, max_length=5)
    end = translation.steps[-1]
    assert end.token == "</s>"
    assert end.forced
    assert end.alternatives[0].token != "</s>"
    assert end.log_prob < end.alternatives[0].log_prob
    assert not translation.steps[0].forced
    assert translation.attention.audit().passed


@pytest.mark.parametrize("options", [{"beam_size": 1}, {}])
def test_audit_replay_and_trace_hold_for_every_head_of_a_deep_model(deep, options, tmp_path):
    translation = deep.translate(f">>spa<< {TEXT}", **options)
    assert translation.source_tokens[0] == ">>spa<<"
    assert translation.decoder_input_tokens[0] == "<pad>"
    for kind in AttentionKind:
        for layer in range(6):
            for head in range(8):
                view = translation.head(kind, layer, head)
                assert view.audit.passed
                assert view.weights.shape == (len(view.query_tokens), len(view.key_tokens))
    save_trace(translation, tmp_path / "trace.npz", deep.model)
    opened = load_trace(tmp_path / "trace.npz")
    assert opened.attention.audit().passed
    assert opened.steps == translation.steps
    assert opened.config == deep.config


def test_capture_changes_nothing_and_a_replay_gives_the_same_attention(deep):
    text = f">>por<< {TEXT}"
    captured, bare = deep.translate(text, beam_size=1), deep.translate(text, beam_size=1, capture=False)
    assert captured.log_probs == bare.log_probs
    request = DecodingState(deep.model, torch.tensor([[*deep.ids(text), 0]], device=deep.device))
    (again,) = finish(decode(request, 19, rules=deep.rules))
    assert list(again.token_ids) == [step.token_id for step in captured.steps]
    forced = deep.force(text, captured.text)
    assert isinstance(forced, Translation)
    assert forced.attention.audit().passed


BFLOAT16 = """
import copy, sys, torch
from transformer import load_translator
from transformer.packed import PackedLinear, can_pack
torch.set_num_threads(1)
exact, rounded = load_translator(sys.argv[1]), load_translator(sys.argv[1], dtype="bfloat16")
translation = rounded.force(sys.argv[2], "die Katze und zwei Hunde")
report = translation.attention.audit()
assert report.passed, report
assert translation.attention.dtype == torch.bfloat16
assert rounded.model.encoder.dtype == torch.float32
assert translation.model.endswith(", bfloat16")
plain = copy.deepcopy(rounded.model.decoder.layers[0].feed_forward.inner)
assert isinstance(plain, PackedLinear) == isinstance(rounded.model.output, PackedLinear) == can_pack()
x = torch.randn(2, 3, plain.in_features).bfloat16()
difference = plain(x) - torch.nn.functional.linear(x, plain.weight, plain.bias)
assert difference.abs().max() <= 2 ** -7 * plain(x).abs().max()
own = copy.deepcopy(rounded.model).decoder.layers[0].self_attention
assert (own.joined is not None) == can_pack()
if own.joined is not None:
    x = torch.randn(2, 3, own.q_proj.in_features).bfloat16()
    for part, linear in zip(own.joined(x).chunk(3, dim=-1), (own.q_proj, own.k_proj, own.v_proj)):
        assert (part - linear(x)).abs().max() <= 2 ** -7 * part.abs().max()
for one, other in zip(translation.log_probs, exact.force(sys.argv[2], "die Katze und zwei Hunde").log_probs):
    assert abs(one - other) < 0.2, (one, other)
for options in ({"beam_size": 1}, {"beam_size": 3}):
    assert rounded.translate(sys.argv[2], **options).attention.audit().passed
"""


def test_bfloat16_is_computed_audited_and_named(tmp_path):
    """In a process of its own: some processors report matrix units that a process may not use."""
    directory = write_marian(tmp_path, encoder_layers=6, decoder_layers=6, heads=8)
    environment = os.environ | {"TRANSFORMER_DEVICE": "cpu", "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}
    command = [sys.executable, "-c", BFLOAT16, str(directory), TEXT]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_machine_that_cannot_compute_in_bfloat16_says_so_and_goes_on(monkeypatch):
    monkeypatch.setattr(packed, "sys", SimpleNamespace(executable=shutil.which("false")))
    monkeypatch.setenv("TRANSFORMER_DEVICE", "cpu")
    packed.check_bfloat16.cache_clear()
    with pytest.raises(ValueError, match="This machine cannot compute in bfloat16: use float32"):
        load_translator(ROOT / "assets" / "models" / "en-de", dtype="bfloat16")
    assert load_translator(ROOT / "assets" / "models" / "en-de").translate("One.").text


def test_another_type_is_refused(tmp_path):
    with pytest.raises(ValueError, match="dtype is 'int8'; it must be float32 or bfloat16"):
        load_translator(tmp_path, dtype="int8")
