"""Runs as files: they open as they were and prove themselves; the damaged, forged or hostile is
refused."""

import contextlib
import io
import json
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from changes import EVERY, INSIDE, TEXT, changeable
from closed_form import make_tokenizer
from damaged import TEXTS
from hypothesis import given
from hypothesis import strategies as st
from properties import PROPERTY, damaged, or_refused
from random_models import random_model

from transformer import Translation, Translator
from transformer import interventions as do
from transformer.audit import TOKENS
from transformer.encodings import REGISTRY
from transformer.exports.maps import MappedRun, load_maps, save_maps
from transformer.exports.npz import NOTE, RECORDED, load_trace, model_digest, save_trace
from transformer.exports.record import TraceFileError
from transformer.run import NotCapturedError
from transformer.storage.description import model_digests
from transformer.storage.directory import save_checkpoint
from transformer.storage.packed import MOST_ARRAYS
from transformer.stream import STREAM
from transformer.text.words import is_special

Change = Callable[[dict[str, Any], Any], object]


def saved(run: Translation, model: Any = None) -> io.BytesIO:
    save_trace(run, file := io.BytesIO(), model)
    return io.BytesIO(file.getvalue())


def parts_of(file: io.BytesIO) -> tuple[dict[str, Any], Any]:
    """Arrays and metadata of a file."""
    with np.load(file, allow_pickle=False) as opened:
        arrays = dict(opened)
    return arrays, json.loads(arrays.pop("meta").tobytes())


def packed(arrays: dict[str, Any], meta: Any) -> io.BytesIO:
    file = io.BytesIO()
    np.savez(
        file, allow_pickle=False, meta=np.frombuffer(json.dumps(meta).encode(), np.uint8), **arrays
    )
    return io.BytesIO(file.getvalue())


def rewritten(file: io.BytesIO, change: Change) -> io.BytesIO:
    arrays, meta = parts_of(file)
    change(arrays, meta)
    return packed(arrays, meta)


def check_same(opened: Translation, run: Translation) -> None:
    """All that is read off a run, to the last digit."""
    for name in ("steps", "text", "source_text", "config", "log_probs", "method", "interventions"):
        assert getattr(opened, name) == getattr(run, name), name
    for place in run.attention.places:
        ours, theirs = (each.attention.map(*place) for each in (opened, run))
        for read in ("weights", "mask", "scores"):
            np.testing.assert_array_equal(getattr(ours, read), getattr(theirs, read))
        assert (theirs.bias is None) == (ours.bias is None)
    for side, entered in run.attention.embeddings.items():
        np.testing.assert_array_equal(opened.trace.embeddings[side].tokens, entered.tokens)


@pytest.fixture(scope="module")
def run(translator: Translator) -> Translation:
    return translator.translate("one two three", beam_size=2)


@pytest.fixture
def file(translator: Translator, run: Translation) -> io.BytesIO:
    return saved(run, translator.model)


@pytest.fixture(scope="module")
def ready(tokenizer) -> Translator:
    return changeable(tokenizer, norm="pre")


def test_a_saved_run_opens_as_it_was_and_says_what_it_only_recorded(translator, run, file):
    opened = load_trace(file)
    check_same(opened, run)
    view = opened.head("cross", 0, 1)
    assert (view.audit.passed, view.audit.imported, NOTE in opened.notes) == (True, True, True)
    assert RECORDED in {check.name for check in view.audit.checks}
    assert opened.model_sha256 == model_digest(translator.model)
    again = load_trace(saved(opened))
    assert (again.model_sha256, again.notes) == (opened.model_sha256, opened.notes)
    norms = [each.attention.layer("encoder", 0).value_norms for each in (again, opened)]
    np.testing.assert_array_equal(*norms)


def special_places(run: Translation) -> list[list[int]]:
    """Where special pieces stand: in the source, in what the decoder read, in the output."""
    sides = run.source_tokens, run.decoder_input_tokens, run.target_tokens
    return [[place for place, piece in enumerate(side) if is_special(piece)] for side in sides]


