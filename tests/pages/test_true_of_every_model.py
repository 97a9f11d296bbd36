"""Sentences that state a fact about the model hold for the model that is shown, in lessons and on pages."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from app_pages import run
from nightly import thinned

from explorer.app.address.encodings import ENCODINGS
from transformer.config import AttentionKind, ModelConfig
from transformer.storage.description import read_config

ASSETS = Path(__file__).parents[2] / "assets"
MODELS = ("en-pt", "en-de", "positions/rotary", "positions/alibi")
LESSONS = sorted((ASSETS / "lessons").glob("*.json"))
PAGES = (
    ("whole_model", {"part": "source-embedding"}),
    ("whole_model", {"part": "target-embedding"}),
    ("decoder_self_attention", {}),
    ("masks", {"mask": "after"}),
    ("positions", {"view": "sentence"}),
    ("training", {"view": "history"}),
    ("what_if", {}),
)


def adds(config: ModelConfig) -> bool:
    return ENCODINGS[config.positions].acts == "embeddings"


def masks(config: ModelConfig) -> bool:
    return AttentionKind.DECODER in config.sites


FACTS: tuple[tuple[str, Callable[[ModelConfig], bool]], ...] = (
    (r"the encoding, and their sum", adds),
    (r"[Pp]ositions are (only )?added", adds),
    (r"encoding of its position is added", adds),
    (r"(its|from its) (causal )?mask alone", masks),
    (r"The decoder has a second hint at order: its causal mask", masks),
    (r"hatched (triangle|cells) (is the mask|are masked)", masks),
    (r"`<s>` first", lambda config: config.bos_id < config.n_target_pieces),
    (r"was trained without dropout", lambda config: False),  # a config without it does not tell
    (r"includes label smoothing and dropout(?! where)", lambda config: config.dropout > 0),
    (r"[Nn]othing leaks", lambda config: False),  # masks after the softmax leave later keys in the sum
)
CONDITIONS = r"In masked self-attention|A decoder with masked self-attention|If your model"
"""Openings of a sentence that says itself for which models it holds."""


def wrong(text: str, config: ModelConfig) -> list[str]:
    """The sentences of a text that state something that is not so in a model."""
    sentences = re.split(r"(?<=[.!?])\s+", text)
    whole = [
        sentence for i, sentence in enumerate(sentences)
        if not any(re.match(CONDITIONS, each) for each in sentences[max(0, i - 1) : i + 1])
    ]  # fmt: skip
    return [each for each in whole for fact, holds in FACTS if re.search(fact, each) and not holds(config)]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_is_true_of_the_model(name: str, lesson: Path) -> None:
    config, values = read_config(ASSETS / "models" / name), json.loads(lesson.read_text("utf-8"))
    if set(values["needs"]) <= set(map(str, config.sites)):
        assert not wrong(" ".join(step["text"] for step in values["steps"]), config)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("page", "params"), thinned(PAGES, 2), ids=lambda value: str(value))
def test_a_page_is_true_of_the_model(name: str, page: str, params: dict[str, str]) -> None:
    at = run(f"pages/{page}.py", model=name, text="The old house is not for sale.", **params)
    assert not at.exception
    said = [each.value for kind in ("markdown", "caption", "info") for each in getattr(at, kind)]
    assert said
    assert not wrong("\n".join(said).replace("\n", " "), read_config(ASSETS / "models" / name))
