"""Whole models: the paper's, language models and recurrent ones, against torch and the formulas;
configs."""

import copy
from dataclasses import asdict
from itertools import product
from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from paper_models import paper_base, paper_big
from properties import JSON, PROPERTY, as_file, damaged, or_refused
from random_models import (
    random_config,
    random_ids,
    random_language_model,
    random_model,
    random_recurrent,
)
from torch import Tensor, nn
from torch.nn import functional as F

from transformer import AttentionKind, Hooks
from transformer.attention import Cache, padding_mask
from transformer.config import (
    LanguageModelConfig,
    RecurrentConfig,
    Score,
    TransformerConfig,
    config_from,
)
from transformer.model import Transformer, count_parameters
from transformer.packed import convert
from transformer.recurrent import Recurrent
from transformer.storage.description import parameter_count

CLOSE = {"atol": 1e-5, "rtol": 1e-4}


def test_the_paper_s_models_have_the_right_number_of_parameters():
    for config, millions in ((paper_base(), 63.1), (paper_big(), 214.2)):
        with torch.device("meta"):
            assert round(count_parameters(Transformer(config)) / 1e6, 1) == millions
        assert config.d_head == 64
    for tied, shared in product((False, True), repeat=2):
        config = random_config(tied_embeddings=tied, shared_embeddings=shared)
        tables = [
            parameter
            for parameter in Transformer(config).parameters()
            if parameter.shape == (40, 32)
        ]
        assert (len(tables), config.tables) == (3 - tied - shared, 40 * 32 * (3 - tied - shared))


def test_a_converted_model_has_the_same_numbers_and_other_places_in_memory():
    model = random_model()
    src = random_ids(2, 5)
    tgt = random_ids(2, 4, seed=1)
    expected = {name: x.clone() for name, x in model.state_dict().items()}
    logits = model(src, tgt)
    converted = convert(convert(model, "cpu"), "cpu")
    assert all(
        torch.equal(tensor, expected[name]) for name, tensor in converted.state_dict().items()
    )
    for parameter in converted.encoder.parameters():
        wide = parameter.dim() == 2 and parameter.shape[0] >= parameter.shape[1]
        assert (parameter.t() if wide else parameter).is_contiguous()
    torch.testing.assert_close(converted(src, tgt), logits, atol=1e-5, rtol=0)
    doubled = copy.deepcopy(converted).double()(src, tgt)
    assert converted.double()(src, tgt).dtype == torch.float64
    torch.testing.assert_close(converted(src, tgt), doubled, atol=1e-9, rtol=0)


def test_the_three_maps_of_a_decoder_s_self_attention_are_one_product_that_follows_each_of_them():
    model = convert(random_model(), "cpu")
    own = model.decoder.layers[0].self_attention
    assert own.joined is not None
    assert model.decoder.layers[0].cross_attention.joined is None
    x = torch.randn(2, 3, own.q_proj.in_features)
    own.k_proj.weight.data[0] = 7.0
    own.v_proj.bias.data[1] = 7.0
    three = torch.cat([linear(x) for linear in (own.q_proj, own.k_proj, own.v_proj)], dim=-1)
    torch.testing.assert_close(own.joined(x), three, atol=1e-5, rtol=0)
    assert copy.deepcopy(own).joined is None


@pytest.mark.parametrize("name", ["q_proj", "k_proj", "v_proj"])
def test_a_map_that_was_put_in_later_is_used(name):
    """Silently the old one was, for keys and values."""
    model = convert(random_model(), "cpu").requires_grad_(False)
    own = model.decoder.layers[0].self_attention
    x = torch.randn(2, 3, 32)
    linear = getattr(own, name)
    fresh = copy.deepcopy(own)
    for each in (linear, getattr(fresh, name)):
        each.weight = nn.Parameter(each.weight.flip(0), requires_grad=False)
    torch.testing.assert_close(own(x), fresh(x))
    linear.weight.requires_grad_(True)
    own(x).square().sum().backward()
    assert linear.weight.grad.any()


# --- language models -----------------------------------------------------------------------------


@pytest.mark.parametrize("positions", ["none", "shaw", "t5", "rotary", "alibi"])
def test_a_language_model_is_causal_with_and_without_a_cache_and_blind_to_other_texts(positions):
    model = random_language_model(positions=positions)
    ids = random_ids(2, 9)
    later = torch.cat([ids[:, :6], random_ids(2, 3, seed=5)], dim=1)
    torch.testing.assert_close(model(ids)[:, :6], model(later)[:, :6], **CLOSE)
    assert not torch.allclose(model(ids)[:, 6:], model(later)[:, 6:])
    cache = Cache(model.config)
    parts = [model.features(part, cache=cache) for part in (ids[:, :4], ids[:, 4:5], ids[:, 5:])]
    assert cache.length == 9
    torch.testing.assert_close(torch.cat(parts, dim=1), model.features(ids), **CLOSE)
    first = random_ids(1, 4)
    second = random_ids(1, 6, seed=1)
    row = torch.cat([first, second], dim=1)
    together = model.features(row, torch.tensor([[0] * 4 + [1] * 6]))
    torch.testing.assert_close(together[:, :4], model.features(first), **CLOSE)
    torch.testing.assert_close(together[:, 4:], model.features(second), **CLOSE)
    assert not torch.allclose(together[:, 4:], model.features(row)[:, 4:])
    torch.testing.assert_close(model.logits(together), F.linear(together, model.embedding.weight))


