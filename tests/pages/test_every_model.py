"""Every section with every kind of model, also a damaged one: it is shown, or a sentence says why
not."""

import json
import re
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from app_pages import PAGES, run, said, words
from bart_models import write_bart, write_mbart
from m2m_models import write_m2m
from marian_models import write_marian
from nightly import thinned
from random_models import random_config, random_language_model, random_recurrent, randomised
from t5_models import write_t5

from explorer.app.address import sitemap
from explorer.app.address.encodings import ENCODINGS
from explorer.app.controls import plain
from explorer.app.server import models, pairs, surveys
from explorer.lenses.heads.survey import fingerprint, surveyed
from explorer.lenses.words import languages
from transformer.config import AttentionKind, ModelConfig
from transformer.decoding import OverflowedError
from transformer.devices import AUTO, named
from transformer.model import Transformer
from transformer.storage.description import model_digests, read_config, read_header
from transformer.storage.directory import save_checkpoint
from transformer.storage.files import CheckpointError
from transformer.storage.packed import write_packed
from transformer.text.tokenizer import Tokenizer
from transformer.translator import load_translator

SECTIONS = {
    sitemap.script(name): (*page.sections, *page.ways) for name, page in sitemap.PAGES.items()
}
ADDRESSES = [(page, view) for page in PAGES for view in SECTIONS[page] or (None,)]


def write_damaged(folder: Path, tokenizer: Tokenizer) -> None:
    shutil.copytree(folder / "copy", folder / "damaged")
    (folder / "damaged" / "model.safetensors").write_bytes(b"x" * 100)


def write_aliases(folder: Path, tokenizer: Tokenizer) -> None:
    """A card whose licence would grow to gigabytes."""
    shutil.copytree(folder / "copy", folder / "aliases")
    lines = [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(2, 9)]
    card = "\n".join(["---", "a1: &a1 x", *lines, "license: *a8", "good_at: *a8", "---", ""])
    (folder / "aliases" / "README.md").write_text(card)


def write_zeros(folder: Path, tokenizer: Tokenizer) -> None:
    """A model of the shape of en-pt: post-norm, a start of zeros, no `<s>`."""
    ids = {"pad_id": tokenizer.vocab_size, "bos_id": tokenizer.vocab_size, "eos_id": 0, "unk_id": 1}
    config = random_config(vocab_size=tokenizer.vocab_size, norm="post", **ids)
    save_checkpoint(
        folder / "zeros", config, randomised(Transformer(config)).state_dict(), tokenizer
    )


def write_additive(folder: Path, tokenizer: Tokenizer) -> None:
    model = random_recurrent("additive", vocab_size=tokenizer.vocab_size)
    save_checkpoint(folder / "additive", model.config, model.state_dict(), tokenizer)


MODELS: dict[str, Callable[[Path, Tokenizer], object] | None] = {
    "language/lm-en": None,
    "encoder/masked-en": None,
    "random": None,
    "positions/t5": None,
    "recurrent/local": None,
    "zeros": write_zeros,
    "additive": write_additive,
    "opus": lambda folder, _: write_marian(folder / "opus"),
    "t5": lambda folder, _: write_t5(folder / "t5", feed_forward="gated-gelu", tied=False),
    "nllb": lambda folder, _: write_m2m(folder / "nllb", kind="nllb"),
    "mbart": lambda folder, _: write_mbart(folder / "mbart"),
    "bart": lambda folder, _: write_bart(folder / "bart"),
    "damaged": write_damaged,
    "aliases": write_aliases,
    "nothing": None,
}
"""Models by what an address calls them; how to make those that are not bundled."""
WHOLE = ("random", "zeros", "additive")
"""Models of which no page may say that something is wrong."""
NO_NAMES = [
    (name, address) for name in ("../copy", "imported: run (abcdef)") for address in ADDRESSES[::9]
]
"""What names no model: like ``nothing``, but of another form."""


