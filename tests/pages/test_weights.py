"""Weights of one's own in the app: opened from a file, drawn without a model, exported, refused."""

import html
import io
import json

import numpy as np
import pytest
from app_pages import feeds, run, said, view, words
from living_pages import Opened
from safetensors.numpy import save
from streamlit.testing.v1 import AppTest

from explorer.app.address import State
from explorer.app.controls import plain
from explorer.app.maps.living import living_page
from explorer.app.maps.run_export import KEY, trace_file
from explorer.app.server.models import ArraysFile
from explorer.app.server.run_key import RunKey
from explorer.app.server.view import View
from transformer.exports.array_files import load_arrays
from transformer.exports.array_run import ArrayRun, run_of

PAGE = "pages/open_file.py"
WORDS = ["[CLS]", "old", "house", "##s", "[SEP]"]
BADGE = "○ your numbers, not checked"


def shares(*shape: int, causal: bool = False) -> np.ndarray:
    """Weights whose rows sum to 1."""
    weights = np.random.default_rng(2).random(shape).astype(np.float32)
    if causal:
        weights = np.tril(weights)
    return weights / weights.sum(-1, keepdims=True)


FULL = shares(2, 3, 5, 5)


def npz(**arrays: object) -> bytes:
    """An NPZ file."""
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def opened(content: bytes, name: str) -> AppTest:
    """The page after a visitor gave it a file."""
    at = run(PAGE)
    return at.file_uploader[0].set_value((name, content, "application/octet-stream")).run()


FILES = {
    "w.npz": npz(weights=FULL, tokens=WORDS),
    "w.json": json.dumps({"weights": FULL.tolist(), "tokens": WORDS}).encode(),
    "w.safetensors": save({"weights": FULL}, {"tokens": json.dumps(WORDS)}),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_weights_opens_and_its_first_page_has_strips_map_and_badge(name: str):
    at = opened(FILES[name], name)
    assert not at.error
    assert BADGE in words(at)
    assert plain("Encoder self-attention: 2 layers of 3 heads, 5 × 5 tokens") in words(at)
    shown = at.switch_page("app.py").run()
    assert not shown.exception
    assert not shown.error
    assert not shown.text_input
    sent = feeds(shown)
    assert view(shown)["cursor"] == "source"
    assert [chip["text"] for chip in sent["strips"]["source"]] == [
        "[CLS]",
        "old",
        "house",
        "‿s",
        "[SEP]",
    ]
    assert sent["encoder"]["badge"]["text"] == BADGE
    assert sent["encoder"]["caption"].endswith(f"· {name}")
    assert "next" not in sent


def test_what_is_odd_about_numbers_is_said_where_they_are_opened_and_where_they_are_drawn():
    weights = FULL.copy()
    weights[1, 0, 2] *= 2
    weights[0, 0, 0, 0] = np.nan
    at = opened(npz(weights=weights, tokens=WORDS), "w.npz")
    for text in (
        "1 of 30 rows do not sum to 1; the furthest sums to 2.",
        "1 cell is no number (NaN), drawn empty.",
    ):
        assert plain(text) in words(at)
        shown = at.switch_page("app.py").run()
        assert plain(text) in said(shown)
        at = shown.switch_page(PAGE).run()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (npz(weights=FULL, tokens=WORDS[1:]), "has 5, but 4 tokens were given"),
        (npz(other=np.ones(3)), "The file holds no weights"),
        (FILES["w.npz"][:99], "damaged"),
        (b"{", "damaged"),
    ],
)
def test_a_file_that_cannot_be_shown_is_refused_in_a_sentence(content: bytes, sentence: str):
    at = opened(content, "w.npz")
    assert not at.exception
    (error,) = at.error
    assert sentence in error.value


FILE = "imported: three.npz (000000)"


@pytest.mark.parametrize("cells", [np.s_[0, 0], np.s_[..., 2], np.s_[0], np.s_[:]])
def test_heads_and_layers_that_are_no_numbers_have_no_role_and_are_drawn(cells: tuple[object]):
    weights = FULL.copy()
    weights[cells] = np.nan
    files = {FILE: run_of({"encoder": FULL, "cross": weights})}
    for page in ("app.py", "pages/cross_attention.py"):
        at = run(page, files, model=FILE, sort="role")
        assert not at.error
        assert feeds(at)


def test_changes_are_refused_since_nothing_can_be_computed():
    at = run("app.py", {FILE: run_of(FULL)}, model=FILE, changes="ablate_encoder_1_1")
    (error,) = at.error
    assert plain("Weights in a file stay as they are") in error.value
    assert not feeds(at)


def test_what_is_said_of_two_texts_is_not_said_of_a_translation(three: ArrayRun):
    at = run("pages/cross_attention.py", {FILE: three}, model=FILE)
    assert "Here the queries come from one sequence" in words(at)
    assert "translation" not in words(at).partition("What to notice")[2].partition("\n")[0]
    assert "predicts" not in words(at)


@pytest.fixture(scope="module")
def three() -> ArrayRun:
    """A run of three kinds."""
    return run_of(
        {
            "encoder": shares(1, 2, 4, 4),
            "decoder": shares(1, 2, 3, 3, causal=True),
            "cross": shares(1, 2, 3, 4),
        },
        {"encoder": ["▁the", "▁old", "▁house", "</s>"], "decoder": ["<pad>", "▁das", "▁alte"]},
    )


@pytest.mark.parametrize(
    ("page", "values"),
    [
        ("app.py", {"words": "yes", "sources": "1-2"}),
        ("app.py", {"steps": "2-3", "together": "sum", "hide": "special"}),
        ("pages/cross_attention.py", {"show": "lines"}),
        ("pages/encoder_self_attention.py", {"show": "strongest"}),
        ("pages/decoder_self_attention.py", {"scale": "log", "order": "entropy"}),
    ],
)
def test_pictures_are_drawn_and_saved_in_every_way(
    three: ArrayRun, page: str, values: dict[str, str]
):
    at = run(page, {FILE: three}, model=FILE, **values)
    assert not at.error
    at.session_state[KEY] = True
    at = at.run()
    assert not at.exception
    assert not at.error
    told = [json.loads(each.proto.json) for each in at.get("bidi_component") if each.proto.json]
    captions = [
        note["text"]
        for data in told
        if isinstance(data, dict) and set(data) == {"figure", "name"}
        for note in json.loads(data["figure"])["layout"]["annotations"]
        if note.get("name") == "caption"
    ]
    assert captions
    assert all("your numbers" in text.replace("<br>", " ") for text in captions)
    badges = {data["badge"]["text"] for data in feeds(at).values() if data.get("badge")}
    assert badges == {BADGE}


def test_the_whole_run_is_saved_as_npz_and_as_a_living_page(
    three: ArrayRun, monkeypatch: pytest.MonkeyPatch
):
    again = load_arrays(trace_file(three, None))
    assert (again.source_tokens, again.target_tokens) == (three.source_tokens, three.target_tokens)
    for kind in three.config.sites:
        for head in range(2):
            assert np.array_equal(again.weights(kind, 0, head), three.weights(kind, 0, head))
    monkeypatch.setattr(ArraysFile, "translation", three)
    key = RunKey(ArraysFile(FILE), "", "greedy", None)
    heads = {"encoder": (0, 0), "decoder": (0, 1), "cross": (0, 0)}
    content = living_page(View(key, three, None), State(step=1, source=2, **heads)).decode()
    page = Opened(content)
    assert html.unescape(page.place) == "step=2&source=3&encoder=1.1&decoder=1.2&cross=1.1"
    assert page.run["spec"]["plots"] == ["cross", "encoder", "decoder"]
