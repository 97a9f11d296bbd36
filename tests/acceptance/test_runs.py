"""Runs: as they were at commit 97108b2d, by beam and by chance, audited, saved, and forged."""

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

from tests.acceptance import surface

GOLDEN = Path(__file__).with_name("golden.jsonl").read_text(encoding="utf-8").splitlines()
TEXT = "The woman who wrote the book is my sister."
LETTERS = {"a b c": "c b a", "d d a": "a d d", "l k j i h": "h i j k l", "f a": "a f"}
STORED = [-3.4505e-04, -8.3293e-04, -2.8618e-04, -3.8623e-05]


@pytest.mark.parametrize("model", ["en-pt", "en-de"])
def test_forty_sentences_are_translated_as_they_were_and_every_audit_is_green(model: str) -> None:
    lines = [line for line in map(json.loads, GOLDEN) if line["model"] == model]
    assert Counter(line["beam"] for line in lines) == {1: 40, 4: 12}
    for line in lines:
        run = surface.translator(model).translate(line["text"], beam_size=line["beam"])
        assert (run.text, list(run.target_tokens)) == (line["translation"], line["tokens"])
        np.testing.assert_allclose(run.log_probs, line["log_probs"], atol=5e-4)
        for kind, (layer, head, row, weights) in line.get("rows", {}).items():
            np.testing.assert_allclose(
                run.attention.weights(kind, layer)[head, row], weights, atol=5e-4
            )
        assert (run.audit().passed, run.attention.audit().passed) == (True, True)


def test_a_small_model_saved_then_opens_with_the_same_numbers() -> None:
    runs = {text: surface.translator(surface.REVERSE).translate(text) for text in LETTERS}
    assert {text: run.text for text, run in runs.items()} == LETTERS
    np.testing.assert_allclose(runs["a b c"].log_probs, STORED, atol=5e-7)


@pytest.mark.parametrize("model", [*surface.TRANSLATORS, surface.LANGUAGE])
def test_what_lies_beside_a_model_belongs_to_its_weights(model: str) -> None:
    path = surface.MODELS / model
    digest = hashlib.sha256((path / "model.safetensors").read_bytes()).hexdigest()
    beside = [path / name for name in surface.COMPANIONS if (path / name).exists()]
    assert len(beside) == len(surface.COMPANIONS) or model not in ("en-de", "en-pt")
    for companion in beside:
        words = companion.read_bytes()
        if companion.suffix == ".safetensors":
            words = str(safe_open(companion, "np").metadata()).encode()
        if companion.suffix == ".npz":
            words = b" ".join(
                array.tobytes() for array in np.load(companion).values() if array.dtype == np.uint8
            )
        assert digest[:16].encode() in words, companion


def test_tokens_are_drawn_by_seed_from_those_left_and_as_often_as_temperature_says() -> None:
    one = surface.translator("en-de")
    drawn = Counter()

    def draw(**options: Any) -> Any:
        return one.translate(TEXT, sample=surface.Sampling(**options))

    draws = [draw(temperature=2.0, seed=seed).target_tokens for seed in (3, 3, 4)]
    assert draws[0] == draws[1] != draws[2]
    for number in range(5):
        for step in draw(temperature=3.0, top_k=3, seed=number).steps:
            assert step.token in [alternative.token for alternative in step.alternatives[:3]]
        for step in draw(top_p=0.6, seed=number).steps:
            assert (
                sum(np.exp(a.log_prob) for a in step.alternatives if a.log_prob > step.log_prob)
                < 0.6
            )
    p = np.exp(surface.distributions(one.force(TEXT, "Die"))()[0].numpy() / 2.5)
    for number in range(400):
        sample = surface.Sampling(temperature=2.5, seed=number)
        drawn[one.translate(TEXT, max_length=1, capture=False, sample=sample).target_ids[0]] += 1
    for token in p.argsort()[-3:]:
        assert abs(drawn[token] / 400 - p[token] / p.sum()) < 4 * (p[token] / p.sum() / 400) ** 0.5


def cell(x: np.ndarray) -> np.ndarray:
    """One number, a hundredth of the largest away."""
    x[(-1,) * x.ndim] += 0.01 * np.abs(x).max() + 0.01
    return x


def replayed(x: np.ndarray) -> np.ndarray:
    return np.frombuffer(
        json.dumps(json.loads(x.tobytes()) | {surface.REPLAY: 0.5}).encode(), np.uint8
    )


FORGERIES = [
    (surface.QUERY, lambda x: x * 1.1, surface.OUTPUTS),
    (surface.KEY, lambda x: x[:, ::-1], surface.OUTPUTS),
    (surface.LATER, lambda x: x[::-1], surface.OUTPUTS),
    (surface.VALUE, cell, surface.OUTPUTS),
    (surface.SENT, cell, surface.OUTPUTS),
    (surface.ASKED, surface.KEY, surface.OUTPUTS),
    (surface.TOKEN, cell, surface.EMBEDDINGS),
    (surface.INPUT, cell, surface.EMBEDDINGS),
    (surface.PLACE, lambda x: x[::-1], surface.POSITIONS),
    (surface.META, replayed, surface.RECORDED),
]
"""An array of a file, what is made of it or stands in its place, and the check that must fail."""


def test_a_saved_run_opens_as_it_was_and_a_forged_one_fails_its_check(tmp_path: Path) -> None:
    run = surface.translator("en-de").translate(TEXT)
    surface.save_trace(run, tmp_path / "run.npz")
    opened = surface.load_trace(tmp_path / "run.npz")
    assert (opened.text, opened.target_tokens, opened.steps) == (
        run.text,
        run.target_tokens,
        run.steps,
    )
    assert opened.attention.audit().passed
    for kind, layer in ((kind, layer) for kind in surface.KINDS for layer in range(3)):
        np.testing.assert_array_equal(
            *(each.attention.weights(kind, layer) for each in (run, opened))
        )
    for name, change, check in FORGERIES:
        arrays = dict(np.load(tmp_path / "run.npz"))
        arrays[name] = arrays[change] if isinstance(change, str) else change(arrays[name])
        np.savez(tmp_path / "forged.npz", **arrays)
        checks = surface.load_trace(tmp_path / "forged.npz").attention.audit().checks
        assert check in [each.name for each in checks if not each.passed], name
