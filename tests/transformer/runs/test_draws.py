from __future__ import annotations

from functools import partial

import pytest

from transformer import Sampling
from transformer import interventions as do
from transformer.sampling import draw

TEXT = "one two three"
SAMPLING = Sampling(temperature=1.3, top_k=4)


def drawn(translator, seeds=range(5), **more):
    return draw(partial(translator.translate, TEXT, **more), SAMPLING, seeds)


def test_a_draw_is_the_sample_of_its_seed(translator):
    for seed, found in zip(range(5), drawn(translator).translations, strict=True):
        own = translator.translate(TEXT, beam_size=1, sample=Sampling(1.3, 4, None, seed), capture=False)
        assert found.target_ids == own.target_ids
        assert found.log_probs == own.log_probs


def test_the_same_seeds_draw_the_same_and_others_something_else(translator):
    def outputs(seeds):
        return [each.target_ids for each in drawn(translator, seeds).translations]

    assert outputs(range(3)) == outputs(range(3)) != outputs(range(7, 10))


def test_every_draw_is_a_path_of_the_tree(translator):
    draws = drawn(translator)
    for sample, run in enumerate(draws.translations):
        path, at = [], draws.leaf(sample)
        while at is not None:
            path.insert(0, draws.nodes[at])
            at = draws.nodes[at].parent
        assert tuple(node.token_id for node in path) == run.target_ids
        assert tuple(node.token for node in path) == run.target_tokens
        assert [node.step for node in path] == list(range(len(path)))
        assert path[-1].total == pytest.approx(sum(run.log_probs))
        assert all(sample in node.samples for node in path)


def test_tokens_that_draws_share_are_one_node(translator):
    draws = drawn(translator)
    keys = [(node.parent, node.token_id) for node in draws.nodes]
    assert len(set(keys)) == len(keys)
    assert sum(len(node.samples) for node in draws.nodes) == sum(
        len(each.steps) for each in draws.translations
    )
    for node in draws.nodes:
        if node.parent is not None:
            assert set(node.samples) <= set(draws.nodes[node.parent].samples)


def test_the_best_draw_is_the_most_probable(translator):
    draws = drawn(translator)
    totals = [sum(each.log_probs) for each in draws.translations]
    assert totals[draws.best] == max(totals)


def test_draws_take_changes(translator):
    draws = drawn(translator, interventions=[do.prefix(["▁vier"])])
    assert {each.target_tokens[0] for each in draws.translations} == {"▁vier"}
