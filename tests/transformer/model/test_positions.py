"""Positional encodings: their formulas, what they add, turn and bias, and what must hold for each
of them."""

import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from properties import PROPERTY
from random_models import random_config, random_ids, random_model
from torch import Tensor

from transformer import Translator
from transformer.attention import Cache, padding_mask
from transformer.encodings import (
    REGISTRY,
    BiasRule,
    Learned,
    PositionalEncoding,
    Rotary,
    Sinusoidal,
    alibi_slopes,
    bias_rule,
    make_positions,
    rotary_angles,
    shift_matrix,
    sinusoidal_table,
)
from transformer.hooks import Capture, Hooks
from transformer.model import Transformer
from transformer.trace import trace_of

HEADS, LENGTH, WIDTH = 4, 9, 6
ROWS = torch.tensor([2, 5, 8])
COLUMNS = torch.arange(LENGTH)
EACH = pytest.mark.parametrize("name", REGISTRY)


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


# --- what is added -------------------------------------------------------------------------------


def test_the_table_is_the_paper_s_formula():
    d_model = 7
    table = sinusoidal_table(50, 7)
    for position in (0, 1, 49):
        for dimension in range(d_model):
            angle = position / 10_000 ** (2 * (dimension // 2) / d_model)
            expected = math.cos(angle) if dimension % 2 else math.sin(angle)
            assert table[position, dimension].item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", [Sinusoidal, Learned])
def test_a_later_start_goes_on_in_the_table_to_its_end(kind):
    encoding = kind(random_config(max_positions=10))
    if kind is Learned:
        encoding.initialise()
    else:
        assert not [*encoding.parameters(), *encoding.state_dict()]
    assert torch.equal(encoding.added(3, first=5), encoding.added(10)[5:8])
    assert encoding.added(10).shape == (10, 32)
    with pytest.raises(ValueError, match=r"11 tokens.*10 positions"):
        encoding.added(1, first=10)


def test_no_encoding_adds_rotates_and_biases_nothing_and_an_unknown_one_is_refused():
    encoding = make_positions(random_config(positions="none"))
    x = torch.randn(1, 4, 3, 8)
    assert type(encoding) is PositionalEncoding
    assert (encoding.added(3), encoding.rotate(x) is x, encoding.rules(2)) == (
        None,
        True,
        [None] * 2,
    )
    with pytest.raises(ValueError, match=r"'circular'.*sinusoidal"):
        make_positions(random_config(positions="circular"))


@PROPERTY
@given(
    offset=st.integers(0, 4000),
    width=st.integers(1, 60).map(lambda n: 2 * n),
    more=st.integers(0, 90),
)
def test_a_shift_of_sinusoids_is_one_rotation_for_every_position(offset, width, more):
    table = sinusoidal_table(4096, width)
    turn = shift_matrix(offset, width)
    early = table[: 4096 - offset]
    late = table[offset:]
    assert (early @ turn.T - late).abs().max() <= 1e-9
    torch.testing.assert_close(turn @ turn.T, torch.eye(width, dtype=torch.float64))
    torch.testing.assert_close(turn @ shift_matrix(more, width), shift_matrix(offset + more, width))
    with pytest.raises(ValueError, match=f"d_model is {width + 1}"):
        shift_matrix(offset, width + 1)


# --- what is turned ------------------------------------------------------------------------------


def test_rotary_positions_turn_each_pair_by_position_times_frequency():
    encoding = Rotary(random_config())
    x = normal(1, 1, 6, 8)
    pairs = torch.view_as_complex(x.double().view(6, 4, 2))
    angles = torch.arange(3, 9)[:, None] * 10_000 ** (-2 * torch.arange(4).double() / 8)
    expected = torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).view(6, 8)
    torch.testing.assert_close(
        encoding.rotate(x, first=3)[0, 0].double(), expected, atol=1e-5, rtol=0
    )
    far = rotary_angles(2048, 28)[2047, 13].item()
    assert far == pytest.approx(2047 * 10_000 ** (-26 / 28), rel=1e-14)
    with pytest.raises(ValueError, match="heads of 7"):
        Rotary(random_config(d_model=28))


def test_queries_and_keys_are_turned_and_values_are_not():
    layers, rotate = [], Rotary(random_config()).rotate
    for positions in ("none", "rotary"):
        hooks = Hooks(Capture().parts)
        model = random_model(positions=positions)
        model.encode(random_ids(1, 6), hooks=hooks)
        layers.append(trace_of(hooks, model.config, lambda *_: None).layer("encoder", 0))
    plain, turned = layers
    for name in ("query", "key"):
        torch.testing.assert_close(getattr(turned, name), rotate(getattr(plain, name)[None])[0])
    assert torch.equal(turned.value, plain.value)


# --- what is added to scores ---------------------------------------------------------------------

RULES = [
    BiasRule("alibi", alibi_slopes(HEADS).float()),
    BiasRule("t5", normal(HEADS, 2 * 4 + 1)),
    BiasRule("shaw", normal(HEADS, 2 * 4 + 1, WIDTH)),
]
EACH_RULE = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)


