"""Second ways over all cells of small cases, and what is exchanged in a picture turns its badge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from firefox_files import random_model as firefox_model
from firefox_files import write_firefox
from random_models import random_model

from lenses.again.carried import audit_carried
from lenses.again.cells import compared, equal
from lenses.again.effects import audit_effect_map, audit_effects
from lenses.again.flow import audit_shares
from lenses.again.memory import audit_memory
from lenses.again.slopes import audit_saliency
from lenses.again.written import audit_attribution, audit_score, through_keys
from lenses.inside.unit_memory import unit_memory
from lenses.measures.alti import Shares, alti
from lenses.measures.attribution import attribution
from lenses.measures.carried import carried
from lenses.measures.effect import WAYS, effect
from lenses.measures.gradients import saliency
from lenses.measures.maps import carried_map, effect_in, effect_map, shares
from lenses.measures.score_parts import score_parts
from transformer import Capture, Window
from transformer.model.encodings.positions import REGISTRY
from transformer.model.sites import AttentionKind
from transformer.runs.translation import Translation
from transformer.runs.translator import Translator, load_translator
from transformer.trace.report import AuditReport

MODELS = [("pre", name) for name in REGISTRY] + [("post", "sinusoidal"), ("post", "t5"), ("ssru", "")]
STEP, TOKENS = 2, (9, 6)
Run = tuple[Translator, Translation]


@pytest.fixture(scope="module", params=MODELS, ids=lambda each: " ".join(each))
def run(request: pytest.FixtureRequest, translator: Translator, tmp_path_factory) -> Run:
    norm, positions = request.param
    capture = Capture(residual=True)
    if norm == "ssru":
        model = load_translator(write_firefox(tmp_path_factory.mktemp("firefox") / "model", firefox_model()))
        return model, model.force("the old house is small", "a casa velha", capture=capture)
    network = random_model(
        vocab_size=translator.config.vocab_size, norm=norm, positions=positions, scale=0.6, output_bias=True
    )
    torch.manual_seed(5)
    with torch.no_grad():  # with post-norm, such biases would leave all tokens alike
        for parameter in network.parameters():
            if parameter.dim() == 1 and norm == "pre":
                parameter.normal_(0.4, 0.5)
    model = Translator(network.eval(), translator.tokenizer, name="random")
    return model, model.force("one two three nine", "two one four", capture=capture)


@pytest.fixture(scope="module")
def ssru(tmp_path_factory) -> Run:
    model = load_translator(write_firefox(tmp_path_factory.mktemp("firefox") / "model", firefox_model()))
    return model, model.force("the old house is small", "a casa velha", capture=Capture(residual=True))


@pytest.fixture(scope="module")
def plain(translator: Translator) -> Run:
    return translator, translator.force("one two three nine", "two one four", capture=Capture(residual=True))


def kinds(run: Run) -> list[AttentionKind]:
    return [*run[0].config.sites]


def mixed(array: np.ndarray, axis: int = -1) -> np.ndarray:
    return np.flip(array, axis).copy()


def few_and_all(audit: Callable[[int | None], AuditReport]) -> bool:
    """Whether the audit of all cells passes, and that of few cells agrees with it."""
    few, every = audit(2), audit(None)
    assert few.passed == every.passed
    return every.passed


def test_the_seam_says_how_many_cells_it_computed_again():
    values = np.arange(10.0)
    few = compared("squares", range(10), values, lambda at: [float(i) for i in at], 3, 1e-6, 4)
    assert few.passed
    assert few.claim == "from a {} trace, 4 of 10 numbers computed again"
    assert "4 of 10" in few.told[0]
    every = compared("squares", range(10), values, lambda at: [float(i) for i in at], 3, 1e-6, None)
    assert every.passed
    assert not every.claim
    turned = values[::-1]
    assert not compared("squares", range(10), turned, lambda at: [float(i) for i in at], 3, 1e-6, 2).passed
    assert not equal("squares", values, turned, 1e-6).passed
    assert not equal("squares", values, values[:-1], 1e-6).passed
    assert not equal("squares", values, np.where(values == 3, np.nan, values), 1e-6).passed


def test_the_largest_cells_and_others_are_chosen_by_the_seed_alone():
    seen: list[list[int]] = []

    def again(places: list[int]) -> list[float]:
        seen.append(places)
        return [float(place) for place in places]

    for seed in (1, 1, 2):
        compared("n", range(100), np.arange(100.0), again, seed, 1e-6, 6)
    assert seen[0] == seen[1] != seen[2]
    assert seen[0][:3] == [99, 98, 97]


def test_every_carried_cell_is_computed_again(run: Run):
    model, t = run
    for kind in kinds(run):
        found = carried(model.model, t, kind, 1, 1)
        for window in (None, Window(1, 3, 0, 2)):
            view = carried_map(t.map(kind, 1, 1, window), found)
            assert audit_carried(model.model, t, view).passed
            assert not audit_carried(model.model, t, replace(view, head=0)).passed
            for name in ("weights", "measured"):
                turned = replace(view, **{name: mixed(getattr(view, name))})
                assert not audit_carried(model.model, t, turned).passed


@pytest.mark.parametrize("change", ["weight²", "keys reversed", "b_V inside"])
def test_carried_by_another_formula_fails(run: Run, change: str):
    model, t = run
    for kind in kinds(run):
        weights, record = t.weights(kind, 1, 1), t.attention.layer(kind, 1)
        own = carried(model.model, t, kind, 1, 1)
        width = model.config.d_head
        w_o = model.model.attention(kind, 1).out_proj.weight[:, width : 2 * width].detach()
        norms = {
            "weight²": weights**2 * own.values,
            "keys reversed": mixed(own.norms),
            "b_V inside": weights * (record.value[1] @ w_o.T).norm(dim=-1).numpy(),
        }[change]
        view = carried_map(t.map(kind, 1, 1), replace(own, norms=norms.astype(np.float32)))
        assert not audit_carried(model.model, t, view).passed


@pytest.fixture(scope="module")
def effects(run: Run) -> dict[AttentionKind, list[np.ndarray]]:
    """By kind, the effects of the first two heads of layer 2, measured once."""
    model, t = run
    whole = {kind: t.attention.layer(kind, 1).window() for kind in kinds(run)}
    return {kind: [effect_in(model, t, kind, 1, head, whole[kind]) for head in (0, 1)] for kind in whole}


def test_every_effect_is_a_verified_run(run: Run, effects: dict[AttentionKind, list[np.ndarray]]):
    model, t = run
    for kind in kinds(run):
        view = effect_map(t.map(kind, 1, 1), effects[kind][1])
        report = audit_effect_map(model, t, view, count=None)  # by as many audited runs as there are cells
        assert report.passed
        known = int(view.mask.sum())
        assert report.claim.startswith(f"from {known} runs, ")
        one = audit_effect_map(model, t, view)
        assert one.passed
        assert one.claim == f"from {known} runs, 1 made again and verified"


@pytest.mark.parametrize("change", ["reversed", "of another head", "random", "pale"])
def test_another_map_of_effects_fails_by_a_single_run(
    run: Run, effects: dict[AttentionKind, list[np.ndarray]], change: str
):
    model, t = run
    for kind in kinds(run):
        strange, (other, own) = np.random.default_rng(3), effects[kind]
        seen = np.isfinite(own)
        drawn = {
            "reversed": np.where(seen, own[seen][::-1][np.cumsum(seen).reshape(seen.shape) - 1], np.nan),
            "of another head": other,
            "random": np.where(seen, strange.normal(size=own.shape), np.nan),
            "pale": own,
        }[change].astype(np.float32)
        changed = effect_map(t.map(kind, 1, 1), drawn)
        if change == "pale":
            changed = replace(changed, weights=changed.weights / 2)
        assert not audit_effect_map(model, t, changed).passed


@pytest.mark.parametrize("way", WAYS)
def test_effects_of_every_way_are_those_of_their_cells(run: Run, way: str):
    model, t = run
    for kind in kinds(run):
        found = effect(model, t, kind, 1, 1, way, step=STEP, rows=[1, 2])
        which = kind, 1, 1
        assert few_and_all(lambda n, f=found, w=which: audit_effects(model, t, w, f, way, STEP, count=n))
        turned = np.where(np.isfinite(found), np.roll(found, 1, 1), np.nan)
        assert not audit_effects(model, t, which, turned, way, STEP, count=3).passed


def shared(run: Run) -> Shares:
    return alti(run[0].model, run[1])


def test_every_share_of_a_block_is_computed_again(run: Run):
    model, t = run
    if len(kinds(run)) < 3:
        pytest.skip("no shares for a recurrent unit")
    found = shared(run)
    assert few_and_all(lambda n: audit_shares(model.model, t, found, n))


def squared(found: Shares) -> Shares:
    def by_squares(block: np.ndarray) -> np.ndarray:
        return block**2 / (block**2).sum(1, keepdims=True)

    blocks = {kind: tuple(map(by_squares, each)) for kind, each in found.blocks.items()}
    return remade(replace(found, blocks=blocks))


def remade(found: Shares) -> Shares:
    """The shares that follow from the blocks, whatever they are."""
    encoder = np.eye(found.source.shape[1])
    for block in found.blocks[AttentionKind.ENCODER]:
        encoder = block @ encoder
    steps = len(found.source)
    source, prefix = np.zeros_like(found.source), np.eye(steps)
    for own, across in zip(*(found.blocks[kind] for kind in ("decoder", "cross")), strict=True):
        source, prefix = own @ source, own @ prefix
        source, prefix = across[:, :1] * source + across[:, 1:] @ encoder, across[:, :1] * prefix
    return replace(found, source=source, prefix=prefix)


SHARES: dict[str, Callable[[Shares], Shares]] = {
    "squares": squared,
    "an encoder layer forgotten": lambda found: remade(
        replace(
            found, blocks={**found.blocks, AttentionKind.ENCODER: found.blocks[AttentionKind.ENCODER][1:]}
        )
    ),
    "encoder layers forgotten in the product": lambda found: replace(
        remade(
            replace(
                found, blocks={**found.blocks, AttentionKind.ENCODER: found.blocks[AttentionKind.ENCODER][:1]}
            )
        ),
        blocks=found.blocks,
    ),
    "source and prefix exchanged": lambda found: replace(
        found, source=found.prefix[:, : found.source.shape[1]], prefix=found.source
    ),
    "source reversed": lambda found: replace(found, source=mixed(found.source)),
    "steps rolled": lambda found: replace(found, source=np.roll(found.source, 1, 0)),
}


@pytest.mark.parametrize("change", SHARES)
def test_other_shares_fail(run: Run, change: str):
    model, t = run
    if len(kinds(run)) < 3:
        pytest.skip("no shares for a recurrent unit")
    assert not audit_shares(model.model, t, SHARES[change](shared(run))).passed


def test_every_part_of_a_logit_is_computed_again(run: Run):
    model, t = run
    for tokens in (TOKENS, (9, None)):
        found = attribution(model.model, t, STEP, *tokens)
        assert few_and_all(lambda n, f=found, k=tokens: audit_attribution(model.model, t, STEP, k, f, n))
        assert not audit_attribution(model.model, t, 1, tokens, found).passed


@pytest.mark.parametrize("change", ["heads", "keys", "layers", "writers"])
def test_an_attribution_in_another_order_fails(run: Run, change: str):
    model, t = run
    found = attribution(model.model, t, STEP, *TOKENS)
    if change == "writers":
        turned = replace(found, values=mixed(found.values))
    else:
        axis = ("layers", "heads", "keys").index(change)
        turned = replace(found, keys={kind: mixed(each, axis) for kind, each in found.keys.items()})
    assert not audit_attribution(model.model, t, STEP, TOKENS, turned).passed
    if change == "heads":  # with the bars of the heads in the same wrong order
        names = {writer: i for i, writer in enumerate(found.writers)}
        heads = model.config.n_heads
        order = [
            names[w._replace(head=heads - 1 - w.head) if w.head is not None else w] for w in found.writers
        ]
        both = replace(turned, values=found.values[order])
        assert not audit_attribution(model.model, t, STEP, TOKENS, both).passed


def test_sums_over_heads_at_other_keys_fail(run: Run):
    found = attribution(run[0].model, run[1], STEP, *TOKENS)
    drawn = found.keys[AttentionKind.CROSS].sum((0, 1))
    assert through_keys(found, AttentionKind.CROSS, drawn).passed
    assert not through_keys(found, AttentionKind.CROSS, mixed(drawn)).passed


@pytest.mark.parametrize("cell", [(2, 1), (0, 0), (3, 2)])
def test_every_pair_of_a_score_is_computed_again(run: Run, cell: tuple[int, int]):
    model, t = run
    for kind in kinds(run):
        which = kind, 1, 1
        found = score_parts(model.model, t, which, *cell)
        assert few_and_all(lambda n, w=which, f=found: audit_score(model.model, t, w, cell, f, n))
        queries, keys = found.values.shape
        transposed = found.values.T if queries == keys else mixed(found.values, 0)
        for values in (transposed, mixed(found.values), mixed(found.values, 0)):
            assert not audit_score(model.model, t, which, cell, replace(found, values=values)).passed


@pytest.mark.parametrize(("integrated", "held"), [(True, False), (False, False), (False, True)])
def test_every_gradient_is_a_finite_difference(run: Run, integrated: bool, held: bool, monkeypatch):
    model, t = run
    monkeypatch.setattr("lenses.measures.gradients.POINTS", 12)
    found = saliency(model, t, STEP, *TOKENS, integrated, held=held)
    assert few_and_all(lambda n: audit_saliency(model, t, STEP, TOKENS, found, n))
    for name in ("source", "prefix"):
        own = getattr(found, name)
        if np.ptp(own) > 1e-3:  # otherwise all are nothing, in any order
            assert not audit_saliency(model, t, STEP, TOKENS, replace(found, **{name: mixed(own)})).passed
    source, prefix, *along = (np.roll(each, 1, -1) for each in (found.source, found.prefix, *found.along))
    turned = replace(found, source=source, prefix=prefix, along=tuple(along))
    assert not audit_saliency(model, t, STEP, TOKENS, turned).passed


@pytest.mark.parametrize("dimension", [None, 3])
def test_every_cell_of_the_memory_is_computed_again(ssru: Run, dimension: int | None):
    model, t = ssru
    share = unit_memory(model.model, t, 1, dimension).share
    rows = len(share)

    def passed(drawn: np.ndarray, window: Window | None = None) -> bool:
        window = window or Window(0, rows, 0, rows)
        return audit_memory(model.model, t, 1, dimension, drawn, window).passed

    assert passed(share)
    assert passed(share[1:3, 1:3], Window(1, 3, 1, 3))
    assert not passed(share[1:3, 1:3], Window(2, 4, 2, 4))
    assert not passed(mixed(share))
    assert not passed(share.T)
    faster = share * np.tril(0.5 ** np.subtract.outer(np.arange(rows), np.arange(rows)).clip(0))
    assert not passed(faster)
    still = share / np.maximum(np.diag(share), 1e-9)[None]  # Π f alone, the share that is "still there"
    assert not passed(np.tril(still))


def test_shares_of_a_row_that_carried_nothing_are_compared(plain: Run):
    model, t = plain
    view = carried_map(t.map("cross", 1, 2), carried(model.model, t, "cross", 1, 2))
    assert view.weights == pytest.approx(shares(view.measured))
    assert audit_carried(model.model, t, view).passed
