from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
import torch
from random_models import random_recurrent

from transformer.attention import padding_mask
from transformer.config import AttentionKind, RecurrentConfig, Score, config_from
from transformer.hooks import Hooks
from transformer.model import count_parameters
from transformer.recurrent import Recurrent
from transformer.training.presets import RECURRENT

SCORES = get_args(Score)
PAD = 0


def make(score: str, **sizes) -> Recurrent:
    torch.manual_seed(3)
    config = RecurrentConfig(vocab_size=30, d_model=12, score=score, reach=2, **sizes)
    return Recurrent(config).eval().requires_grad_(False)


def ids(*rows: list[int]) -> torch.Tensor:
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows])


SOURCES = ([5, 6, 7, 8, 9, 10, 11, 2], [12, 13, 2], [14, 15, 16, 17, 2])
TARGETS = ([1, 20, 21, 22], [1, 23], [1, 24, 25, 26, 27, 28])


@pytest.mark.parametrize("score", SCORES)
def test_a_padded_batch_gives_every_sentence_what_it_gets_alone(score):
    model = make(score)
    with torch.no_grad():
        together = model(ids(*SOURCES), ids(*TARGETS))
        for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
            alone = model(ids(source), ids(target))[0]
            torch.testing.assert_close(together[row, : len(target)], alone, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("score", SCORES)
def test_more_padding_changes_nothing(score):
    model = make(score)
    wider = torch.cat([ids(*SOURCES), torch.full((3, 4), PAD)], dim=1)
    with torch.no_grad():
        torch.testing.assert_close(model(wider, ids(*TARGETS)), model(ids(*SOURCES), ids(*TARGETS)))


@pytest.mark.parametrize("score", SCORES)
def test_steps_with_a_cache_agree_with_one_pass(score):
    model = make(score)
    source, target = ids(*SOURCES), ids(*TARGETS)
    padding = padding_mask(source, PAD)
    with torch.no_grad():
        memory, cache = model.encode(source, padding), model.new_cache()
        whole = model.decode(target, memory, padding)
        steps = [model.decode(each, memory, padding, cache=cache) for each in target.split(1, dim=1)]
    assert cache.length == target.shape[1]
    torch.testing.assert_close(torch.cat(steps, dim=1), whole)


@pytest.mark.parametrize("score", SCORES)
def test_a_cache_keeps_the_rows_that_are_selected(score):
    model = make(score)
    source, target = ids(*SOURCES), ids(*TARGETS)
    padding, rows = padding_mask(source, PAD), torch.tensor([2, 0, 0])
    with torch.no_grad():
        memory, cache = model.encode(source, padding), model.new_cache()
        model.decode(target[:, :1], memory, padding, cache=cache)
        cache.select(rows)
        found = model.decode(target[rows, 1:2], memory[rows], padding[rows], cache=cache)
        expected = model.decode(target[rows, :2], memory[rows], padding[rows])[:, 1:]
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("score", SCORES)
def test_no_row_sees_a_later_target_token(score):
    model = make(score)
    with torch.no_grad():
        first = model(ids(SOURCES[0]), ids([1, 20, 21, 22]))
        other = model(ids(SOURCES[0]), ids([1, 20, 25, 26]))
    torch.testing.assert_close(first[:, :2], other[:, :2])
    assert not torch.allclose(first[:, 2:], other[:, 2:])


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def by_hand(model: Recurrent, h: np.ndarray, m: np.ndarray) -> np.ndarray:
    """(queries, keys) weights of one sentence by the formulas of the papers, cell by cell."""
    part = {name: tensor.double().numpy() for name, tensor in model.cross.compare.state_dict().items()}
    score = {
        "dot": lambda h, m: h @ m,
        "bilinear": lambda h, m: h @ part["q_proj.weight"].T @ m,
        "local": lambda h, m: h @ part["q_proj.weight"].T @ m,
        "additive": lambda h, m: (
            part["vector"][0]
            @ np.tanh(part["q_proj.weight"] @ h + part["k_proj.weight"] @ m + part["k_proj.bias"])
        ),
    }[model.config.score]
    weights = np.exp([[score(query, key) for key in m] for query in h])
    if model.config.score != "local":
        return weights / weights.sum(1, keepdims=True)
    centres = len(m) * sigmoid(np.tanh(h @ part["inner.weight"].T) @ part["outer.weight"].T)
    distances = np.arange(len(m)) - centres
    weights[np.abs(distances) > model.config.reach] = 0
    gaussian = np.exp(-(distances**2) / (2 * (model.config.reach / 2) ** 2))
    return weights / weights.sum(1, keepdims=True) * gaussian


@pytest.mark.parametrize("score", SCORES)
def test_the_whole_decoder_follows_the_formulas(score):
    model, hooks = random_recurrent(score, vocab_size=30, d_model=12), Hooks({"heads"})
    source, target = ids(SOURCES[0]), ids(TARGETS[0])
    with torch.no_grad():
        memory = model.encode(source)
        features = model.decode(target, memory, hooks=hooks)[0].double().numpy()
        x = model.embedding(target) * model.config.embedding_scale
        before = torch.tanh(model.decoder.start(memory[:, 0, 6:]))
        h = model.decoder.gru(x, before[None])[0][0].double().numpy()
    m = memory[0].double().numpy()
    contexts = by_hand(model, h, m) @ m
    np.testing.assert_allclose(
        hooks.values("decoder.0.cross_attention.heads")[0, 0].numpy(), contexts, atol=1e-5
    )
    joined = contexts @ model.cross.out_proj.weight.double().numpy().T
    own, bias = (part.double().numpy() for part in model.decoder.own.parameters())
    np.testing.assert_allclose(features, np.tanh(joined + h @ own.T + bias), atol=1e-5)
    with torch.no_grad():
        logits = model(source, target)[0].double().numpy()
    np.testing.assert_allclose(logits, features @ model.embedding.weight.double().numpy().T, atol=1e-4)


def test_an_untrained_local_query_looks_at_the_middle():
    hooks = Hooks({"centres"})
    with torch.no_grad():
        make("local").features(ids(*SOURCES), ids(*TARGETS), hooks)
    lengths = torch.tensor([float(len(source)) for source in SOURCES])
    centres = hooks.values("decoder.0.cross_attention.centres")
    torch.testing.assert_close(centres[:, 0, 0], lengths / 2)


def test_each_half_of_the_memory_is_a_gru_of_one_direction():
    model = make("dot")
    x = torch.randn(1, 5, 12)
    with torch.no_grad():
        memory = model.encoder(x)
        torch.testing.assert_close(memory[..., :6], model.encoder.forwards(x)[0])
        torch.testing.assert_close(memory[..., 6:], model.encoder.backwards(x.flip(1))[0].flip(1))


@pytest.mark.parametrize("score", SCORES)
def test_a_gradient_reaches_every_parameter(score):
    model = random_recurrent(score, vocab_size=30).train().requires_grad_(True)
    loss = model(ids(*SOURCES), ids(*TARGETS)).log_softmax(-1)[..., 20].sum()
    loss.backward()
    assert not [name for name, each in model.named_parameters() if each.grad is None or not each.grad.any()]


def test_twins_share_all_initial_weights_but_those_of_their_score():
    models = [make(score) for score in SCORES]
    for name, weight in models[0].state_dict().items():
        if not name.startswith("cross.compare"):
            assert all(torch.equal(other.state_dict()[name], weight) for other in models), name


def test_twins_draw_the_same_dropout():
    drawn = []
    for score in SCORES:
        make(score)
        drawn.append(torch.rand(3))
    assert all(torch.equal(each, drawn[0]) for each in drawn)


@pytest.mark.parametrize("name", RECURRENT)
def test_a_shipped_size_has_at_most_1_100_000_parameters(name):
    model = Recurrent(config_from(RECURRENT[name].sizes))
    assert count_parameters(model) <= 1_100_000


@pytest.mark.parametrize("score", SCORES)
def test_its_tables_name_cross_attention_alone(score):
    config = make(score).config
    assert list(config.sites) == [AttentionKind.CROSS]
    assert not [stack for stack in config.stacks.values() if stack.passed()]
    assert make(score).attention(AttentionKind.CROSS, 0).n_heads == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"score": "other"},
        {"cell": "lstm"},
        {"n_heads": 2},
        {"d_model": 13},
        {"positions": "rotary"},
        {"reach": 0},
        {"architecture": "transformer"},
    ],
)
def test_a_config_that_contradicts_itself_is_refused(wrong):
    with pytest.raises(ValueError, match=r"\w"):
        RecurrentConfig(**{"vocab_size": 30, "d_model": 12} | wrong)


@pytest.mark.parametrize("score", SCORES)
def test_a_config_comes_back_from_its_dictionary(score):
    config = make(score).config
    assert config_from(config.to_dict()) == config
