from __future__ import annotations

import itertools
import math

import pytest
import torch
from random_models import random_ids, random_model

from transformer.attention import padding_mask
from transformer.beam import beam_search
from transformer.decoding import BLOCK, DecodingState, Node, SearchRules, decode, finish, largest
from transformer.sampling import Sampling

EOS = 2


@pytest.fixture(scope="module", params=["pre", "post"])
def model(request):
    return random_model(norm=request.param, vocab_size=12, tied_embeddings=False, seed=3)


def sources(batch=4):
    ids = random_ids(batch, 7, vocab_size=12)
    for row in range(1, batch):
        ids[row, 7 - row :] = 0
    return ids


def unpadded(row):
    return row[row != 0][None]


def log_prob(model, src_ids, token_ids):
    distribution = DecodingState(model, src_ids).forced([token_ids])[0]
    return [float(distribution[place, token]) for place, token in enumerate(token_ids)]


def by_length(length, alpha):
    """What divides Σ log p in most libraries."""
    return length**alpha


def by_wu(length, alpha):
    """The same of Wu et al. 2016, equation 14."""
    return (5 + length) ** alpha / (5 + 1) ** alpha


DIVISORS = {0: by_length, 5: by_wu}


def every_output(model, src_ids, max_length, length_penalty, divisor):
    """Score of each possible output: all that end before the limit, and all that are cut by it."""
    vocabulary = range(model.config.vocab_size)
    scores = {}
    for length in range(1, max_length + 1):
        for tokens in itertools.product(vocabulary, repeat=length):
            ended = tokens[-1] == EOS or length == max_length
            if ended and EOS not in tokens[:-1]:
                scores[tokens] = sum(log_prob(model, src_ids, tokens)) / divisor(length, length_penalty)
    return scores


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("offset", DIVISORS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_beam_as_wide_as_everything_finds_the_best_of_all_outputs(length_penalty, offset, seed):
    model = random_model(vocab_size=4, seed=seed, tied_embeddings=False)
    src_ids = torch.tensor([[3, 1, 3, 2]])
    scores = every_output(model, src_ids, 3, length_penalty, DIVISORS[offset])
    best = max(scores, key=scores.get)
    rules = SearchRules(length_penalty=length_penalty, length_offset=offset)
    (found,) = finish(beam_search(DecodingState(model, src_ids), 3, 64, rules))
    assert found.token_ids == best
    assert found.score == pytest.approx(scores[best], abs=1e-5)


def reference_beam(model, src_ids, max_length, beam_size, length_penalty, divisor):
    """Beam search as in a textbook: uncached, one sentence, lists."""
    state, running, finished = DecodingState(model, src_ids), [((), 0.0)], []
    for length in range(1, max_length + 1):
        candidates = []
        for tokens, total in running:
            row = state.forced([[*tokens, 0]])[0, -1]
            candidates += [((*tokens, token), total + float(p)) for token, p in enumerate(row)]
        candidates = sorted(candidates, key=lambda candidate: -candidate[1])[: 2 * beam_size]
        ended = [length == max_length or tokens[-1] == EOS for tokens, _ in candidates]
        for (tokens, total), is_end in list(zip(candidates, ended, strict=True))[:beam_size]:
            if is_end:
                finished.append((total / divisor(length, length_penalty), tokens))
        running = [pair for pair, is_end in zip(candidates, ended, strict=True) if not is_end][:beam_size]
        finished = sorted(finished, reverse=True)[:beam_size]
        if not running or (
            len(finished) == beam_size and running[0][1] / divisor(length, length_penalty) <= finished[-1][0]
        ):
            break
    return finished[0]


@pytest.mark.parametrize("beam_size", [1, 2, 3, 5, 20])
@pytest.mark.parametrize(("length_penalty", "offset"), [(0.0, 0), (1.0, 0), (0.6, 5), (2.0, 5)])
def test_beam_search_equals_an_uncached_search_with_lists(model, beam_size, length_penalty, offset):
    rules = SearchRules(length_penalty=length_penalty, length_offset=offset)
    for row in sources(3):
        src_ids = unpadded(row)
        (found,) = finish(beam_search(DecodingState(model, src_ids), 8, beam_size, rules))
        score, tokens = reference_beam(model, src_ids, 8, beam_size, length_penalty, DIVISORS[offset])
        assert found.token_ids == tokens
        assert found.score == pytest.approx(score, abs=1e-5)


def test_a_beam_of_one_is_greedy_search(model):
    for row in sources():
        src_ids = unpadded(row)
        (greedy,) = finish(decode(DecodingState(model, src_ids), 10))
        (beam,) = finish(beam_search(DecodingState(model, src_ids), 10, 1))
        assert (beam.token_ids, beam.log_probs) == (greedy.token_ids, greedy.log_probs)


@pytest.mark.parametrize("beam_size", [0, 1, 2, 4])
def test_a_batch_decodes_as_its_sentences_do_alone(model, beam_size):
    def run(ids, limit):
        request = DecodingState(model, ids)
        return finish(beam_search(request, limit, beam_size) if beam_size else decode(request, limit))

    limits = [9, 3, 6, 1]
    for row, limit, together in zip(sources(), limits, run(sources(), limits), strict=True):
        (alone,) = run(unpadded(row), limit)
        assert together.token_ids == alone.token_ids
        assert together.log_probs == pytest.approx(alone.log_probs, abs=1e-5)
        assert together.score == pytest.approx(alone.score, abs=1e-5)


@pytest.mark.parametrize("beam_size", [0, 1, 4])
def test_log_probabilities_of_a_decode_are_those_of_a_replay(model, beam_size):
    src_ids = sources(1)
    request = DecodingState(model, src_ids)
    (found,) = finish(beam_search(request, 9, beam_size) if beam_size else decode(request, 9))
    assert found.log_probs == pytest.approx(log_prob(model, src_ids, found.token_ids), abs=1e-5)


def test_an_output_ends_with_the_end_token_or_at_the_limit(model):
    for beam_size in (1, 3):
        for limit in (1, 2, 5, 12):
            for hypothesis in finish(beam_search(DecodingState(model, sources()), limit, beam_size)):
                tokens = hypothesis.token_ids
                assert EOS not in tokens[:-1]
                assert tokens[-1] == EOS or len(tokens) == limit


def test_a_score_is_the_sum_over_the_length_to_the_penalty(model):
    (found,) = finish(beam_search(DecodingState(model, sources(1)), 7, 3, SearchRules(length_penalty=0.6)))
    assert found.score == pytest.approx(sum(found.log_probs) / len(found.token_ids) ** 0.6)


def test_the_parents_of_a_hypothesis_lead_back_through_the_steps(model):
    *steps, last = beam_search(DecodingState(model, sources(1)), 8, 4)
    nodes = last[0].path()
    for place, node in enumerate(nodes):
        if place:
            assert steps[place - 1][node.parent_row].token_id == nodes[place - 1].token_id
        if node.token_id in node.candidates.ids:
            at = node.candidates.ids.index(node.token_id)
            assert node.candidates.log_probs[at] == node.log_prob


def test_alternatives_are_the_best_of_the_distribution_in_order(model):
    src_ids = sources(1)
    steps = list(decode(DecodingState(model, src_ids), 4))
    (distribution,) = DecodingState(model, src_ids).forced([[node.token_id for (node,) in steps]])
    for (node,), row in zip(steps, distribution, strict=True):
        ids, values, _, _ = node.candidates
        assert len(ids) == 10
        assert ids[0] == node.token_id
        assert list(values) == sorted(values, reverse=True)
        assert values == pytest.approx([float(row[i]) for i in ids], abs=1e-5)
        assert min(values) >= max(float(p) for i, p in enumerate(row) if i not in ids) - 1e-5
        assert sum(row.exp()) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("beam_size", [0, -1, 65])
def test_a_beam_of_impossible_width_is_refused(model, beam_size):
    with pytest.raises(ValueError, match="beam_size"):
        finish(beam_search(DecodingState(model, sources(1)), 3, beam_size))


DISTRIBUTION = torch.tensor([[0.5, 0.25, 0.15, 0.1]]).log()


def test_a_temperature_of_one_keeps_the_model_s_distribution():
    torch.testing.assert_close(Sampling().filtered(DISTRIBUTION), DISTRIBUTION.exp())


def test_temperature_is_a_power_of_the_probabilities():
    powers = DISTRIBUTION.exp() ** (1 / 0.5)
    torch.testing.assert_close(Sampling(temperature=0.5).filtered(DISTRIBUTION), powers / powers.sum())


def test_the_lowest_temperature_is_greedy_and_the_highest_uniform():
    assert Sampling(temperature=0.001).filtered(DISTRIBUTION)[0, 0] == 1
    torch.testing.assert_close(Sampling(temperature=1e6).filtered(DISTRIBUTION), torch.full((1, 4), 0.25))


@pytest.mark.parametrize(("k", "kept"), [(1, 1), (2, 2), (4, 4), (99, 4)])
def test_top_k_keeps_the_k_most_probable(k, kept):
    probabilities = Sampling(top_k=k).filtered(DISTRIBUTION)
    expected = DISTRIBUTION.exp()[:, :kept]
    torch.testing.assert_close(probabilities[:, :kept], expected / expected.sum())
    assert probabilities[:, kept:].eq(0).all()


@pytest.mark.parametrize(("p", "kept"), [(0.01, 1), (0.49, 1), (0.6, 2), (0.85, 3), (1.0, 4)])
def test_top_p_keeps_the_fewest_tokens_that_reach_p(p, kept):
    shuffled = torch.tensor([2, 0, 3, 1])
    probabilities = Sampling(top_p=p).filtered(DISTRIBUTION[:, shuffled])[:, shuffled.argsort()]
    expected = DISTRIBUTION.exp()[:, :kept]
    torch.testing.assert_close(probabilities[:, :kept], expected / expected.sum())
    assert probabilities[:, kept:].eq(0).all()


def test_samples_follow_the_distribution():
    choose = Sampling(seed=1).chooser()
    drawn = torch.stack([choose(DISTRIBUTION.expand(500, -1)) for _ in range(8)]).flatten()
    shares = drawn.bincount(minlength=4) / len(drawn)
    torch.testing.assert_close(shares[None], DISTRIBUTION.exp(), atol=0.03, rtol=0)


def test_the_same_seed_draws_the_same_and_another_seed_something_else(model):
    def draw(seed):
        return finish(decode(DecodingState(model, sources()), 12, Sampling(seed=seed).chooser()))

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)


