"""One door for every model: each page and section shows a picture of it, or a sentence with a way
on, and nothing fails."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from app_pages import run, write_encoder
from decoder_models import write_decoder
from real_models import smollm2

from explorer.app.address import sitemap
from transformer.exports.array_run import run_of


def shares(*shape: int, causal: bool = False) -> np.ndarray:
    """Weights whose rows sum to 1."""
    weights = np.random.default_rng(0).random(shape)
    if causal:
        weights = np.tril(weights)
    return weights / weights.sum(-1, keepdims=True)


MODELS = {
    "en-pt": "The cat is old.",
    "en-de": "The cat is old.",
    "positions/rotary": "The cat is old.",
    "recurrent/additive": "The cat is old.",
    "language/lm-en": "Tom likes Mary. Mary likes",
    "encoder/filler": "The [MASK] is old.",
    "encoder/reader": "The cat is old.",
    "gpt2": "the old house",
    "llama": "the old house",
    "real.gguf": "The capital of France is",
}
"""A model of every kind by the name in its address, and a text for it; the last one is SmolLM2."""
FILES = {
    "imported: one.npy (000000)": run_of(shares(2, 3, 5, 5), ["[CLS]", "old", "house", "##s", "."]),
    "imported: three.npz (000000)": run_of(
        {
            "encoder_attentions": shares(2, 3, 4, 4),
            "decoder_attentions": shares(1, 2, 5, 5, causal=True),
            "cross_attentions": shares(1, 2, 5, 4),
        },
        {"encoder": ["▁the", "▁old", "▁house", "</s>"], "decoder": list("abcde")},
    ),
}
"""Open files of weights, of one kind and of three."""
MODELS |= dict.fromkeys(FILES, "The cat is old.")
MADE = {"gpt2": "GPT-2", "llama": "Llama, groups of three"}
"""Those that a test makes: random ones of other programs' formats."""
ADDRESSES = [
    (sitemap.script(name), view)
    for name, page in sitemap.PAGES.items()
    for view in (*page.sections, *page.ways) or (None,)
]


OF_A_RUN = {
    *("app.py", "pages/masks.py", "pages/inside_a_head.py", "pages/whole_model.py"),
    *("pages/what_if.py", "pages/beam_search.py", "pages/explanation.py", "pages/positions.py"),
    *("pages/encoder_self_attention.py", "pages/decoder_self_attention.py", "pages/recurrent.py"),
    "pages/cross_attention.py",
}
"""Pages that show a picture of every run that has what they show."""
OF_A_SOURCE = {
    *("pages/encoder_self_attention.py", "pages/masks.py/batch"),
    *("pages/cross_attention.py/attention", "pages/cross_attention.py/alignment"),
}
"""Where the attention to a source is shown, or that within it."""
OF_AN_OUTPUT = {
    *("pages/cross_attention.py/attention", "pages/cross_attention.py/alignment"),
    *("pages/decoder_self_attention.py/decoded", "pages/decoder_self_attention.py/trained"),
    *("pages/beam_search.py/beam", "pages/beam_search.py/sampling"),
    *("pages/training.py/shown", "pages/training.py/lengths", "pages/training.py/loss"),
}
"""Where an output is shown, or what reads it."""
LACKS = {
    "recurrent/additive": {
        *("pages/encoder_self_attention.py", "pages/inside_a_head.py", "pages/whole_model.py"),
        *("pages/explanation.py/why", "pages/explanation.py/shares", "pages/heads.py"),
        *("pages/decoder_self_attention.py/decoded", "pages/decoder_self_attention.py/trained"),
        *("pages/masks.py/alone", "pages/masks.py/batch"),
        *("pages/training.py/shown", "pages/training.py/lengths"),
    },
    "encoder/filler": OF_AN_OUTPUT,
    "encoder/reader": OF_AN_OUTPUT,
    "language/lm-en": OF_A_SOURCE,
    "gpt2": OF_A_SOURCE,
    "llama": OF_A_SOURCE,
    "real.gguf": OF_A_SOURCE,
    "imported: one.npy (000000)": {
        *("pages/decoder_self_attention.py/decoded", "pages/decoder_self_attention.py/trained"),
        *("pages/cross_attention.py/attention", "pages/cross_attention.py/alignment"),
        *("pages/beam_search.py/beam", "pages/beam_search.py/sampling"),
    },
    "imported: three.npz (000000)": {
        *("pages/beam_search.py/beam", "pages/beam_search.py/sampling"),
    },
}
"""By model, where it lacks the attention that is shown, and a sentence leads to what it has."""
ROWS = [
    pytest.param(name, address, marks=pytest.mark.nightly)
    if name == "real.gguf"
    else (name, address)
    for name, address in product(MODELS, ADDRESSES)
]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a published model."""
    folder = tmp_path_factory.mktemp("real")
    smollm2(folder).rename(folder / "real.gguf")
    return folder


@pytest.fixture(scope="module")
def models(app_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the models of others, beside the bundled ones."""
    folder = tmp_path_factory.mktemp("door")
    for name, kind in MADE.items():
        write_decoder(folder / name, kind)
    write_encoder(folder / "encoder" / "filler", fills=True)
    write_encoder(folder / "encoder" / "reader", fills=False)
    return folder


@pytest.mark.parametrize(
    ("name", "address"),
    ROWS,
    ids=lambda value: value if isinstance(value, str) else "/".join(filter(None, value)),
)
def test_every_page_shows_every_model_or_says_why_not(
    name: str,
    address: tuple[str, str | None],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = request.getfixturevalue("real" if name == "real.gguf" else "models")
    monkeypatch.setenv("TRANSFORMER_MODELS", str(folder))
    page, view = address
    files = {name: FILES[name]} if name in FILES else None
    at = run(page, files, model=name, text=MODELS[name], write="4", view=view)
    pictures = [*at.get("plotly_chart"), *at.get("bidi_component"), *at.get("dataframe")]
    assert not at.error
    assert at.session_state["state"].model == name
    assert pictures or at.info or at.button or at.file_uploader
    lacking = any("which" in info.value and "does not have" in info.value for info in at.info)
    where = "/".join(filter(None, address))
    assert lacking == (where in LACKS.get(name, ()))
    if page in OF_A_RUN and not lacking:
        assert pictures