def test_the_size_of_a_language_model_is_estimated_closely():
    model = random_language_model(d_model=64, d_ff=256, vocab_size=2000, max_positions=1)
    assert parameter_count(model.config) == pytest.approx(count_parameters(model), rel=0.02)


# --- recurrent models ----------------------------------------------------------------------------

SCORES = get_args(Score)
EACH_SCORE = pytest.mark.parametrize("score", SCORES)
SOURCES = ([5, 6, 7, 8, 9, 10, 11, 2], [12, 13, 2], [14, 15, 16, 17, 2])
TARGETS = ([1, 20, 21, 22], [1, 23], [1, 24, 25, 26, 27, 28])


def make(score: str) -> Recurrent:
    torch.manual_seed(3)
    return (
        Recurrent(RecurrentConfig(vocab_size=30, d_model=12, score=score, reach=2))
        .eval()
        .requires_grad_(False)
    )


def padded(*rows: list[int]) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])


@EACH_SCORE
def test_a_recurrent_model_gives_a_batch_and_a_cache_what_each_sentence_gets_alone(score):
    model = make(score)
    source = padded(*SOURCES)
    target = padded(*TARGETS)
    together = model(source, target)
    for row, (one, other_side) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        alone = model(padded(one), padded(other_side))[0]
        torch.testing.assert_close(together[row, : len(other_side)], alone, **CLOSE)
    mask = padding_mask(source, 0)
    rows = torch.tensor([2, 0, 0])
    memory = model.encode(source, mask)
    cache = Cache(model.config)
    steps = [model.decode(each, memory, mask, cache=cache) for each in target.split(1, dim=1)]
    assert cache.length == target.shape[1]
    torch.testing.assert_close(torch.cat(steps, dim=1), model.decode(target, memory, mask))
    cache = Cache(model.config)
    model.decode(target[:, :1], memory, mask, cache=cache)
    cache.select(rows)
    step = model.decode(target[rows, 1:2], memory[rows], mask[rows], cache=cache)
    torch.testing.assert_close(
        step, model.decode(target[rows, :2], memory[rows], mask[rows])[:, 1:]
    )


def by_hand(model: Recurrent, h: np.ndarray, m: np.ndarray) -> np.ndarray:
    """(queries, keys) weights of one sentence by the formulas of the papers, cell by cell."""
    part = {
        name: tensor.double().numpy() for name, tensor in model.cross.compare.state_dict().items()
    }

    def score(h: np.ndarray, m: np.ndarray) -> Any:
        if model.config.score == "dot":
            return h @ m
        if model.config.score != "additive":
            return h @ part["q_proj.weight"].T @ m
        inner = part["q_proj.weight"] @ h + part["k_proj.weight"] @ m + part["k_proj.bias"]
        return part["vector"][0] @ np.tanh(inner)

    weights = np.exp([[score(query, key) for key in m] for query in h])
    if model.config.score != "local":
        return weights / weights.sum(1, keepdims=True)
    places = np.tanh(h @ part["inner.weight"].T) @ part["outer.weight"].T
    distances = np.arange(len(m)) - len(m) / (1 + np.exp(-places))
    weights[np.abs(distances) > model.config.reach] = 0
    gaussian = np.exp(-(distances**2) / (2 * (model.config.reach / 2) ** 2))
    return weights / weights.sum(1, keepdims=True) * gaussian


@EACH_SCORE
@torch.no_grad()
def test_the_whole_recurrent_decoder_follows_the_formulas(score):
    model = random_recurrent(score, vocab_size=30, d_model=12)
    hooks = Hooks({"heads"})
    source = padded(SOURCES[0])
    target = padded(TARGETS[0])
    memory = model.encode(source)
    features = model.decode(target, memory, hooks=hooks)[0].double().numpy()
    x = model.embedding(target) * model.config.embedding_scale
    before = torch.tanh(model.decoder.start(memory[:, 0, 6:]))
    h = model.decoder.gru(x, before[None])[0][0].double().numpy()
    m = memory[0].double().numpy()
    contexts = by_hand(model, h, m) @ m
    heads = hooks.values("decoder.0.cross_attention.heads")[0, 0].numpy()
    np.testing.assert_allclose(heads, contexts, atol=1e-5)
    joined = contexts @ model.cross.out_proj.weight.double().numpy().T
    own, bias = (part.double().numpy() for part in model.decoder.own.parameters())
    np.testing.assert_allclose(features, np.tanh(joined + h @ own.T + bias), atol=1e-5)
    table = model.embedding.weight.double().numpy()
    np.testing.assert_allclose(
        model(source, target)[0].double().numpy(), features @ table.T, atol=1e-4
    )
    both = model.encoder(
        states := torch.randn(1, 5, 12)
    )  # each half of the memory is a GRU of one direction
    torch.testing.assert_close(both[..., :6], model.encoder.forwards(states)[0])
    torch.testing.assert_close(both[..., 6:], model.encoder.backwards(states.flip(1))[0].flip(1))


