"""`python -m lab residuals`: the gradient of every layer, with and without residual connections and "
"LayerNorm."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lab.measurement import Folder, Json, Pairs, measurement
from lab.study import Chart, Study, chart, curves
from lenses.what_if.untrained import fresh_model
from transformer.model.config import Norm as Placement
from transformer.model.config import TransformerConfig
from transformer.model.masks import padding_mask
from transformer.model.network import EncoderDecoder
from transformer.model.sites import Side, Sublayer
from transformer.model.watching.observer import UNWATCHED, Bystander, Norm, Observer, Passed
from transformer.runs.bootstrap import rounded
from transformer.runs.translator import load_translator
from transformer.text.pairs import SentencePair, both_sides, read_pairs
from transformer.text.vocabulary import Tokenizer, Vocabulary
from transformer.training.batches import Batch, forced_pairs, make_batch

PAIRS, MOST_TOKENS = 16, 24
DEPTHS = (3, 6, 12)
VOCABULARY = 400
WIDTH, INNER, HEADS = 32, 64, 4
SEED = 1
TRAINED = tuple(
    Path("assets/models", name) for name in ("en-de", "positions/sinusoidal", "positions/postnorm")
)


@dataclass(frozen=True)
class Variant:
    """A way to build a layer."""

    norm: Placement  # where LayerNorm stands: "pre" or "post"
    residual: bool = True  # whether the residual connections are there
    layer_norm: bool = True  # whether any LayerNorm is there

    @property
    def name(self) -> str:
        """What people call it."""
        if self.layer_norm:
            return f"{self.norm}-norm" if self.residual else f"{self.norm}-norm, no residual"
        return "no LayerNorm" if self.residual else "neither"


VARIANTS = (
    Variant("pre"),
    Variant("post"),
    Variant("pre", residual=False),
    Variant("post", residual=False),
    Variant("post", layer_norm=False),
    Variant("post", residual=False, layer_norm=False),
)
"""All variants that differ: without LayerNorm, its place makes no difference."""


@dataclass(frozen=True)
class Gradients:
    """Pull of a loss at each layer."""

    encoder: tuple[float, ...]  # norm of the gradient of each encoder layer's weights
    decoder: tuple[float, ...]  # the same of the decoder
    loss: float  # the loss, in nats per token
    # mean cosine between two tokens of a sentence in the encoder's output; 1 if all are the same
    alike: float

    @property
    def spread(self) -> float:
        """Ratio of the largest to the smallest norm; infinite if a layer has none."""
        norms = (*self.encoder, *self.decoder)
        return max(norms) / min(norms) if min(norms) > 0 else float("inf")


class _Without(Bystander):
    """Takes residual connections and LayerNorms out of a pass; the model keeps them."""

    def __init__(self, model: EncoderDecoder, variant: Variant) -> None:
        self._model, self._variant = model, variant

    def norm(self, place: Sublayer | Side, own: Norm) -> Norm:
        return own if self._variant.layer_norm else nn.Identity()

    def residual(self, passed: Passed) -> Tensor:
        if self._variant.residual:
            return passed.output
        way = self._model.residual(passed.sublayer)
        return way.after(passed.update, self.norm(passed.sublayer, way.norm))


def sample_batch(pairs: Sequence[SentencePair], vocabulary: Vocabulary) -> Batch:
    """The first PAIRS pairs of at most MOST_TOKENS tokens a side, as one batch."""
    data = forced_pairs(pairs, vocabulary).within(MOST_TOKENS)
    return make_batch(data, range(min(PAIRS, len(data))))


def at_initialisation(
    batch: Batch, vocab_size: int, depth: int, variants: Sequence[Variant] = VARIANTS
) -> dict[Variant, Gradients]:
    """The gradients of untrained models of some layers a side that differ only in their variant."""
    sizes: dict[str, Any] = {"vocab_size": vocab_size, "d_model": WIDTH, "d_ff": INNER, "n_heads": HEADS}
    sizes |= {"n_encoder_layers": depth, "n_decoder_layers": depth}
    found = {}
    for variant in variants:
        model = fresh_model(TransformerConfig(**sizes, norm=variant.norm), SEED).double().eval()
        found[variant] = gradients(model, batch, _Without(model, variant))
    return found


def of_model(model: EncoderDecoder, batch: Batch) -> Gradients:
    """The gradients of a copy of a model, since others may use the model at the same time."""
    return gradients(copy.deepcopy(model).eval().requires_grad_(True), batch)


def gradients(model: EncoderDecoder, batch: Batch, observer: Observer = UNWATCHED) -> Gradients:
    """The norm of the gradient of every layer: of the weights and biases of its attention and feed-forward.

    The parameters of LayerNorms do not count, so that models with and without them are compared alike. The
    loss is the cross-entropy per token, without smoothing; the model is in evaluation mode, without dropout.
    """
    sides: tuple[Side, Side] = ("encoder", "decoder")
    layers = [_weights(layer) for side in sides for layer in model.stack(side).layers]
    padding = padding_mask(batch.src_ids, model.config.pad_id)
    memory = model.encode(batch.src_ids, padding, observer)
    features = model.decode(batch.tgt_input_ids, memory, padding, observer=observer)
    counted = batch.tgt_ids != model.config.pad_id
    loss = F.cross_entropy(model.logits(features[counted]), batch.tgt_ids[counted])
    found = iter(torch.autograd.grad(loss, [weight for layer in layers for weight in layer]))
    norms = [float(torch.stack([next(found).double().norm() for _ in layer]).norm()) for layer in layers]
    middle = len(model.stack("encoder").layers)
    return Gradients(
        tuple(norms[:middle]),
        tuple(norms[middle:]),
        float(loss.detach()),
        _alike(memory, batch.src_ids != model.config.pad_id),
    )


def _weights(layer: nn.Module) -> list[Tensor]:
    linear = (each for each in layer.modules() if isinstance(each, nn.Linear))
    return [parameter for each in linear for parameter in each.parameters()]


@torch.no_grad()
def _alike(memory: Tensor, tokens: Tensor) -> float:
    """Mean cosine over all pairs of different tokens (batch, source; False for padding) of a sentence."""
    unit = F.normalize(memory, dim=-1) * tokens[..., None]
    counts = tokens.sum(1)
    sums = unit.sum(1).pow(2).sum(-1) - counts  # a token's cosine with itself is 1
    return float(sums.sum() / (counts * (counts - 1)).sum())


def told(found: Json) -> Study:
    """What residual connections and LayerNorm do to the gradient of a layer, before training and after it."""
    depth = max(found["depths"], key=int)
    variants = found["depths"][depth]
    pre, post, bare, loud = (
        variants[name] for name in ("pre-norm", "post-norm", "pre-norm, no residual", "no LayerNorm")
    )
    without, with_them = (sum(value >= _LEAST for value in each["decoder"]) for each in (bare, pre))
    losses = sorted(each["loss"] for each in (pre, post))
    return Study(
        topic="Training",
        question="What are residual connections and LayerNorm for?",
        finding=f"Before training, the gradient reaches {without} of {depth} layers of the decoder without "
        f"residual connections, and {with_them} with them; with them but without LayerNorm, the loss begins "
        f"at {loud['loss']:,.0f} nats a token instead of {losses[0]:.1f} to {losses[1]:.1f}.",
        parts=[
            "Each point is the norm of the gradient of a layer's weights at initialisation. Training needs "
            "it neither vanishing nor exploding; sizes that merely differ are rescaled by Adam.",
            r"$$\text{post-norm: } \mathrm{LayerNorm}(x + \mathrm{Sublayer}(x)) \qquad "
            r"\text{pre-norm: } x + \mathrm{Sublayer}(\mathrm{LayerNorm}(x))$$",
            "**Residual connections** keep a way past each sub-layer. Without them, layers pass on only "
            "mixtures of tokens: in pre-norm, the mean cosine between two tokens of a sentence after the "
            f"encoder is {bare['alike']:.2f}, against {pre['alike']:.2f} with them. Where all keys are the "
            "same, it makes no difference what a query asks for, and queries were the only way from one "
            "decoder layer to the next: the gradient ends there. In post-norm the tokens grow as alike with "
            f"residual connections ({post['alike']:.2f}); what these keep there is the way of the gradient, "
            f"which reaches every layer. The strongest of a layer is {post['spread']:.1f} times the weakest, "
            f"in pre-norm {pre['spread']:.1f} times.",
            "**LayerNorm** brings every token to one size. With residual connections but without it, each "
            "layer adds to a stream that nothing scales down: the loss begins at "
            + ", ".join(
                f"{each['no LayerNorm']['loss']:,.0f} with {layers}"
                for layers, each in found["depths"].items()
            )
            + " layers a side, in nats a token.",
            *(
                _norms(f"Gradient of the {side}, {depth} layers a side, before training", side, variants)
                for side in ("encoder", "decoder")
            ),
            curves(
                "Strongest gradient of a layer over the weakest, by depth",
                ("variant", "layers a side", "times"),
                {
                    name: [
                        (int(layers), known[name]["spread"])
                        for layers, known in found["depths"].items()
                        if known[name]["spread"] is not None
                    ]
                    for name in variants
                },
                "y",
            ),
            chart(
                "bars",
                f"Mean cosine between two tokens of a sentence after the encoder, {depth} layers",
                ("measure", "variant", "cosine"),
                [("cosine", name, each["alike"]) for name, each in variants.items()],
            ),
            "**The same number after training.** The models differ in size, training data and learning rate, "
            "so their lines are not a comparison of pre- and post-norm alone. A low gradient after training "
            "means that these weights are near a place where the loss changes little.",
            *(
                _norms(f"Gradient of the {side}, before training and after it", side, found["models"])
                for side in ("encoder", "decoder")
            ),
        ],
        method=f"{found['pairs']} sentence pairs; d_model {WIDTH}, one draw of weights, the same for all "
        "variants; models in evaluation mode, cross-entropy without smoothing; LayerNorms' own parameters do "
        "not count. Values below 10⁻¹⁰, where rounding decides, count as none and are left out.",
        sources="He et al. 2016; Xiong et al. 2020; Dong et al. 2021; Vaswani et al. 2017, section 3.1.",
    )


_LEAST = 1e-10
"""Below this value of a gradient, rounding errors decide."""


def _norms(caption: str, side: str, models: Json) -> Chart:
    found = {
        name: [(i, value) for i, value in enumerate(each[side], start=1) if value >= _LEAST]
        for name, each in models.items()
    }
    return curves(caption, ("model", "layer", "norm of the gradient"), found, "y")


@measurement("assets/residuals.json", studies={"residuals": told})
def residuals(
    data: Annotated[Pairs, "source<TAB>target lines"] = Path("assets/sample/tatoeba-en-de.tsv.gz"),
    models: Annotated[tuple[Folder, ...], "trained models to measure as well"] = TRAINED,
) -> Json:
    """Measures the gradient of every layer of untrained models in six variants, and of trained ones."""
    pairs = read_pairs(data)
    batch = sample_batch(pairs, Tokenizer.train(both_sides(pairs), VOCABULARY))
    found = {}
    for path in models:
        translator = load_translator(path)
        own = sample_batch(pairs, translator.tokenizer)
        for when, model in (("before", fresh_model(translator.config, SEED)), ("after", translator.model)):
            found[f"{translator.name}, {when} training"] = _values(of_model(model, own))
    return {
        "pairs": len(batch.src_ids),
        "depths": {
            str(depth): {
                variant.name: _values(each)
                for variant, each in at_initialisation(batch, VOCABULARY, depth).items()
            }
            for depth in DEPTHS
        },
        "models": found,
    }


def _values(each: Gradients) -> Json:
    lists = {side: [rounded(value) for value in getattr(each, side)] for side in ("encoder", "decoder")}
    spread = each.spread if each.spread < 1 / _LEAST else None
    return lists | {
        "loss": rounded(each.loss),
        "alike": rounded(each.alike),
        "spread": spread and rounded(spread),
    }
