from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from closed_form import CASES

from transformer import AttentionKind, Sampling, Translation, load_translator

TEXTS = ("one", "two three four", "five six eight nine ten", "one two three four five six eight nine")
WAYS = ({}, {"beam_size": 3}, {"sample": Sampling(seed=2)})
REQUESTS = list(itertools.product(TEXTS, WAYS))
KINDS = list(AttentionKind)


def translate(translator, request):
    text, options = request
    return translator.translate(text, max_length=10, **options)


@pytest.fixture(scope="module")
def alone(translator):
    """What each request gives when nothing else runs."""
    return [translate(translator, request) for request in REQUESTS]


def assert_same(found, expected):
    assert found.source_tokens == expected.source_tokens
    assert found.target_tokens == expected.target_tokens
    assert found.log_probs == expected.log_probs
    for kind, layer in expected.attention.places:
        np.testing.assert_array_equal(
            found.attention.weights(kind, layer), expected.attention.weights(kind, layer)
        )
    assert found.attention.audit().passed


def test_many_threads_on_one_translator_each_get_their_own_attention(translator, alone):
    everyone = threading.Barrier(len(REQUESTS))

    def run(request):
        everyone.wait()
        return [translate(translator, request) for _ in range(3)]

    with ThreadPoolExecutor(len(REQUESTS)) as pool:
        for results, expected in zip(pool.map(run, REQUESTS), alone, strict=True):
            for found in results:
                assert_same(found, expected)


def test_streams_interleaved_in_one_thread_do_not_mix(translator, alone):
    streams = {
        place: translator.stream(text, max_length=10, **options)
        for place, (text, options) in enumerate(REQUESTS)
    }
    finished = {}
    while streams:
        for place in list(streams):
            item = next(streams[place])
            if isinstance(item, Translation):
                finished[place] = item
                del streams[place]
    for place, expected in enumerate(alone):
        assert_same(finished[place], expected)


def test_a_stream_that_is_handed_from_thread_to_thread_stays_right(translator, alone):
    text, options = REQUESTS[3]
    stream = translator.stream(text, max_length=10, **options)
    with ThreadPoolExecutor(4) as pool:
        last = None
        while not isinstance(last, Translation):
            last = pool.submit(next, stream).result()
    assert_same(last, alone[3])


def test_an_abandoned_stream_disturbs_no_one(translator, alone):
    for _ in range(3):
        next(translator.stream(TEXTS[0], max_length=10, beam_size=3))
    assert_same(translate(translator, REQUESTS[0]), alone[0])


def test_one_thread_s_hook_does_not_reach_another(translator, alone):
    started, done = threading.Event(), threading.Event()

    def wait_inside(values, first):
        started.set()
        assert done.wait(30)
        return values * 0 + 1 / values.shape[-1]

    with ThreadPoolExecutor(1) as pool:
        hooks = {"decoder.0.cross_attention.weights": wait_inside}
        hooked = pool.submit(translator.translate, TEXTS[1], max_length=2, hooks=hooks)
        assert started.wait(30)
        assert_same(translate(translator, REQUESTS[0]), alone[0])
        done.set()
        np.testing.assert_allclose(hooked.result().attention.weights("cross", 0), 1 / 4)


def test_reading_one_translation_from_many_threads_gives_the_same_views(translator):
    translation = translator.translate(TEXTS[3], max_length=10)
    places = [(kind, layer, head) for kind in KINDS for layer in range(2) for head in range(4)] * 3
    with ThreadPoolExecutor(8) as pool:
        views = list(pool.map(lambda place: translation.head(*place), places))
    for (kind, layer, head), view in zip(places, views, strict=True):
        assert view.audit.passed
        assert (view.kind, view.layer, view.head) == (kind, layer, head)
        np.testing.assert_array_equal(view.weights, translation.attention.weights(kind, layer, head))


def test_known_cells_stay_known_in_every_thread(closed_form_models):
    translators = {name: load_translator(path) for name, path in closed_form_models.items()}
    jobs = list(CASES) * 8

    def run(name):
        return translators[name].translate(CASES[name].sentence)

    with ThreadPoolExecutor(12) as pool:
        for name, translation in zip(jobs, pool.map(run, jobs), strict=True):
            for kind, head in itertools.product(KINDS, (0, 1)):
                found = translation.attention.weights(kind, 0, head).argmax(-1)
                assert tuple(found) == CASES[name].keys(kind, head)