def test_an_untrained_local_query_looks_at_the_middle():
    hooks = Hooks({"centres"})
    make("local").features(padded(*SOURCES), padded(*TARGETS), hooks)
    lengths = torch.tensor([float(len(source)) for source in SOURCES])
    torch.testing.assert_close(
        hooks.values("decoder.0.cross_attention.centres")[:, 0, 0], lengths / 2
    )


@EACH_SCORE
def test_recurrent_twins_start_alike_learn_everywhere_and_attend_across_alone(score):
    model = make(score)
    stream = torch.rand(3)
    twin = make("dot").state_dict()
    assert torch.equal(stream, torch.rand(3)), "twins draw the same dropout"
    shared = {
        name: each
        for name, each in model.state_dict().items()
        if not name.startswith("cross.compare")
    }
    assert all(torch.equal(twin[name], weight) for name, weight in shared.items())
    assert [*model.config.sites] == [AttentionKind.CROSS]
    assert config_from(asdict(model.config)) == model.config
    learner = random_recurrent(score, vocab_size=30).train().requires_grad_(True)
    learner(padded(*SOURCES), padded(*TARGETS)).log_softmax(-1)[..., 20].sum().backward()
    assert not [
        name
        for name, each in learner.named_parameters()
        if each.grad is None or not each.grad.any()
    ]


# --- configs -------------------------------------------------------------------------------------

CONFIGS = (
    random_config(norm="pre", trained_length=17),
    LanguageModelConfig(vocab_size=20),
    RecurrentConfig(vocab_size=20),
)


@PROPERTY
@given(st.sampled_from(CONFIGS).flatmap(lambda config: damaged(asdict(config))))
def test_a_damaged_config_is_refused_in_one_sentence_or_survives(values: dict[str, Any]):
    assert repr(RecurrentConfig(vocab_size=20)) == "RecurrentConfig(vocab_size=20)", (
        "what is usual is not shown"
    )
    with or_refused(ValueError):
        config = config_from(values)
        assert config_from(as_file(asdict(config))) == config
        assert not any(isinstance(value, dict | list) for value in asdict(config).values())


@PROPERTY
@given(st.sampled_from(list(asdict(random_config()))), JSON)
def test_an_entry_of_another_kind_is_named(name: str, value: Any):
    try:
        config = random_config(**{name: value})
    except ValueError as error:
        words = str(error)
    else:
        words = name if asdict(config)[name] == value else ""
    assert any(
        each in words for each in (name, "eos_id", "n_heads")
    )  # a size may refuse what depends on it


OWN: dict[str, Any] = {"vocab_size": 20, "shared_embeddings": False}
WRONG: list[tuple[Any, dict[str, Any], str]] = [
    (random_config, {"d_model": 30}, "n_heads"),
    (random_config, {"d_ff": True}, "d_ff"),
    (random_config, {"vocab_size": 1_000_001}, "vocab_size"),
    (random_config, {"eos_id": 40}, "eos_id"),
    (random_config, {"eos_id": 0}, "eos_id and pad_id are both 0"),
    (random_config, {"dropout": 1.0}, "dropout"),
    (config_from, {"vocab_size": 40, "d_modell": 32}, "d_modell"),
    (config_from, {"d_model": 32}, "vocab_size"),
    (TransformerConfig, {"vocab_size": 20, "target_vocab_size": 30}, "target_vocab_size"),
    (TransformerConfig, OWN | {"target_vocab_size": -1}, "target_vocab_size"),
    (TransformerConfig, OWN | {"target_vocab_size": 2}, "eos_id"),
    (TransformerConfig, {"vocab_size": 20, "languages": [">>fra<<"]}, "languages"),
    (LanguageModelConfig, {"vocab_size": 40, "positions": "sinusoidal"}, "positions is"),
    (LanguageModelConfig, {"vocab_size": 40, "n_key_heads": 3}, "n_key_heads"),
    (LanguageModelConfig, {"vocab_size": 40, "rotary_width": 65}, "rotary_width"),
    (
        LanguageModelConfig,
        {"vocab_size": 40, "rotary_scaling": "llama3", "rotary_low": 5.0},
        "rotary_low",
    ),
    (config_from, {"architecture": "diffusion", "vocab_size": 40}, "architecture is 'diffusion'"),
    *(
        (RecurrentConfig, {"vocab_size": 30, "d_model": 12} | {name: value}, name)
        for name, value in {
            "score": "other",
            "n_heads": 2,
            "d_model": 13,
            "positions": "rotary",
        }.items()
    ),
]


@pytest.mark.parametrize(("make_config", "entries", "named"), WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_or_contradicts_itself_is_refused_by_name(make_config, entries, named):
    with pytest.raises(ValueError, match=named):
        make_config(entries) if make_config is config_from else make_config(**entries)