@pytest.fixture(scope="module")
def every_kind(
    app_models: Path, tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A folder with a model of every kind, so that each is loaded once."""
    folder = tmp_path_factory.mktemp("every-kind")
    for path in app_models.iterdir():
        (folder / path.name).symlink_to(path.resolve())
    for make in filter(None, MODELS.values()):
        make(folder, tokenizer)
    return folder


@pytest.mark.parametrize(("name", "address"), thinned([*product(MODELS, ADDRESSES), *NO_NAMES], 9))
def test_a_section_shows_a_picture_of_any_model_or_says_why_not(
    address: tuple[str, str | None], name: str, every_kind: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRANSFORMER_MODELS", str(every_kind))
    page, view = address
    at = run(page, model=name, text="two.", **({} if view is None else {"view": view}))
    assert at.session_state["state"].model != "../copy"
    shown = [*at.get("plotly_chart"), *at.get("bidi_component"), *at.get("dataframe"), *at.error]
    assert shown or at.info or at.button or at.file_uploader
    assert name not in WHOLE or not at.error
    assert name not in ("damaged", "nothing") or len(at.error) <= 1


def test_a_card_that_would_grow_without_end_is_not_read(
    every_kind: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TRANSFORMER_MODELS", str(every_kind))
    at = run(model="aliases", text="He is old.")
    where = "the CPU" if named(AUTO) != "cuda" else "a GPU, if there is one"
    assert any("uses YAML aliases, so it is not read" in each.value for each in at.caption)
    assert at.get("bidi_component")
    assert plain(f"aliases runs on {where}.") in [each.proto.help for each in at.caption]


# --- numbers that overflow -----------------------------------------------------------------------

LARGEST = float(torch.finfo(torch.float16).max)
WITHOUT = "positions findings open_file heads recurrent glossary lessons paper"
VIEWS = (
    *((page, {}) for page in PAGES if Path(page).stem not in WITHOUT.split()),
    ("app.py", {"decode": "beam-4"}),
    ("app.py", {"decode": "sample-1"}),
    ("app.py", {"target": "eins"}),
    ("pages/masks.py", {"view": "batch"}),
    ("pages/cross_attention.py", {"view": "alignment"}),
    ("pages/what_if.py", {"view": "compare", "against": "untrained-1"}),
)


@pytest.fixture
def largest(own_models: Path, tokenizer: Tokenizer) -> str:
    """A model with the largest weights, so wide that the square of a number of its stream is
    infinite."""
    sizes = {"d_model": 256, "d_ff": 1024, "n_encoder_layers": 1, "n_decoder_layers": 1}
    return _filled(
        own_models, tokenizer, Transformer(random_config(vocab_size=tokenizer.vocab_size, **sizes))
    )


def _filled(folder: Path, tokenizer: Tokenizer, model: torch.nn.Module) -> str:
    state = {name: torch.full_like(each, LARGEST) for name, each in model.state_dict().items()}
    save_checkpoint(folder / "largest", model.config, state, tokenizer)  # type: ignore[arg-type]
    return "largest"


@pytest.mark.parametrize(("page", "view"), thinned(VIEWS, 3))
def test_every_page_says_in_one_sentence_that_the_numbers_overflow(
    largest: str, page: str, view: dict[str, str]
):
    at = run(page, model=largest, text="one two", **view)
    assert [each.value.replace("\\", "") for each in at.error] == [
        "This model cannot be shown: its weights are so large that its numbers overflow, "
        "and no probability comes out."
    ]


@pytest.mark.parametrize(("page", "view"), thinned(VIEWS, 3))
def test_a_language_model_says_in_one_sentence_that_its_numbers_overflow(
    own_models: Path, tokenizer: Tokenizer, page: str, view: dict[str, str]
):
    model = random_language_model(vocab_size=tokenizer.vocab_size, d_model=256, d_ff=1024)
    name = _filled(own_models, tokenizer, model)
    told = said(run(page, model=name, text="one two", **view))
    assert "its numbers overflow" in told or "its only attention is" in told


def test_the_survey_stops_with_the_sentence_python_is_told_and_the_app_goes_on(
    largest: str, own_models: Path
):
    at = run("pages/heads.py", model=largest)
    assert not at.button(key="heads.ask").click().run().exception
    translator = load_translator(own_models / largest)
    for write in (translator.translate, lambda text: translator.force(text, "eins")):
        with pytest.raises(OverflowedError, match="overflow"):
            write("one two")
    assert "overflow" not in said(run(model="copy", text="one two stop"))


# --- damaged files beside a model ----------------------------------------------------------------

EXAMPLE: dict[str, Any] = {
    "label": "a",
    "text": "one two",
    "other": "one three",
    "gloss": {"eins": "one"},
}
EXAMPLE["claim"] = {"text": "It shows.", "target": "eins", "source": "one", "layer": 0, "head": 0}
EXAMPLE["claim"] |= {"least": 0.5, "weight": 0.9}
WRONG = (
    {"layer": -1},
    {"head": True},
    {"layer": 0.5},
    {"least": "x"},
    {"weight": None},
    {"target": 3},
)
"""Claims that cannot be."""
EXAMPLES = (
    '{"examples": [{"label": 1' + "0" * 400 + "}]}",
    '{"examples": [{"label": "\\ud800"}]}',
    *("[" * 100_000, "{", "[]", "{}", "null"),
    *('{"examples": null}', '{"examples": []}', '{"examples": [{"label": 1}]}'),
    *(json.dumps({"examples": [EXAMPLE | {"claim": EXAMPLE["claim"] | wrong}]}) for wrong in WRONG),
)
CARDS = (
    'language: ["\\ud800", de]',
    'license: "\\UFFFFFFFF"',
    "[" * 30_000,
    "version https://git-lfs.github.com",
)


@pytest.fixture
def beside(own_models: Path) -> Path:
    """The directory of the model `beside`, whose files a test may damage."""
    shutil.copytree(own_models / "copy", own_models / "beside")
    return own_models / "beside"


@pytest.mark.parametrize("content", EXAMPLES)
def test_damaged_examples_are_named_and_the_usual_ones_offered(beside: Path, content: str):
    (beside / "examples.json").write_text(content)
    told = words(run("app.py", model="beside")).replace("\\", "")
    assert "examples.json beside the model is damaged; remove it, or write it again." in told


def test_examples_of_heads_that_the_model_lacks_are_named(beside: Path):
    for claim in ({"layer": 99}, {"head": 99}):
        far = {"examples": [EXAMPLE | {"claim": EXAMPLE["claim"] | claim}]}
        (beside / "examples.json").write_text(json.dumps(far))
        told = words(run("app.py", model="beside")).replace("\\", "")
        assert "examples.json beside the model names heads that the model does not have." in told


@pytest.mark.parametrize("weights", ["gone", "shards", "bin"])
def test_weights_in_other_files_or_gone_end_no_page(beside: Path, weights: str):
    """What a model is good at and its licence stand under the list, with the size of what there
    is."""
    (beside / "README.md").write_text("---\nlicense: mit\ngood_at: short texts\n---\n")
    names = {
        "gone": [],
        "shards": ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"],
    }
    for name in names.get(weights, ["pytorch_model.bin"]):
        shutil.copyfile(beside / "model.safetensors", beside / name)
    size = (beside / "model.safetensors").stat().st_size
    (beside / "model.safetensors").unlink()
    at = run("app.py", model="beside")
    assert not at.exception
    assert models.available()["beside"].nbytes == size * {"gone": 0, "shards": 2, "bin": 1}[weights]
    assert any("short texts" in caption.value for caption in at.caption)


@pytest.mark.parametrize("header", CARDS)
def test_a_damaged_card_ends_no_page_and_is_named(beside: Path, header: str):
    (beside / "README.md").write_text(f"---\n{header}\n---\n")
    for page in ("app.py", "pages/heads.py", "pages/training.py", "pages/whole_model.py"):
        run(page, model="beside")
    assert read_header(beside).trouble.endswith(("valid YAML.", "valid YAML with named values."))


@pytest.mark.parametrize(
    "kinds", [None, [], {"encoder": None}, {"encoder": {"means": ["entropy"]}}]
)
def test_a_damaged_survey_ends_no_page_and_is_named_where_it_is_shown(beside: Path, kinds: object):
    data = languages.sample_of(beside)
    read = fingerprint(surveys.sample(data.data), pairs.linked_in(data.alignments))
    head = {"digests": model_digests(beside), "sample": read, "kinds": kinds}
    write_packed(beside / "survey.npz", head, {})
    for page in ("app.py", "pages/what_if.py"):
        run(page, model="beside")
    told = [each.value.replace("\\", "") for each in run("pages/heads.py", model="beside").error]
    assert [
        each for each in told if "survey.npz is damaged" in each and str(beside.parent) not in each
    ]
    with pytest.raises(CheckpointError, match=r"survey\.npz is damaged"):
        surveyed(beside)


# --- sentences that state a fact about the model -------------------------------------------------

ASSETS = Path(__file__).parents[2] / "assets"
STATED = ("en-pt", "en-de", "positions/rotary", "positions/alibi")
LESSONS = sorted((ASSETS / "lessons").glob("*.json"))
STATING = (
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
    (r"d_k = d_\{model\} / h", lambda config: config.d_head * config.n_heads == config.d_model),
    (r"picture is true", lambda config: False),  # a badge has limits
    (
        r"[Nn]othing leaks",
        lambda config: False,
    ),  # masks after the softmax leave later keys in the sum
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
    return [
        each
        for each in whole
        for fact, holds in FACTS
        if re.search(fact, each) and not holds(config)
    ]


@pytest.mark.parametrize("name", STATED)
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_is_true_of_the_model(name: str, lesson: Path) -> None:
    config = read_config(ASSETS / "models" / name)
    values = json.loads(lesson.read_text("utf-8"))
    if set(values["needs"]) <= set(map(str, config.sites)):
        assert not wrong(" ".join(step["text"] for step in values["steps"]), config)


@pytest.mark.parametrize("name", STATED)
@pytest.mark.parametrize(("page", "params"), thinned(STATING, 2), ids=str)
def test_a_page_is_true_of_the_model(name: str, page: str, params: dict[str, str]) -> None:
    at = run(f"pages/{page}.py", model=name, text="The old house is not for sale.", **params)
    told = [each.value for each in (*at.markdown, *at.caption, *at.info)]
    assert not wrong("\n".join(told).replace("\n", " "), read_config(ASSETS / "models" / name))
