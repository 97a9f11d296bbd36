"""A model whose every weight is the largest of float16: finite, but its numbers overflow."""

from pathlib import Path

import pytest
import torch
from app_pages import PAGES, run, said
from nightly import thinned
from random_models import random_config, random_language_model

from transformer.decoding import OverflowedError
from transformer.model import Transformer
from transformer.storage.directory import save_checkpoint
from transformer.text.tokenizer import Tokenizer
from transformer.translator import load_translator

LARGEST = float(torch.finfo(torch.float16).max)
NAME = "largest"
WITHOUT = "positions findings open_file heads language_model recurrent glossary lessons paper"
ELSEWHERE = {f"pages/{name}.py" for name in WITHOUT.split()}
"""Pages that open without a translation, or with models of another sort."""
VIEWS = (
    *((page, {}) for page in PAGES),
    ("app.py", {"decode": "beam-4"}),
    ("app.py", {"decode": "sample-1"}),
    ("app.py", {"target": "eins"}),
    ("pages/masks.py", {"view": "batch"}),
    ("pages/cross_attention.py", {"view": "alignment"}),
    ("pages/what_if.py", {"view": "compare", "against": "untrained-1"}),
)


@pytest.fixture
def largest(own_models: Path, tokenizer: Tokenizer) -> str:
    """A model of the visitor's own, wide enough that the square of a number of its stream is infinite."""
    sizes = {"d_model": 256, "d_ff": 1024, "n_encoder_layers": 1, "n_decoder_layers": 1}
    model = Transformer(random_config(vocab_size=tokenizer.vocab_size, **sizes))
    state = {name: torch.full_like(each, LARGEST) for name, each in model.state_dict().items()}
    save_checkpoint(own_models / NAME, model.config, state, tokenizer)
    return NAME


@pytest.mark.parametrize(("page", "view"), thinned(VIEWS, 3))
def test_every_page_says_in_one_sentence_that_the_numbers_overflow(
    largest: str, page: str, view: dict[str, str]
):
    at = run(page, model=largest, text="one two", **view)
    if page in ELSEWHERE:
        return
    assert [each.value.replace("\\", "") for each in at.error] == [
        "This model cannot be shown: its weights are so large that its numbers overflow, "
        "and no probability comes out."
    ]


@pytest.mark.parametrize("view", ["generation", "surprisal", "lengths"])
def test_a_language_model_says_in_one_sentence_that_its_numbers_overflow(
    own_models: Path, tokenizer: Tokenizer, view: str
):
    model = random_language_model(vocab_size=tokenizer.vocab_size, d_model=256, d_ff=1024)
    state = {name: torch.full_like(each, LARGEST) for name, each in model.state_dict().items()}
    save_checkpoint(own_models / NAME, model.config, state, tokenizer)
    at = run("pages/language_model.py", model=NAME, prompt="one two", view=view)
    assert "its numbers overflow" in said(at)


def test_the_survey_stops_with_the_sentence(largest: str):
    at = run("pages/heads.py", model=largest)
    at.button(key="heads.ask").click().run()
    assert not at.exception


def test_after_such_a_model_the_app_goes_on(largest: str):
    run(model=largest, text="one two")
    at = run(model="copy", text="one two stop")
    assert "overflow" not in said(at)


def test_python_is_told_too(largest: str, own_models: Path):
    translator = load_translator(own_models / largest)
    for write in (translator.translate, lambda text: translator.force(text, "eins")):
        with pytest.raises(OverflowedError, match="overflow"):
            write("one two")
