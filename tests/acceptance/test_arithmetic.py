"""Equation 1, the seven encodings, and every change of a run, held against NumPy and the stored
weights."""

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from sentencepiece import SentencePieceProcessor

from tests.acceptance import surface
from tests.acceptance.surface import do, translator

TEXT, OTHER = "The old house is not for sale.", "The new garden was not for sale."
FIRST, SECOND = "encoder.layers.0.self_attention", "encoder.layers.1.self_attention"
FED = "encoder.layers.0.feed_forward"


@cache
def base(text: str = TEXT) -> Any:
    return translator("en-de").force(text, translator("en-de").translate(text).target_tokens)


def forced(change: Any) -> Any:
    run = translator("en-de").force(TEXT, base().target_tokens, interventions=[change])
    assert run.log_probs != base().log_probs
    return run


def near(actual: Any, expected: Any, rtol: float = 1e-4, atol: float = 2e-4) -> None:
    np.testing.assert_allclose(actual, expected, rtol, atol)


def tensor(name: str, model: str = "en-de", file: str = "model.safetensors") -> np.ndarray:
    """A stored weight: whole numbers over their multipliers, one a row, or half precision."""
    with safe_open(surface.MODELS / model / file, "np") as stored:
        values = stored.get_tensor(name).astype(np.float64)
        if f"{name}.multiplier" in stored.keys():  # noqa: SIM118
            values /= stored.get_tensor(f"{name}.multiplier").reshape(-1, *[1] * (values.ndim - 1))
        return values


def linear(name: str, x: np.ndarray, model: str = "en-de") -> np.ndarray:
    return x @ tensor(f"{name}.weight", model).T + tensor(f"{name}.bias", model)


def norm(name: str, x: np.ndarray, model: str = "en-de") -> np.ndarray:
    scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return scaled * tensor(f"{name}_residual.norm.weight", model) + tensor(
        f"{name}_residual.norm.bias", model
    )


def heads(x: np.ndarray, count: int) -> np.ndarray:
    return x.reshape(len(x), count, -1).swapaxes(0, 1)


def softmax(scores: np.ndarray, mask: np.ndarray) -> np.ndarray:
    powers = np.where(mask, np.exp(scores - scores.max(-1, keepdims=True)), 0.0)
    return powers / powers.sum(-1, keepdims=True)


@pytest.mark.parametrize("kind", surface.KINDS)
def test_every_head_is_equation_1(kind: str) -> None:
    for layer, head in np.ndindex(3, 8):
        view = base().head(kind, layer, head)
        mask = (
            np.tri(*view.scores.shape) > 0
            if surface.KINDS[kind]
            else np.full(view.scores.shape, True)
        )
        np.testing.assert_array_equal(view.mask, mask)
        near(view.scores, view.query @ view.key.T / math.sqrt(view.key.shape[-1]))
        near(view.weights, softmax(view.scores, mask))
        near(view.output, view.weights @ view.value)


def turned(x: np.ndarray, sign: int = 1) -> np.ndarray:
    """Pairs of numbers, each turned by its position times its frequency."""
    angles = np.arange(x.shape[-2])[:, None] / 10_000 ** (
        np.arange(0, x.shape[-1], 2) / x.shape[-1]
    )
    pairs = (x[..., ::2] + 1j * x[..., 1::2]) * np.exp(sign * 1j * angles)
    return np.stack([pairs.real, pairs.imag], -1).reshape(x.shape)


def bucket(distance: int) -> int:
    """Raffel et al. 2020: 8 near distances a side alone, 8 shares of the far ones up to 128."""
    far = 8 + math.log(max(abs(distance), 8) / 8) / math.log(128 / 8) * 8
    return 16 * (distance > 0) + (abs(distance) if abs(distance) < 8 else min(15, int(far + 1e-9)))


