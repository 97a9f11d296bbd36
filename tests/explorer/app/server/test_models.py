"""Which models and documents there are; what a model opens with: its examples, its first run, its
words."""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from app_pages import write_language_model
from closed_form import CASES
from decoder_models import write_decoder, write_gguf
from sources import named

from explorer.app.address.state import State
from explorer.app.server import examples, memory, models, studies, surveys
from explorer.app.server import source as sources
from explorer.app.server.cells import written
from explorer.app.server.examples import text_on
from explorer.app.server.hub_models import fitting
from explorer.app.server.models import ModelHandle
from explorer.app.server.run_key import RunKey
from explorer.app.server.runs import LONGEST, shipped_run, translate
from explorer.app.server.source import Source
from explorer.app.server.stores import remembered
from explorer.app.server.view import View
from explorer.lenses.words.alignment import Aligner
from explorer.lenses.words.groups import find_word
from explorer.linked.view.strips import EXAMPLE, Claim, Example, claim_step
from transformer import load_translator
from transformer.devices import VARIABLE
from transformer.hub.settings import Hub
from transformer.storage.memory import needed_bytes

WRITER = models.BUNDLED / "language" / "lm-en" / "config.json"
"""The config of a language model."""


@pytest.fixture
def place(
    closed_form_models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Path]:
    """Puts a model under a name among those of a visitor."""
    monkeypatch.setenv("TRANSFORMER_MODELS", str(tmp_path))
    return lambda name: shutil.copytree(closed_form_models["shift"], tmp_path / name)


def test_a_directory_is_a_model_by_its_place_its_config_and_a_name_that_an_address_can_carry(
    place, tmp_path
):
    for name in (
        "mine",
        "imported: fake (abcdef)",
        "two\nlines",
        os.fsdecode(b"\xff"),
        "positions/mine",
    ):
        place(name)
    for name in ("positions/writer", "recurrent/writer", "language/mine", "language/writer"):
        path = place(name)
        if name.endswith("writer"):
            shutil.copy(WRITER, path)
    every = models.available()
    own = {name: model.task for name, model in every.items() if tmp_path in model.path.parents}
    assert own == {
        "mine": "translate",
        "language/mine": "translate",
        "language/writer": "continue",
        "positions/mine": "translate",
        "positions/writer": "continue",
        "recurrent/writer": "continue",
    }
    assert "positions/mine" in models.twins()
    assert not {"positions/writer", "recurrent/writer"} & {
        *models.twins(),
        *models.twins("recurrent"),
    }


FOREIGN = {
    "language/gptj": (
        {"model_type": "gptj"},
        "language/gptj holds a gptj model of another library; this",
    ),
    "language/opt": ({"model_type": "opt"}, "language/opt/config.json lacks the entry"),
    "language/llama": (
        {"architectures": ["Llama"]},
        "language/llama holds a .* of another library",
    ),
    "language/broken": (None, "language/broken/config.json is not valid JSON"),
    "language/none": ("", "language/none has no config.json, so it is not a model directory"),
    "positions/bert": (
        {"model_type": "bert"},
        "positions/bert holds a bert model of another library",
    ),
    "bare": ("", "bare has no config.json"),
}
"""Folders that the list leaves out: their config (None: damaged; empty: absent), and what is
said."""


def test_a_folder_that_is_left_out_is_named_with_the_reason(place, tmp_path):
    for name, (config, _) in FOREIGN.items():
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "model.safetensors").touch()
        if config != "":
            (tmp_path / name / "config.json").write_text(
                "{" if config is None else json.dumps(config)
            )
    place("mine")
    (tmp_path / "notes").mkdir()
    reasons = models.unlisted()
    for name in ("positions/bert", *FOREIGN):
        assert re.match(FOREIGN[name][1], reasons.pop(name, "")) or name in models.available()
    assert not reasons
    assert models.available()["mine"].problem == ""