def test_sampling_leaves_the_global_random_state_alone(model):
    before = torch.get_rng_state()
    finish(decode(DecodingState(model, sources()), 5, Sampling(seed=1).chooser()))
    assert torch.equal(torch.get_rng_state(), before)


def test_sampling_with_top_k_of_one_is_greedy_search(model):
    chosen = finish(decode(DecodingState(model, sources()), 8, Sampling(top_k=1).chooser()))
    assert chosen == finish(decode(DecodingState(model, sources()), 8))


def test_a_sample_s_log_probability_is_the_model_s_and_not_the_filtered_one(model):
    src_ids = sources(1)
    chooser = Sampling(temperature=2.0, top_k=3, seed=4).chooser()
    (found,) = finish(decode(DecodingState(model, src_ids), 8, chooser))
    assert found.log_probs == pytest.approx(log_prob(model, src_ids, found.token_ids), abs=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 0.0},
        {"temperature": 1e-40},
        {"temperature": -1.0},
        {"temperature": math.nan},
        {"temperature": math.inf},
        {"top_k": 0},
        {"top_k": 1.5},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"top_p": math.nan},
        {"seed": -1},
        {"seed": 2**63},
    ],
)
def test_an_impossible_way_of_sampling_is_refused_by_name(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        Sampling(**options)


def test_a_request_leaves_the_shared_model_untouched(model):
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    places = {name: set(vars(module)) for name, module in model.named_modules()}
    finish(beam_search(DecodingState(model, sources()), 5, 3))
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert places == {name: set(vars(module)) for name, module in model.named_modules()}


def test_the_encoder_sees_the_padding_of_a_request(model):
    ids = sources()
    torch.testing.assert_close(DecodingState(model, ids).memory, model.encode(ids, padding_mask(ids, 0)))


@pytest.mark.parametrize("width", [1, 5, 3 * BLOCK + 7, 64 * BLOCK + 255, 65 * BLOCK, 80 * BLOCK + 1])
@pytest.mark.parametrize("count", [1, 2, 10, 70])
def test_the_largest_of_a_row_are_those_of_a_full_sort(width, count):
    rows = torch.rand(3, width, generator=torch.Generator().manual_seed(width)).log()
    rows[0, width // 3 :] = -torch.inf
    values, places = largest(rows, min(count, width))
    expected = rows.sort(dim=1, descending=True).values[:, :count]
    assert torch.equal(values, expected)
    assert torch.equal(rows.gather(1, places), expected)
    assert all(len(set(row)) == len(row) for row in places.tolist())


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_temperature_and_top_k_together_are_a_softmax_over_the_k_best(temperature):
    log_probs = torch.tensor([[0.4, 0.3, 0.2, 0.1]]).log()
    found = Sampling(temperature=temperature, top_k=2).filtered(log_probs)[0]
    powers = [0.4 ** (1 / temperature), 0.3 ** (1 / temperature)]
    assert found.tolist() == pytest.approx([*(power / sum(powers) for power in powers), 0, 0], abs=1e-6)


def test_the_ending_of_a_hypothesis_has_at_most_so_many_tokens():
    node = None
    for token in (1, 5, 6, 7):
        node = Node(token, before=node)
    assert node is not None
    assert [node.ending(count) for count in (0, 1, 2, 4, 9)] == [(), (7,), (6, 7), (1, 5, 6, 7), (1, 5, 6, 7)]


@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("limits", [3, [3, 6]])
def test_the_last_token_before_the_limit_is_the_forced_one(beam_size, limits):
    model = random_model(vocab_size=12, tied_embeddings=False, seed=3)
    rules = SearchRules(forced_end=EOS, forbidden=((EOS,),))
    request = DecodingState(model, sources(1 if limits == 3 else 2))
    for found, limit in zip(finish(beam_search(request, limits, beam_size, rules)), [3, 6], strict=False):
        assert len(found.token_ids) == limit
        assert found.token_ids[-1] == EOS