def test_slopes_are_the_paper_s():
    assert alibi_slopes(8).tolist() == [2.0**-k for k in range(1, 9)]
    assert alibi_slopes(16)[:2].tolist() == pytest.approx([2**-0.5, 2**-1])
    assert alibi_slopes(6).tolist() == pytest.approx([2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3])
    assert alibi_slopes(1).tolist() == [2**-8]


@EACH_RULE
def test_a_bias_is_that_of_the_distance_cell_by_cell(rule):
    query = normal(2, HEADS, 3, WIDTH)
    bias = rule.scores(query, ROWS, COLUMNS).expand(2, HEADS, 3, LENGTH)
    for head, row, j in np.ndindex(HEADS, 3, LENGTH):
        distance = j - int(ROWS[row])
        near = min(max(distance, -4), 4) + 4  # the last value of a table holds beyond it
        if rule.name == "alibi":
            expected = -(2.0 ** -(2 * head + 2)) * abs(distance)
        elif rule.name == "t5":
            expected = float(rule.table[head, near])
        else:
            expected = float(query[1, head, row] @ rule.table[head, near]) / math.sqrt(WIDTH)
        assert float(bias[1, head, row, j]) == pytest.approx(expected, abs=1e-5)
    query = normal(
        HEADS, LENGTH, WIDTH
    )  # some heads, rows and columns are the same as all cut down
    whole = rule.scores(query, COLUMNS, COLUMNS)
    torch.testing.assert_close(
        rule.scores(query[2, ROWS], ROWS, COLUMNS[3:7], 2), whole[2, ROWS, 3:7]
    )
    several = rule.scores(query[1:3, ROWS], ROWS, COLUMNS, slice(1, 3))
    torch.testing.assert_close(several, whole[1:3, ROWS])


@EACH_RULE
def test_a_table_of_another_shape_is_refused(rule):
    assert bias_rule(rule.name, rule.table, HEADS, WIDTH).table is rule.table
    cut = rule.table[:, :-1] if rule.table.dim() > 1 else rule.table[:1]
    for wrong in (torch.zeros(()), rule.table[:2], rule.table[None], cut):
        with pytest.raises(ValueError, match=rule.name):
            bias_rule(rule.name, wrong, HEADS, WIDTH)
    with pytest.raises(ValueError, match=r"'unknown'.*alibi.* shaw, t5"):
        bias_rule("unknown", torch.zeros(HEADS), HEADS, WIDTH)


# --- whole models --------------------------------------------------------------------------------


def test_shaw_has_a_table_for_each_layer_and_head():
    shaw = random_model(positions="shaw").encoder.positions
    assert shaw.vectors.shape == (2, 4, 33, 8)
    assert [rule.table.tolist() for rule in shaw.rules(2)] == shaw.vectors.tolist()


@EACH
def test_all_encodings_start_from_the_same_shared_weights_and_random_stream(name):
    def start(positions: str) -> tuple[dict[str, Tensor], Tensor]:
        torch.manual_seed(5)
        model = Transformer(random_config(positions=positions))
        own = {"encoder.positions", "decoder.positions"}
        shared = {
            key: w for key, w in model.state_dict().items() if key.rsplit(".", 1)[0] not in own
        }
        return shared, torch.rand(3)

    (shared, stream) = start(name)
    (expected, expected_stream) = start("none")
    assert shared.keys() == expected.keys()
    assert all(torch.equal(shared[key], expected[key]) for key in expected)
    assert torch.equal(stream, expected_stream)


@pytest.fixture(scope="module", params=REGISTRY)
def translator(request, tokenizer) -> Translator:
    options = {"norm": "pre", "tied_embeddings": False, "positions": request.param}
    return Translator(
        random_model(vocab_size=tokenizer.vocab_size, **options), tokenizer, name=request.param
    )


@torch.inference_mode()
@pytest.mark.filterwarnings("ignore")
def test_inference_runs_the_fused_kernel_only(translator):
    model = translator.model
    src = random_ids(2, 7)
    src[1, 5:] = 0
    padding = padding_mask(src, 0)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        memory = model.encode(src, padding)
        cache = Cache(model.config)
        for part in random_ids(2, 5).split([3, 1, 1], 1):
            model.decode(part, memory, padding, cache=cache)
    calls = {event.key: event.count for event in profile.key_averages()}
    kernels = {name: count for name, count in calls.items() if "scaled_dot_product" in name}
    assert sum(n for name, n in kernels.items() if re.search("flash|efficient", name)) == 2 + 3 * (
        3 + 3
    )
    assert not any("math" in name for name in kernels)
    assert "aten::softmax" not in calls


def test_pairs_are_turned_as_exactly_as_they_are_given():
    turn = random_model(positions="rotary").double().decoder.positions.rotate
    rows = torch.randn(1, 2, 3, 8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(turn, rows)
    assert turn(rows[:, :, :0]).shape == (1, 2, 0, 8)