def test_decoders_of_others_are_listed_without_pytorch_and_one_that_cannot_be_opened_says_why(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("TRANSFORMER_MODELS", str(tmp_path))
    llama = tmp_path / "language" / "llama"
    llama.mkdir(parents=True)
    write_decoder(llama, "Llama, groups of three")
    write_gguf(tmp_path / "small.gguf", llama, "llama")
    shutil.copy(tmp_path / "small.gguf", tmp_path / "language" / "other.gguf")
    (tmp_path / "positions").mkdir()
    shutil.copy(tmp_path / "small.gguf", tmp_path / "positions" / "twin.gguf")
    (tmp_path / "downloaded").mkdir()
    shutil.copy(tmp_path / "small.gguf", tmp_path / "downloaded")
    shutil.copytree(llama, tmp_path / "mine")
    content = (tmp_path / "small.gguf").read_bytes()
    (tmp_path / "cut.gguf").write_bytes(content[:1_000])
    foreign = content.replace(b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0mamba", 1)
    (tmp_path / "language" / "mamba.gguf").write_bytes(foreign)
    write = {name: model for name, model in models.available().items() if model.task == "continue"}
    own = [name for name, model in write.items() if tmp_path in model.path.parents]
    assert own == [
        *("mine", "small.gguf", "language/llama", "language/other.gguf", "positions/twin.gguf"),
    ]
    assert not {*own} & {*models.twins()}
    assert next(iter(models.available())) == models.DEFAULT
    own.remove("positions/twin.gguf")
    named = {name: (write[name].title, write[name].label, write[name].description) for name in own}
    assert named == {name: (name.removeprefix("language/"),) * 2 + (None,) for name in own}
    for name in own:
        model = write[name]
        files = [model.path] if model.path.is_file() else [model.path / "model.safetensors"]
        assert model.nbytes == sum(file.stat().st_size for file in files)
        assert model.needs == needed_bytes(model.config)
        assert (model.problem, model.runs) == ("", f"{name} runs on the CPU.")
    assert "architecture 'mamba'" in models.available()["language/mamba.gguf"].problem
    assert "cut off" in models.available()["cut.gguf"].problem
    assert models.unlisted() == {
        "downloaded": "downloaded is a folder; the GGUF file in it is to lie beside it.",
    }
    code = (
        "import sys; from explorer.app.server import models; models.available(); "
        "models.unlisted(); print('small.gguf' in models.available(), 'torch' in sys.modules)"
    )
    command = [sys.executable, "-c", code]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert listed.stdout.split() == ["True", "False"]
    before = models.find("small.gguf")
    os.utime(before.path, ns=(1, time.time_ns() + 10**9))
    assert models.find("small.gguf") != before
    before.path.unlink()
    assert models.known("small.gguf") is None


def test_a_foreign_model_does_not_say_where_it_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSFORMER_MODELS", str(tmp_path))
    (tmp_path / "gptj").mkdir()
    (tmp_path / "gptj" / "config.json").write_text('{"model_type": "gptj"}')
    reason = "gptj holds a gptj model of another library; this package cannot open it."
    assert models.available()["gptj"].problem == reason


def test_what_the_files_of_a_model_say_is_read_once_until_one_of_them_changes(place, monkeypatch):
    path = place("mine")
    model = models.available()["mine"]
    assert (model.config.sizes, model.label, model.task) == (model.sizes, "mine", "translate")
    with monkeypatch.context() as still:
        for room, name in ((models, "described"), (models, "config_in"), (sources, "read_header")):
            still.setattr(room, name, pytest.fail)
        again = models.find("mine")
        assert again is models.available()["mine"] is model
        assert (again.config.sizes, again.label, again.task) == (model.sizes, "mine", "translate")
    for seconds, changed in ((1, path / "config.json"), (2, path)):  # as if a file were removed
        before = models.find("mine")
        os.utime(changed, ns=(1, time.time_ns() + seconds * 10**9))
        assert models.find("mine") != before
    (path / "config.json").unlink()
    assert models.known("mine") is None


def test_a_model_says_where_it_runs_before_and_after_it_is_loaded(place, monkeypatch):
    place("mine")
    model = models.find("mine")
    said = []
    for device in ("tpu", "cuda", ""):
        monkeypatch.setenv(VARIABLE, device)
        said.append(model.runs)
    model.load()
    assert said[0] == "The device 'tpu' is unknown; choose auto, cpu or cuda."
    assert said[1] == "mine runs on a GPU, if there is one."
    assert (model.resident, model.runs, said[2]) == (
        True,
        "mine runs on the CPU.",
        "mine runs on the CPU.",
    )


def test_a_value_of_a_model_is_made_again_once_the_model_was_loaded_again(place):
    path = place("mine")
    made = list[str]()

    @remembered(4)
    def value(source: Source, text: str) -> str:
        made.append(text)
        return source.load().translate(text).text

    found = models.find("mine")
    assert value(found, CASE.sentence) == value(found, CASE.sentence)
    assert len(made) == 1
    os.utime(path / "config.json", ns=(1, time.time_ns() + 10**9))
    later = models.find("mine")
    assert later != found
    assert value(later, CASE.sentence)
    assert len(made) == 2


def test_a_language_model_reads_and_writes_at_most_so_many_tokens(tokenizer, tmp_path: Path):
    path = write_language_model(tmp_path, tokenizer)
    source = ModelHandle("language/writer", path, models.changed(path))
    long = "one " * (LONGEST + 1)
    model = source.load()
    for state in (State(), State(write=0)):
        with pytest.raises(ValueError, match="tokens"):
            translate(RunKey.of(state, source, long), whole=True)
    for write in (3, 1_000):
        run = translate(RunKey.of(State(write=write), source, "one two"), whole=True)
        most = min(write + len(model.ids("one two")), model.config.max_positions)
        assert run.target_ids == model.generate("one two", max_length=most).target_ids
    read = translate(RunKey.of(State(write=0, decode="beam-4"), source, "one two two"), whole=True)
    assert read.target_ids == model.force("one two two").target_ids
    assert {*source.default_heads} == {"decoder"}


def test_one_language_is_no_choice(place, monkeypatch):
    place("mine")
    source = models.find("mine")
    for pieces, choice in (
        ((">>fra<<",), ()),
        ((">>fra<<", ">>spa<<"), (">>fra<<", ">>spa<<")),
        ((), ()),
    ):
        monkeypatch.setattr(type(source), "config", SimpleNamespace(language_pieces=pieces))
        assert source.pieces == choice


# --- examples ------------------------------------------------------------------------------------

WITH_EXAMPLES = sorted(path.parent.name for path in models.BUNDLED.glob("*/examples.json"))


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_a_bundled_model_fulfils_what_its_examples_claim_and_every_target_word_has_a_gloss(
    name: str,
):
    model = load_translator(models.BUNDLED / name)
    for example in examples.of(models.find(name)).examples:
        claim = example.claim
        run = model.translate(example.text)
        step = claim_step(example, run.target_tokens)
        place = find_word(run.source_tokens, claim.source)
        assert None not in (step, place)
        row = run.head("cross", claim.layer, claim.head).weights[step]
        weight = row[place[0] : place[1] + 1].sum()
        assert claim.least <= weight == pytest.approx(claim.weight, abs=0.01)
        assert place[0] <= int(np.argmax(row)) <= place[1]
        words = run.text.translate(str.maketrans("", "", ".,!?")).split()
        assert [word for word in words if word not in example.gloss] == []
        one = example.text.split()
        other = example.other.split()
        assert sum(a != b for a, b in zip(one, other, strict=True)) == 1
        assert len(model.ids(example.text)) == len(model.ids(example.other))


def test_a_model_opens_on_its_own_first_example_or_that_of_the_usual_one():
    first = {
        name: examples.of(models.find(name)).examples
        for name in (*WITH_EXAMPLES, "positions/rotary")
    }
    assert first["positions/rotary"] == first["en-de"] != first[models.DEFAULT]
    assert {name: text_on(models.find(name), None) for name in first} == {
        n: first[n][0].text for n in first
    }
    assert text_on(None, "Own words.") == "Own words."
    assert surveys.named(models.find(models.DEFAULT)) == "Tatoeba"


MODEL = models.BUNDLED / models.DEFAULT
CLOSE = 1e-5


def test_the_shipped_run_is_the_first_example_as_the_bundled_model_computes_it():
    shipped = shipped_run(MODEL)
    assert shipped is not None, "The model or the example changed: run `python -m explorer survey`."
    fresh = load_translator(MODEL).translate(examples.of(models.find(MODEL.name)).examples[0].text)
    for name in ("source_text", "text", "source_tokens", "decoder_input_tokens", "target_tokens", "method",
                 "model", "config", "notes"):  # fmt: skip
        assert getattr(shipped, name) == getattr(fresh, name)
    for kind, layer in fresh.attention.places:
        for head in range(fresh.config.n_heads):
            here = shipped.map(kind, layer, head)
            there = fresh.map(kind, layer, head)
            assert np.array_equal(here.mask, there.mask)
            np.testing.assert_allclose(here.weights, there.weights, rtol=0, atol=CLOSE)
            np.testing.assert_allclose(here.scores, there.scores, atol=10 * CLOSE, rtol=CLOSE)
            assert here.audit.passed
    for here, there in zip(shipped.steps, fresh.steps, strict=True):
        ones, others = ((each, *each.alternatives) for each in (here, there))
        assert [one.token for one in ones] == [other.token for other in others]
        np.testing.assert_allclose(
            [a.log_prob for a in ones], [b.log_prob for b in others], atol=10 * CLOSE
        )


def test_a_model_that_was_changed_did_not_make_the_shipped_run_and_without_the_file_there_is_none(
    tmp_path,
):
    path = shutil.copytree(MODEL, tmp_path / "model")
    config = (path / "config.json").read_text()
    (path / "config.json").write_text(f"{config} ")
    assert shipped_run(path) is None
    (path / "config.json").write_text(config)
    (path / "first.npz").unlink()
    assert shipped_run(path) is None


# --- what a run opens on -------------------------------------------------------------------------

CASE = CASES["shift"]
CLAIM = Claim("It shows.", "neun", "nine", 0, 0, 0.5, 0.9)
HEAD = "alignment head (head 1 of layer 1, row that predicts the word)"


@pytest.fixture
def view_of(closed_form_models, monkeypatch: pytest.MonkeyPatch) -> Callable[..., View]:
    source = named("shift")
    monkeypatch.setitem(vars(source), "default_heads", {"cross": (0, 0)})
    monkeypatch.setitem(vars(source), "aligner", Aligner(((0, 0),), "predicted"))
    run = load_translator(closed_form_models["shift"]).translate(CASE.sentence)
    return lambda example=None: View(RunKey(source, CASE.sentence, "greedy", None), run, example)


def test_a_run_opens_on_the_claim_of_its_example_else_on_a_word_of_the_head_and_so_do_its_glosses(
    view_of,
):
    own = view_of()
    place = CASE.target_tokens.index("▁neun")
    assert own.opening.claimed is None
    assert CASE.target_tokens[own.opening.step] != "</s>"
    assert {gloss["origin"] for gloss in own.opening.glosses.values()} == {HEAD}
    claimed = view_of(Example("shift", CASE.sentence, "", CLAIM, {"neun": "the number nine"}))
    assert claimed.opening.step == claimed.opening.claimed == place
    number = {place: {"text": "the number nine", "origin": EXAMPLE}}
    assert claimed.opening.glosses == own.opening.glosses | number
    lost = view_of(
        Example("shift", CASE.sentence, "", replace(CLAIM, target="Haus", source="house"), {})
    )
    assert (lost.opening.claimed, lost.opening.step) == (None, own.opening.step)


def test_a_value_of_a_run_is_made_once_for_each_run_and_each_position_not_for_what_listens(view_of):
    made: list[tuple[str, int]] = []

    @remembered(4)
    def value(opened: View, layer: int, *, tell: Callable[[], object]) -> int:
        tell()
        made.append((opened.run_key.text, layer))
        return layer

    own = view_of()
    heard = list[str]()
    assert [value(own, layer, tell=lambda: heard.append("x")) for layer in (0, 1, 0)] == [0, 1, 0]
    assert value(own, 1, tell=pytest.fail) == 1
    assert made == [(CASE.sentence, 0), (CASE.sentence, 1)]
    again = replace(own, translation=replace(own.translation))
    assert value(again, 1, tell=lambda: heard.append("y")) == 1
    assert heard == ["x", "x", "y"]


# --- suggested models ----------------------------------------------------------------------------


def test_only_what_fits_and_may_be_opened_is_suggested_and_of_many_some_of_every_size(monkeypatch):
    def suggested(free: int, *allowed: str) -> list[str]:
        hub = SimpleNamespace(most_bytes=free, allows=lambda name: name.startswith(allowed))
        monkeypatch.setattr(memory, "available", lambda: 1.2 * free + 9)
        monkeypatch.setattr(Hub, "from_environment", lambda: hub)
        return [each.name for each in fitting()]

    assert suggested(0, "") == []
    assert suggested(244_000_000, "") == ["google-t5/t5-small"]
    few = ["google-t5/t5-small", "Helsinki-NLP/opus-mt-en-de"]
    assert suggested(400_000_000, "google-", "Helsinki") == few
    assert suggested(10**12, "") == [
        "google-t5/t5-small",
        "google/flan-t5-small",
        "google/flan-t5-base",
        "facebook/m2m100_418M",
        "facebook/nllb-200-distilled-600M",
    ]
    assert "CC BY-NC 4.0, not for commercial use" in fitting()[-1].licence


# --- documents and tables ------------------------------------------------------------------------


@pytest.mark.parametrize("name", studies.known())
def test_a_document_can_be_read_and_says_where_its_numbers_come_from(name: str):
    study = studies.study(name)
    assert (study.question[-1], study.finding[-1]) == ("?", ".")
    charts = [part for part in study.parts if isinstance(part, studies.Chart)]
    assert charts
    for chart in charts:
        assert {len(row) for row in chart.rows} == {len(chart.columns)}, chart.caption
        assert chart.kind == "table" or chart.alt


CHART = {
    "kind": "bars",
    "caption": "c",
    "alt": "a",
    "columns": ["s", "p", "v"],
    "rows": [["s", "p", 1.5]],
}
TEXTS = dict.fromkeys(("topic", "question", "finding", "method", "sources", "program"), "Text.")
DOCUMENT = {**TEXTS, "parts": ["Text.", CHART], "made": [["2026-11-29", "python"]]}
BROKEN: dict[str, Any] = {
    "list": [],
    "text": "{",
    "no-topic": {name: value for name, value in DOCUMENT.items() if name != "topic"},
    "number": {**DOCUMENT, "finding": 3},
    "kind": {**DOCUMENT, "parts": [{**CHART, "kind": "pie"}]},
    "row": {**DOCUMENT, "parts": [{**CHART, "rows": [["s", "p"]]}]},
    "cell": {**DOCUMENT, "parts": [{**CHART, "rows": [["s", "p", True]]}]},
    "columns": {**DOCUMENT, "parts": [{**CHART, "columns": ["s"], "rows": [["s"]]}]},
    "made": {**DOCUMENT, "made": ["python"]},
}
"""Documents that cannot be read."""


def test_a_damaged_document_is_left_out_and_named(tmp_path, monkeypatch):
    for name, value in {**BROKEN, "right": DOCUMENT}.items():
        (tmp_path / f"{name}.json").write_text(
            value if isinstance(value, str) else json.dumps(value)
        )
    monkeypatch.setattr(
        studies, "known", lambda: {path.stem: path for path in sorted(tmp_path.glob("*"))}
    )
    studies.study.cache_clear()
    documents, wrong = studies.every()
    assert list(documents) == ["right"]
    assert documents["right"].commands == (("2026-11-29", "python"),)
    assert [Path(reason.split(" ")[0]).stem for reason in wrong] == sorted(BROKEN)
    studies.study.cache_clear()


def test_a_table_comes_back_as_it_went_in_and_a_text_that_would_be_a_formula_begins_with_an_apostrophe():
    rows = [["token", "weight"], ["a\rb", 0.5], ["c\r\nd", 0.25], ['say "x",\n', 1]]
    text = written(rows)
    assert text[0] == "\ufeff"
    assert list(csv.reader(io.StringIO(text[1:], newline=""))) == [
        list(map(str, row)) for row in rows
    ]
    rows = [["=1+1", "-2", -2, "a=b", "＝1＋1", "＠a", "－2", "＋2", "\tx", "@a", "+a"]]
    assert written(rows) == "\ufeff'=1+1,'-2,-2,a=b,'＝1＋1,'＠a,'－2,'＋2,'\tx,'@a,'+a\n"
