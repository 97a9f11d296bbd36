"""Many visitors with one model at once: each has an own run, and nobody sees another's change."""

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from typing import Any

import numpy as np
from changes import EVERY, INSIDE, TEXT, TOKENS, changeable

from transformer import Sampling, Translation, Translator
from transformer.trace import AttentionTrace

THREADS, RUNS = 8, 120
TEXTS = (
    "one",
    "two three four",
    "five six eight nine ten",
    "one two three four five six eight nine",
)
PLAIN = [
    (text, options)
    for text in TEXTS
    for options in ({}, {"beam_size": 3}, {"sample": Sampling(seed=2)})
]
SEVERAL = [INSIDE["hide"], INSIDE["ablate by mean"], TOKENS["choose"]]
CHANGED = [
    (TEXT, {"interventions": changes, "max_length": 6, **way})
    for changes in ([], SEVERAL, SEVERAL[::-1], *([change] for change in EVERY.values()))
    for way in ({}, {"beam_size": 3})
]
"""One plain request, one for every sort of change, and two with several changes; greedy and in a
beam."""
Wish = tuple[str, dict[str, Any]]


def translate(translator: Translator, request: Wish) -> Translation:
    return translator.translate(request[0], **{"max_length": 10, **request[1]})


def check_same(run: Translation, expected: Translation) -> None:
    assert (run.source_tokens, run.target_tokens) == (
        expected.source_tokens,
        expected.target_tokens,
    )
    assert (run.log_probs, run.interventions) == (expected.log_probs, expected.interventions)
    for place in expected.attention.places:
        for read in (AttentionTrace.weights, lambda trace, *place: trace.layer(*place).output):
            np.testing.assert_array_equal(
                read(run.attention, *place), read(expected.attention, *place)
            )


def test_threads_with_different_texts_and_changes_on_one_translator_get_their_own(tokenizer):
    shared = changeable(tokenizer)
    requests = [*PLAIN, *CHANGED]
    expected = [translate(shared, request) for request in requests]
    jobs = [*islice(cycle(range(len(requests))), RUNS)]
    everyone = threading.Barrier(THREADS)

    def work(first: int) -> list[tuple[int, Translation]]:
        everyone.wait()
        return [(job, translate(shared, requests[job])) for job in jobs[first::THREADS]]

    with ThreadPoolExecutor(THREADS) as pool:
        results = [pair for pairs in pool.map(work, range(THREADS)) for pair in pairs]
    assert len(results) == RUNS
    for job, run in results:
        check_same(run, expected[job])
    assert all(run.attention.audit().passed for _, run in results[::10])


def test_streams_interleaved_in_one_thread_do_not_mix(translator):
    streams = {
        i: translator.stream(text, max_length=10, **options)
        for i, (text, options) in enumerate(PLAIN)
    }
    finished = {}
    next(translator.stream(TEXTS[0], max_length=10, beam_size=3))  # which nobody goes on with
    while streams:
        for i in list(streams):
            if isinstance(item := next(streams[i]), Translation):
                finished[i] = item
                del streams[i]
    for i, request in enumerate(PLAIN):
        check_same(finished[i], translate(translator, request))
        assert finished[i].attention.audit().passed
