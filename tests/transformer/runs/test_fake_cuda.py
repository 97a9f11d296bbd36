"""Where tensors lie, checked without a GPU (``tests/support/fake_gpu.py``).

Only a build of PyTorch with CUDA has its devices, so this is run by hand, in an environment of its own:

    python3 -m venv cuda && cuda/bin/pip install "torch===2.13.0" -r requirements-dev.txt
    cuda/bin/pytest -n 0 tests/transformer/runs/test_fake_cuda.py
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
import torch
from changes import EVERY, TEXT, changeable
from fake_gpu import fake_gpu, moved
from random_models import random_language_model, random_model, random_recurrent

from explorer import lenses
from explorer.lenses.inside import parts
from explorer.lenses.inside.block import open_block
from explorer.lenses.inside.inside import look_inside
from explorer.lenses.inside.logit_lens import logit_lens
from explorer.lenses.measures.maps import effect_in
from explorer.lenses.measures.stream import UnmeasuredError
from explorer.lenses.targets.filters import filtered_steps
from explorer.lenses.targets.lesson import lesson
from explorer.lenses.targets.smoothing import smoothed
from explorer.lenses.what_if.rearranged import encode_moved
from transformer import Capture, Sampling, Translator
from transformer.batches import forced_log_probs, hypotheses, run_batch
from transformer.config import ENCODINGS, Sublayer
from transformer.model import EncoderDecoder
from transformer.run import Translation
from transformer.text.tokenizer import Tokenizer
from transformer.translator import retrace
from transformer.view import Window

pytestmark = pytest.mark.skipif(torch.version.cuda is None, reason="this build of PyTorch has no CUDA")

WHOLE = Capture(residual=True)
NETWORKS: dict[str, Callable[[int], EncoderDecoder]] = {
    **{
        f"{name}, {norm}-norm": lambda size, name=name, norm=norm: random_model(  # type: ignore[misc]
            vocab_size=size, positions=name, norm=norm, trained_length=30
        )
        for name in ENCODINGS
        for norm in ("pre", "post")
    },
    **{
        score: lambda size, score=score: random_recurrent(score, vocab_size=size)  # type: ignore[misc]
        for score in ("dot", "bilinear", "additive", "local")
    },
}
Ask = Callable[[Translator, Translation], object]
LENSES: dict[str, Ask] = {
    "alti": lambda model, run: lenses.alti(model.model, run),
    "attribution": lambda model, run: lenses.attribution(model.model, run, 0, 5),
    "carried": lambda model, run: lenses.carried(model.model, run, "cross", 0, 0),
    "carried_together": lambda model, run: lenses.carried_together(model.model, run, "decoder", 0),
    "effect": lambda model, run: lenses.effect(model, run, "cross", 0, 0),
    "effect_in": lambda model, run: effect_in(model, run, "decoder", 0, 0, Window(0, 1, 0, 1)),
    "left out": lambda model, run: lenses.Effects(model, run).left_out([1]),
    "rewired": lambda model, run: lenses.rewired(model, run, "cross", 0, 0, run.weights("cross", 0, 0)[None]),
    "rollout": lambda model, run: lenses.rollout(run),
    "score_parts": lambda model, run: lenses.score_parts(model.model, run, ("cross", 0, 0), 0, 0),
    "value_zeroing": lambda model, run: lenses.value_zeroing(model.model, run, "encoder", 0),
    "on_difference": lambda model, run: lenses.on_difference(model, run, 1, 5),
    "word_effect": lambda model, run: lenses.word_effect(model, run),
    "copying": lambda model, run: lenses.copying(model.model),
    "matching": lambda model, run: lenses.matching(model.model, 3),
    "inside": lambda model, run: [
        look_inside(model.model, run, (kind, 1, 0), 1) for kind in ("encoder", "decoder", "cross")
    ],
    "block": lambda model, run: [open_block(model.model, run, side, 1, 1) for side in ("encoder", "decoder")],
    "embedding": lambda model, run: parts.embedding_part(model.model, run, "encoder", 1, 5),
    "norm": lambda model, run: parts.norm_part(model.model, run, Sublayer("encoder", 0, "feed_forward"), 1),
    "final norm": lambda model, run: parts.final_norm_part(model.model, run, "decoder", 1),
    "neighbours": lambda model, run: parts.neighbours(model.model, "decoder", 5),
    "logit lens": lambda model, run: logit_lens(model.model, run, 1),
    "filters": lambda model, run: filtered_steps(model, run, Sampling(seed=1)),
    "lesson": lambda model, run: smoothed(model, lesson(model, TEXT, run.target_ids), 0, 0.1),
    "moved": lambda model, run: encode_moved(model, TEXT, 3),
    "retrace": retrace,
}


@cache
def on_cpu(network: str, tokenizer: Tokenizer) -> tuple[EncoderDecoder, Translation]:
    """A network, and a run of it with its numbers."""
    model = NETWORKS[network](tokenizer.vocab_size)
    return model, Translator(model, tokenizer).translate(TEXT, max_length=6, capture=WHOLE)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize(
    "options",
    [{}, {"beam_size": 3, "tree": True}, {"sample": Sampling(top_k=4, seed=1)}],
    ids=["greedy", "beam", "sample"],
)
def test_every_network_decodes_step_by_step_and_is_captured(
    network: str, options: dict, tokenizer: Tokenizer
):
    model, _ = on_cpu(network, tokenizer)
    with fake_gpu() as mode:
        translator = Translator(moved(model, mode), tokenizer)
        run = translator.translate(TEXT, max_length=5, capture=WHOLE, **options)
        assert translator.device.type == "cuda"
        assert run.attention is not None
        for kind, layer in run.attention.places:
            assert run.attention.layer(kind, layer).query.device.type == "cpu"
        run.attention.audit()
        translator.force(TEXT, "two one", capture=WHOLE)
        run_batch(translator, ["one", TEXT])
        hypotheses(translator, ["one", TEXT])


def test_a_language_model_reads_and_writes(tokenizer: Tokenizer):
    model = random_language_model(vocab_size=tokenizer.vocab_size, trained_length=30)
    with fake_gpu() as mode:
        generator = Translator(moved(model, mode), tokenizer)
        generator.generate("one two", max_length=9, capture=WHOLE).attention.audit()
        generator.force(TEXT, capture=WHOLE)
        forced_log_probs(generator, ["one", TEXT])
        lenses.copying(generator.model)


@pytest.mark.parametrize("change", EVERY)
def test_every_change_lies_where_the_model_does(change: str, tokenizer: Tokenizer):
    whole = changeable(tokenizer)
    with fake_gpu() as mode:
        translator = Translator(moved(whole.model, mode), tokenizer, means=whole.means)
        translator.translate(TEXT, max_length=6, interventions=[EVERY[change]], capture=WHOLE)


def test_a_hook_gets_weights_where_the_model_is(tokenizer: Tokenizer):
    with fake_gpu() as mode:
        model, _ = on_cpu("sinusoidal, pre-norm", tokenizer)
        translator, places = Translator(moved(model, mode), tokenizer), set()

        def hook(weights: torch.Tensor, **_: object) -> torch.Tensor:
            places.add(weights.device.type)
            return torch.full_like(weights, 1 / weights.shape[-1])

        translator.translate(TEXT, max_length=3, hooks=[hook])
        assert places == {"cuda"}


LOOKED_AT = ("sinusoidal, pre-norm", "rotary, pre-norm", "t5, post-norm", "shaw, pre-norm", "recurrent unit")


@pytest.mark.parametrize("network", LOOKED_AT)
@pytest.mark.parametrize("lens", LENSES)
def test_every_lens_lies_where_the_model_does(network: str, lens: str, tokenizer: Tokenizer):
    model, run = on_cpu(network, tokenizer)
    try:
        LENSES[lens](Translator(model, tokenizer), run)
    except (UnmeasuredError, KeyError, IndexError) as error:
        pytest.skip(f"nor on the CPU: {error}")
    with fake_gpu() as mode:
        LENSES[lens](Translator(moved(model, mode), tokenizer), run)