@pytest.mark.parametrize("name", surface.ENCODINGS)
def test_the_first_scores_are_computed_from_the_stored_weights(name: str) -> None:
    model = f"positions/{name}"
    text = " ".join([TEXT] * 3)
    run = translator(model).force(text, "Das Haus.")
    pieces = SentencePieceProcessor(model_file=str(surface.MODELS / model / "tokenizer.model"))
    ids = [*pieces.encode(text), 2]
    x = tensor("embedding.weight", model)[ids] * math.sqrt(112)
    if name == "sinusoidal":
        x += turned(np.tile([0.0, 1.0], (len(ids), 56)), -1)
    if name == "learned":
        x += tensor("encoder.positions.table", model)[: len(ids)]
    query, key = (
        heads(linear(f"{FIRST}.{part}_proj", norm(FIRST, x, model), model), 4) for part in "qk"
    )
    if name == "rotary":
        query = turned(query)
        key = turned(key)
    scores = query @ key.swapaxes(1, 2)
    distances = np.arange(len(ids)) - np.arange(len(ids))[:, None]
    if name == "shaw":
        vectors = tensor("encoder.positions.vectors", model)[0][:, distances.clip(-16, 16) + 16]
        scores += np.einsum("hqd,hqkd->hqk", query, vectors)
    scores /= math.sqrt(28)
    if name == "t5":
        scores += tensor("encoder.positions.weight", model)[:, np.vectorize(bucket)(distances)]
    if name == "alibi":
        scores -= abs(distances) / 4 ** np.arange(1, 5)[:, None, None]
    near([run.head("encoder", 0, head).scores for head in range(4)], scores, 1e-3, 2e-3)


def put(values: np.ndarray, cells: dict[Any, Any]) -> np.ndarray:
    values = values.copy()
    for place, value in cells.items():
        values[place] = value
    return values


def row(view: Any) -> np.ndarray:
    rest = view.weights[1] / 4 / (1 - view.weights[1, [0, 3]].sum())
    return put(view.weights, {1: rest, (1, 0): 0.5, (1, 3): 0.25})


CROSS = ("cross", 1, 5)
OWN = ("encoder", 0, 4)
PAST = ("decoder", 0, 1)
CELLS = [(0, 1), (None, 3)]
MEANS = tensor("cross", file="means.safetensors")
IN_HEADS = [
    (CROSS, do.ablate(*CROSS), "output", lambda v: 0 * v.output),
    (CROSS, do.ablate(*CROSS, by="mean"), "output", lambda v: 0 * v.output + MEANS[1, 5]),
    (
        PAST,
        do.ablate(*PAST, by="uniform"),
        "weights",
        lambda v: v.mask / v.mask.sum(-1, keepdims=True),
    ),
    (OWN, do.ablate(*OWN, by="first"), "weights", lambda v: put(0 * v.weights, {(..., 0): 1})),
    (
        PAST,
        do.ablate(*PAST, by="previous", rows=[2]),
        "weights",
        lambda v: put(v.weights, {2: 0, (2, 1): 1}),
    ),
    (OWN, do.scale(*OWN, 2.5), "output", lambda v: 2.5 * v.output),
    (OWN, do.set_row(*OWN, 1, {0: 0.5, 3: 0.25}), "weights", row),
    (CROSS, do.hide(1), "mask", lambda v: put(v.mask, {(..., 1): False})),
    (
        OWN,
        do.mask("encoder", forbid=CELLS),
        "mask",
        lambda v: put(v.mask, {(0, 1): False, (..., 3): False}),
    ),
    (PAST, do.mask("decoder", forbid="past"), "mask", lambda v: np.eye(len(v.mask)) > 0),
    (OWN, do.temperature(*OWN, 3.0), "scores", lambda v: v.scores / 3),
    (OWN, do.unscaled(*OWN), "scores", lambda v: v.query @ v.key.T),
]
"""A head, a change of it, the part that changes, and what the change's equation makes of it."""


