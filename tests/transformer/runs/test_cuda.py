import numpy as np
import pytest
import torch
from closed_form import CASES, KNOWN
from random_models import random_model

from transformer import AttentionKind, Sampling, Translator, load_translator
from transformer.batches import run_batch, translate_all

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="this machine has no CUDA device"
)

TEXT = "one two three four five"
WEIGHT_MARGIN = 0.1
"""Largest difference of an attention weight between bf16 and float32 on a random model."""


@pytest.fixture(scope="module")
def on_gpu(tokenizer):
    model = random_model(vocab_size=tokenizer.vocab_size, norm="pre", tied_embeddings=False)
    return Translator(model.to("cuda"), tokenizer, name="random")


@pytest.fixture(scope="module")
def on_cpu(tokenizer):
    model = random_model(vocab_size=tokenizer.vocab_size, norm="pre", tied_embeddings=False)
    return Translator(model, tokenizer, name="random")


@pytest.mark.parametrize("options", [{}, {"beam_size": 3}, {"sample": Sampling(seed=1)}])
def test_translations_and_attention_on_the_gpu_equal_those_on_the_cpu(on_gpu, on_cpu, options):
    found = on_gpu.translate(TEXT, max_length=8, **options)
    expected = on_cpu.translate(TEXT, max_length=8, **options)
    assert found.target_tokens == expected.target_tokens
    np.testing.assert_allclose(found.log_probs, expected.log_probs, atol=1e-3)
    assert found.attention.audit().passed
    assert found.attention.layer("cross", 0).query.device.type == "cpu"
    for kind, layer in expected.attention.places:
        np.testing.assert_allclose(
            found.attention.weights(kind, layer), expected.attention.weights(kind, layer), atol=1e-3
        )


@pytest.mark.parametrize("beam_size", [1, 3])
def test_batches_on_the_gpu_equal_those_on_the_cpu(on_gpu, on_cpu, beam_size):
    texts = ["one", TEXT, "nine ten"]
    assert translate_all(on_gpu, texts, beam_size) == translate_all(on_cpu, texts, beam_size)


def test_padded_batches_and_hooks_work_on_the_gpu(on_gpu):
    for entry in run_batch(on_gpu, ["one", TEXT]):
        assert entry.head("cross", 0, 0).audit.passed

    def even(weights, first):
        return torch.full_like(weights, 1 / weights.shape[-1])

    hooked = on_gpu.translate(TEXT, max_length=3, hooks={"decoder.1.cross_attention.weights": even})
    np.testing.assert_allclose(hooked.attention.weights("cross", 1), 1 / 6, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_known_cells_are_known_on_the_gpu_in_both_precisions(closed_form_models, name, dtype):
    translator = load_translator(closed_form_models[name], device="cuda")
    translator.model.to(dtype)
    translation = translator.translate(CASES[name].sentence)
    assert translation.text == CASES[name].translation
    assert translation.attention.dtype == dtype
    for kind in AttentionKind:
        for head in (0, 1):
            view = translation.head(kind, 0, head)
            assert tuple(view.weights.argmax(-1)) == CASES[name].keys(kind, head)
            assert view.weights.max(-1).min() > KNOWN - (dtype == torch.bfloat16) * WEIGHT_MARGIN
            assert view.audit.passed