def test_special_pieces_survive_a_file_and_a_typed_one_stays_a_word(translator):
    run = translator.force("one </s> two", "<s> one")
    named = translator.force("one </s> two", run.target_tokens)  # tokens by their names
    assert special_places(named) == special_places(run)
    last = len(run.source_tokens) - 1, len(run.target_tokens) - 1
    assert special_places(run) == [[last[0]], [0], [last[1]]]
    assert special_places(load_trace(saved(run))) == special_places(run)
    older = rewritten(
        saved(run), lambda _, meta: meta["run"].pop("special")
    )  # of an earlier version
    assert special_places(load_trace(older)) == special_places(run)


def test_a_file_keeps_what_each_key_contributes_through_the_output_projection(
    translator, run, file
):
    assert run.attention.layer("cross", 1).value_norms is None
    projection = translator.model.decoder.layers[1].cross_attention.out_proj.weight.detach().numpy()
    view = run.head("cross", 1, 2)
    norms = load_trace(file).attention.layer("cross", 1).value_norms[2]
    width = view.value.shape[1]
    vectors = view.weights[..., None] * (view.value @ projection[:, 2 * width : 3 * width].T)
    by_hand = np.linalg.norm(vectors, axis=-1)
    np.testing.assert_allclose(view.weights * norms.numpy(), by_hand, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("positions", REGISTRY)
def test_every_positional_encoding_survives_as_a_rule(tokenizer, positions):
    model = random_model(vocab_size=tokenizer.vocab_size, positions=positions)
    run = Translator(model, tokenizer).translate("one two three four")
    opened = load_trace(saved(run, model))
    check_same(opened, run)
    assert opened.attention.audit().passed


@pytest.mark.parametrize("name", EVERY)
def test_a_changed_run_is_saved_opened_and_proved_again_and_cannot_conceal_its_change(ready, name):
    run = ready.translate(TEXT, max_length=6, interventions=[EVERY[name]])
    opened = load_trace(saved(run, ready.model))
    check_same(opened, run)
    report = opened.attention.audit()
    assert (report.passed, report.imported, report.changes) == (True, True, (str(EVERY[name]),)), (
        report
    )
    again = load_trace(saved(opened))
    assert (again.attention.audit().passed, again.interventions) == (True, run.interventions)
    if name in INSIDE:
        with contextlib.suppress(TraceFileError):
            concealed = rewritten(saved(run), lambda _, meta: meta["run"].update(interventions=[]))
            assert not load_trace(concealed).attention.audit().passed


def test_lifted_cells_survive_the_file(ready):
    run = ready.force(TEXT, tuple(range(40, 46)), interventions=[do.mask("decoder", allow="next")])
    opened = load_trace(saved(run))
    assert opened.attention.audit().passed
    assert (opened.head("decoder", 0, 0).mask == np.tri(6, k=1, dtype=bool)).all()


RED: list[tuple[str, Change, str]] = [
    (
        "drop a network",
        lambda arrays, _: arrays["encoder.1.feed_forward.output"].__iadd__(np.float32(0.1)),
        STREAM,
    ),
    ("choose", lambda _, meta: meta["run"]["interventions"][0].update(token=7), TOKENS),
]


@pytest.mark.parametrize(("name", "change", "check"), RED)
def test_a_forged_file_turns_red_without_a_model(ready, name, change, check):
    run = ready.translate(TEXT, max_length=6, interventions=[EVERY[name]])
    report = load_trace(rewritten(saved(run), change)).attention.audit()
    assert check in {each.name for each in report.checks if not each.passed}


CONTRADICTIONS: list[Change] = [
    lambda _, meta: meta["run"]["target_tokens"].pop(),
    lambda _, meta: meta["run"]["config"].update(n_decoder_layers=200),
    lambda _, meta: meta["run"]["source_tokens"].append("\ud800"),
    lambda _, meta: meta["run"]["steps"][0].update(token_id=-1),
    lambda _, meta: meta["run"].update(text=meta["run"]["text"] + " nicht"),
    lambda _, meta: meta["run"].update(source_text="one two four"),
    lambda _, meta: meta.update(version=3),
    lambda arrays, _: arrays.update({"encoder.0.self_attention.bias": np.zeros(4, np.float32)}),
    lambda arrays, _: arrays.pop("change.0"),
    lambda arrays, _: arrays.update({"change.0": arrays["change.0"][:, :-1]}),
    lambda arrays, _: arrays.update({"change.1": arrays["change.0"]}),
    lambda arrays, _: arrays.pop("encoder.output"),
    lambda arrays, _: arrays.pop("encoder.0.self_attention.read"),
    lambda arrays, _: arrays.pop("encoder.positions"),
    lambda arrays, _: arrays.update({"encoder.output.own": arrays["encoder.output.own"][:-1]}),
    lambda _, meta: meta["run"].update(interventions=[{"do": "hide", "source_token": 99}]),
    lambda _, meta: meta["run"]["interventions"][0].update(positions=[[99, 0]]),
]


@pytest.mark.parametrize("change", CONTRADICTIONS, ids=range(len(CONTRADICTIONS)))
def test_a_file_that_contradicts_itself_is_refused_in_one_sentence(ready, change):
    run = ready.translate(TEXT, max_length=6, interventions=[INSIDE["patch the encoder's output"]])
    with pytest.raises(TraceFileError, match=r"^The [^\n]+\.$"):
        load_trace(rewritten(saved(run), change))


@cache
def parts() -> tuple[dict[str, Any], Any]:
    tokenizer = make_tokenizer()
    model = random_model(norm="pre", vocab_size=tokenizer.vocab_size)
    return parts_of(
        saved(Translator(model, tokenizer).translate("one two three", max_length=4), model)
    )


@PROPERTY
@given(st.deferred(lambda: damaged(parts()[1])))
def test_a_file_whose_run_was_damaged_is_refused_in_one_sentence_or_survives(meta: Any):
    with or_refused(TraceFileError):
        opened = load_trace(packed(parts()[0], meta))
        assert load_trace(saved(opened)).steps == opened.steps


DAMAGES: dict[str, Callable[[Any], Any]] = {
    "shorter": lambda array: array[:-1],
    "of another type": lambda array: array.astype("float64"),
    "scaled": lambda array: array * np.float32(1.5),
    "no numbers": lambda array: array * np.float32("nan"),
}
CHECKED = set(DAMAGES) - {"scaled"}
"""What is refused of any array; others may lack, and then nothing is claimed of them."""


@PROPERTY
@given(
    st.deferred(lambda: st.sampled_from(sorted(parts()[0]))),
    st.sampled_from([*DAMAGES, "", ".", ".0", "é", "\n"]),
)
def test_a_file_whose_arrays_were_damaged_is_refused_in_one_sentence_or_turns_red(
    name: str, how: str
):
    arrays, meta = parts()
    array, arrays = arrays[name], {each: array for each, array in arrays.items() if each != name}
    if how:
        arrays[name if how in DAMAGES else name + how] = DAMAGES.get(how, np.asarray)(array)
    with or_refused(TraceFileError):
        unproven = name.endswith("value_norms") and how not in CHECKED  # W_O is not in the file
        assert load_trace(packed(arrays, meta)).audit().passed is unproven


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_one_number_that_is_not_finite_is_refused_wherever_it_stands(value: float):
    arrays, meta = parts()
    for name, array in arrays.items():
        if array.dtype != np.float32 or not array.size:
            continue
        spoilt = array.copy()
        spoilt.flat[-1] = value
        with pytest.raises(TraceFileError, match="numbers that are not finite"):
            load_trace(packed(arrays | {name: spoilt}, meta))


def repacked(
    content: bytes, how: int = zipfile.ZIP_DEFLATED, more: int = 0, **others: bytes
) -> bytes:
    """A saved trace, packed in another way, with other files and so many more of them."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files |= {f"{name}.npy": each for name, each in others.items()}
    files |= {f"{number}.npy": b"" for number in range(more)}
    with zipfile.ZipFile(packed := io.BytesIO(), "w", how) as archive:
        for name, each in files.items():
            archive.writestr(name, each)
    return packed.getvalue()


def twice(content: bytes) -> bytes:
    with warnings.catch_warnings(), zipfile.ZipFile(packed := io.BytesIO(content), "a") as archive:
        warnings.simplefilter("ignore")
        name = "decoder.0.cross_attention.key.npy"
        archive.writestr(name, archive.read(name))
    return packed.getvalue()


def header(shape: str, length: int = 0) -> bytes:
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape})}}".ljust(length).encode()
    return b"\x93NUMPY\x02\x00" + len(text).to_bytes(4, "little") + text


def pickled(_: bytes) -> bytes:
    np.savez(file := io.BytesIO(), meta=np.array([{"a": 1}], dtype=object), allow_pickle=True)
    return file.getvalue()


def with_meta(meta: bytes) -> Callable[[bytes], bytes]:
    def hostile(_: bytes) -> bytes:
        np.savez(file := io.BytesIO(), meta=np.frombuffer(meta, np.uint8))
        return file.getvalue()

    return hostile


HOSTILE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "no zip": (lambda _: b"no zip", "The "),
    "cut": (lambda content: content[:-30], "The "),
    "twice": (twice, "two arrays of one name"),
    "pickle": (pickled, "The "),
    "bzip2": (lambda content: repacked(content, zipfile.ZIP_BZIP2), "packed in a way"),
    "many": (lambda content: repacked(content, more=MOST_ARRAYS), "256 MiB"),
    "bomb": (lambda content: repacked(content, bomb=bytes(2**28)), "256 MiB"),
    "long shape": (
        lambda content: repacked(content, meta=header("1," * 30_000)),
        "did not write it",
    ),
    "long header": (
        lambda content: repacked(content, meta=header("1,", 2**26)),
        "did not write it",
    ),
    "large": (
        lambda content: repacked(content, meta=header("1000000000, 1000")),
        "no file of this package",
    ),
    "larger": (lambda content: repacked(content, extra=header("1000000000, 1000")), "cut off"),
    **{f"JSON: {name}": (with_meta(meta), "The ") for name, meta in TEXTS.items()},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_before_it_is_unpacked(file, name):
    damage, message = HOSTILE[name]
    with pytest.raises(TraceFileError, match=message) as caught:
        load_trace(io.BytesIO(damage(file.getvalue())))
    assert "\n" not in str(caught.value)


def test_what_was_not_recorded_or_was_changed_by_hand_is_not_saved(translator, tmp_path: Path):
    with pytest.raises(NotCapturedError):
        save_trace(translator.translate("one", capture=False), tmp_path / "none.npz")
    hooks = {"encoder.0.self_attention.weights": lambda values, first: values}
    with pytest.raises(TraceFileError, match="hooks"):
        save_trace(translator.translate("one", hooks=hooks), tmp_path / "hooked.npz")
    assert not [*tmp_path.iterdir()]


# --- a run with the maps of all its heads --------------------------------------------------------

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def directory(translator: Translator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    save_checkpoint(path, translator.config, translator.model.state_dict(), translator.tokenizer)
    return path


@pytest.fixture(scope="module")
def translation(translator: Translator) -> Translation:
    return translator.translate("one two three")


@pytest.fixture(scope="module")
def mapped(
    translation: Translation, directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> MappedRun:
    path = tmp_path_factory.mktemp("maps") / "first.npz"
    save_maps(translation, directory, path)
    return load_maps(path)


def test_every_map_is_the_one_that_the_model_computed(translation: Translation, mapped: MappedRun):
    for kind, site in translation.config.sites.items():
        for layer in range(site.n_layers):
            for head in range(translation.config.n_heads):
                here = mapped.map(kind, layer, head)
                there = translation.head(kind, layer, head)
                for name in ("weights", "scores", "mask"):
                    assert np.array_equal(getattr(here, name), getattr(there, name))
                assert here.audit == there.audit
                assert here.audit.passed
                for name in (
                    "query_tokens",
                    "predicted_tokens",
                    "key_tokens",
                    "window",
                    "model",
                    "norm",
                ):
                    assert getattr(here, name) == getattr(there, name)
                assert np.array_equal(mapped.weights(kind, layer, head), here.weights)
                assert np.array_equal(mapped.mask(kind, layer, head), here.mask)
    with pytest.raises(NotCapturedError):
        mapped.head("cross", 0, 0)


def test_text_tokens_steps_and_the_digests_of_the_model_come_back(
    translation, mapped, directory: Path
):
    names = "source_text text source_tokens target_tokens steps log_probs method notes"
    for name in names.split():
        assert getattr(mapped, name) == getattr(translation, name)
    assert mapped.digests == model_digests(directory)


def test_the_file_is_read_without_pytorch():
    code = "import sys; from transformer.exports.maps import load_maps; load_maps(sys.argv[1])"
    code += "; print('torch' in sys.modules)"
    command = [sys.executable, "-c", code, str(ROOT / "assets/models/en-de/first.npz")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
