"""Many visitors who change one shared model at once: nobody sees another's change."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice

import numpy as np
import pytest
from changes import EVERY, INSIDE, TEXT, TOKENS, changeable

THREADS, RUNS = 8, 200
LENGTH = 6
WAYS = ({}, {"beam_size": 3})


@pytest.fixture(scope="module")
def shared(tokenizer):
    return changeable(tokenizer)


@pytest.fixture(scope="module")
def requests():
    """One plain request, one for every sort of change, and two with several changes; greedy and in a beam."""
    several = [INSIDE["hide"], INSIDE["ablate by mean"], TOKENS["choose"]]
    lists = [[], several, several[::-1], *([change] for change in EVERY.values())]
    return [(changes, way) for changes in lists for way in WAYS]


def translate(translator, request):
    changes, way = request
    return translator.translate(TEXT, max_length=LENGTH, interventions=changes, **way)


def same(found, expected):
    assert found.interventions == expected.interventions
    assert found.target_tokens == expected.target_tokens
    assert found.log_probs == expected.log_probs
    for kind, layer in expected.attention.places:
        np.testing.assert_array_equal(
            found.attention.weights(kind, layer), expected.attention.weights(kind, layer)
        )
        output = expected.attention.layer(kind, layer).output
        np.testing.assert_array_equal(found.attention.layer(kind, layer).output, output)


def test_eight_threads_with_different_changes_on_one_translator_each_get_their_own(shared, requests):
    alone = [translate(shared, request) for request in requests]
    jobs = list(islice(cycle(range(len(requests))), RUNS))
    everyone = threading.Barrier(THREADS)

    def work(first):
        everyone.wait()
        return [(job, translate(shared, requests[job])) for job in jobs[first::THREADS]]

    with ThreadPoolExecutor(THREADS) as pool:
        results = [pair for found in pool.map(work, range(THREADS)) for pair in found]
    assert len(results) == RUNS
    for job, found in results:
        same(found, alone[job])
    assert all(found.attention.audit().passed for _, found in results[::10])