@pytest.mark.parametrize(("place", "change", "part", "equation"), IN_HEADS)
def test_a_change_in_a_head_is_what_its_equation_says(
    place: Any, change: Any, part: str, equation: Any
) -> None:
    run = forced(change)
    own = base().head(*place)
    view = run.head(*place)
    near(getattr(view, part), equation(own))
    if part in ("mask", "scores"):
        near(view.weights, softmax(view.scores, view.mask))
    if part != "output":
        near(view.output, view.weights @ view.value)
    assert run.audit().passed, run.audit()


def queries(layer: int) -> Any:
    return lambda run: np.concatenate(
        [run.head("encoder", layer, head).query for head in range(8)], -1
    )


def read(name: str, x: np.ndarray) -> np.ndarray:
    return linear(f"{name}.q_proj", norm(name, x))


def fed(x: np.ndarray) -> np.ndarray:
    return x + linear(f"{FED}.outer", np.maximum(linear(f"{FED}.inner", norm(FED, x)), 0))


def attended(x: np.ndarray) -> np.ndarray:
    joined = np.concatenate([base().head("encoder", 0, head).output for head in range(8)], -1)
    return x + linear(f"{FIRST}.out_proj", joined)


IN_STACKS = [
    (None, queries(1), lambda x: read(SECOND, fed(attended(x)))),
    (
        do.no_positions("encoder"),
        queries(0),
        lambda x: read(FIRST, surface.embedded(base())("encoder")),
    ),
    (do.drop_sublayer("encoder", 0, "self_attention"), queries(1), lambda x: read(SECOND, fed(x))),
    (
        do.drop_sublayer("encoder", 0, "feed_forward"),
        queries(1),
        lambda x: read(SECOND, attended(x)),
    ),
    (
        do.drop_norm("encoder", 0, "self_attention"),
        queries(0),
        lambda x: linear(f"{FIRST}.q_proj", x),
    ),
]
"""A change, what is looked at, and how it is made from what entered the encoder."""
PATCHES = [
    (do.embeddings("encoder"), lambda run: surface.entered(run)("encoder")),
    (do.stream("decoder", 0, "feed_forward"), lambda run: run.head("decoder", 1, 0).query),
    (do.head_output(*CROSS), lambda run: run.head(*CROSS).output),
    (do.encoder_output(), lambda run: run.head("cross", 0, 2).key),
]


@pytest.mark.parametrize(("change", "look", "equation"), IN_STACKS)
def test_a_change_of_a_stack_is_what_its_equation_says(
    change: Any, look: Any, equation: Any
) -> None:
    expected = equation(np.float64(surface.entered(base())("encoder")))
    run = forced(change) if change else base()
    near(look(run), expected, 1e-3, 2e-3)
    assert run.audit().passed, run.audit()


@pytest.mark.parametrize(("place", "look"), PATCHES)
def test_a_patch_puts_in_what_the_other_run_held(place: Any, look: Any) -> None:
    run = forced(do.patch(place, do.run(OTHER, base(OTHER).target_ids), {1: 0, 3: 2}))
    other = look(base(OTHER))
    near(look(run), put(np.asarray(look(base())), {1: other[0], 3: other[2]}))
    assert run.audit().passed, run.audit()


def test_tokens_are_chosen_forbidden_begun_edited_and_dropped() -> None:
    ids, tokens = base().target_ids, base().target_tokens
    for change, start, text in (
        (do.choose(2, "▁Verkauf"), [*tokens[:2], "▁Verkauf"], TEXT),
        (do.prefix([ids[2], ids[1]]), [tokens[2], tokens[1]], TEXT),
        (do.forbid(tokens[2]), tokens[:2], TEXT),
        (do.edit_source(1, "▁new"), [], TEXT.replace("old", "new")),
        (do.drop_source(1), [], TEXT.replace("old ", "")),
    ):
        run = translator("en-de").translate(TEXT, interventions=[change])
        near(run.log_probs, translator("en-de").force(text, run.target_ids).log_probs)
        assert list(run.target_tokens[: len(start)]) == list(start)
        assert run.target_tokens != tokens
