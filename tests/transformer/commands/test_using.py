"""Commands that use a model, with texts as people paste and pipe them: results, places,
refusals."""

import gzip
import io
import itertools
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from corpus import number_pairs, write_pairs
from programs import main
from published import TEXTS, model_of, published, tokenizer_of

from transformer import load_language_model
from transformer.decoding import SearchRules
from transformer.translator import load_translator

Capsys = pytest.CaptureFixture[str]
GERMAN, UNSPELT = "assets/models/en-de", "assets/models/en-pt"
LANGUAGE = "assets/models/language/lm-en"
UNKNOWN = "This model has no piece for £; it reads it as unknown."


def write(path: Path, content: str | bytes) -> str:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def done(capsys: Capsys, *arguments: str, status: int = 0) -> tuple[str, str]:
    """What a command writes to standard output and standard error."""
    capsys.readouterr()
    assert main(arguments) == status
    captured = capsys.readouterr()
    return captured.out, captured.err


def objects(capsys: Capsys, *arguments: str, status: int = 0) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in done(capsys, *arguments, "--json", status=status)[0].splitlines()
    ]


def typed(monkeypatch: pytest.MonkeyPatch, content: bytes | None) -> None:
    """Standard input with this content, or closed, as by `<&-`."""
    stream = None if content is None else io.TextIOWrapper(io.BytesIO(content))
    monkeypatch.setattr(sys, "stdin", stream)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("data")
    return {
        "TRAIN": str(write_pairs(folder / "train.tsv.gz", number_pairs(400))),
        "VALID": str(write_pairs(folder / "valid.tsv", number_pairs(30, seed=1))),
        "TEST": str(write_pairs(folder / "test.tsv", number_pairs(12, seed=2))),
        "LONG": str(write_pairs(folder / "long.tsv", [("one", "eins"), ("x " * 1100, "y")])),
        "INVISIBLE": write(
            folder / "odd.tsv", "a b\tc d\t0-0\nThe \u200b house\tA casa\t0-0 2-1\n"
        ),
    }


@pytest.fixture(scope="module")
def model(files: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> str:
    output = str(tmp_path_factory.mktemp("models") / "numbers")
    command = ["train", "--train", files["TRAIN"], "--valid", files["VALID"], "--output", output]
    sizes = "--preset tiny --vocab-size 300 --d-model 32 --device cpu --steps 300"
    assert (
        main([*command, *sizes.split(), "--learning-rate", "0.005", "--evaluate-every", "300"]) == 0
    )
    return output


# --- translate -----------------------------------------------------------------------------------


def test_translate_writes_a_line_a_text_and_scores_as_it_is_told(
    model: str, capsys: Capsys, monkeypatch
):
    out, _ = done(capsys, "translate", "--model", model, "two three", "nine one four")
    assert out.splitlines() == ["zwei drei", "neun eins vier"]
    scores = set()
    plain = SearchRules.score

    def score(rules: SearchRules, total: float, length: int) -> float:
        scores.add((rules.length_penalty, rules.length_offset))
        return plain(rules, total, length)

    monkeypatch.setattr(SearchRules, "score", score)
    typed(monkeypatch, b"two three\r\none nine\n")
    by = ["--beam-size", "3", "--length-penalty", "0.6", "--length-offset", "5"]
    lines = objects(capsys, "translate", "--model", model, *by)
    assert [line["text"] for line in lines] == ["zwei drei", "eins neun"]
    assert {*lines[0]} == {"text", "source_tokens", "target_tokens", "log_probs", "device"}
    assert scores == {(0.6, 5)}


def test_a_file_is_translated_in_order_and_continued_where_it_was_cut(
    model, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("transformer.commands.translate.AT_ONCE", 2)
    clock = SimpleNamespace(monotonic=itertools.count(0, 4).__next__)
    monkeypatch.setattr("transformer.commands.translate.time", clock)
    texts = ["two three", "nine four one", "five", "one", "six two"]
    output = tmp_path / "out.tsv"
    source = write(tmp_path / "in.tsv", "".join(f"{text}\tmore\n" for text in texts))
    command = ["translate", "--model", model, "--file", source, "--output", str(output)]
    assert "2/5 · 0 lines/s · 0:00:06 left" in done(capsys, *command)[1]
    whole = output.read_text(encoding="utf-8")
    assert [line.split("\t")[0] for line in whole.splitlines()] == texts
    assert whole.startswith("two three\tzwei drei\nnine four one\tneun vier eins\n")
    output.write_text(whole[: whole.index("five") + 6], encoding="utf-8")
    done(capsys, *command)
    assert output.read_text(encoding="utf-8") == whole
    output.write_text("other\tanders\n", encoding="utf-8")
    assert "other texts" in done(capsys, *command, status=2)[1]
    assert "Add --output FILE, the file to be written" in done(capsys, *command[:-2], status=2)[1]
    (tmp_path / "link.txt").hardlink_to(source)
    for same in (source, str(tmp_path / "link.txt")):
        assert "--output is the file of the texts" in done(capsys, *command[:-1], same, status=2)[1]
    assert (
        "no file, so it cannot be continued"
        in done(capsys, *command[:-1], "/dev/full", status=2)[1]
    )
    assert Path(source).read_text().startswith("two three\tmore\n")


def test_blank_and_bad_lines_keep_their_places(tmp_path: Path, capsys: Capsys, monkeypatch):
    typed(monkeypatch, b"The house is old.\n\n\xff\xfe\n" + b"one " * 1100 + b"\nThe cat sleeps.\n")
    out, err = done(capsys, "translate", "--model", UNSPELT, status=1)
    assert out.split("\n") == ["A casa é antiga.", "", "", "", "O gato dorme.", ""]
    first, second = err.strip().splitlines()
    assert first == "Text 3: This is not UTF-8 text."
    assert second.startswith("Text 4: The text has ")
    texts = write(tmp_path / "texts.txt", b"The cat sleeps.\n\ncaf\xe9\nIt costs \xc2\xa35.\n\n")
    output = tmp_path / "out.tsv"
    command = ["translate", "--model", UNSPELT, "--file", texts, "--output", str(output)]
    for again in (False, True):
        _, err = done(capsys, *command, status=int(not again))
        lines = output.read_bytes().split(b"\n")
        assert [line.partition(b"\t")[0] for line in lines] == Path(texts).read_bytes().split(b"\n")
        assert [bool(line.partition(b"\t")[2]) for line in lines] == [
            True,
            False,
            False,
            True,
            False,
            False,
        ]
        assert again or (
            "texts.txt:3: This is not UTF-8 text." in err and f"1 line: {UNKNOWN}" in err
        )


def test_output_is_utf_8_in_any_locale():
    command = [sys.executable, "-m", "transformer", "translate", "--model", UNSPELT, "--json"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    text = "The house is old, isn’t it? £"
    ended = subprocess.run([*command, text], capture_output=True, env=environment, check=True)
    assert "é" in ended.stdout.decode("utf-8")
    assert "£" in ended.stderr.decode("utf-8")


def test_the_best_translations_are_the_reference_s(capsys: Capsys):
    model = published("marian")
    text = TEXTS["marian"]
    tokenizer = tokenizer_of("marian", model)
    options = {"num_beams": 4, "num_return_sequences": 4, "output_scores": True}
    options |= {"return_dict_in_generate": True}
    expected = model_of(model).generate(**tokenizer(text, return_tensors="pt"), **options)
    command = ["translate", "--model", str(model), text, "--beam-size", "4", "--n-best", "4"]
    (line,) = objects(capsys, *command)
    best = line["n_best"]
    assert (best[0]["text"], best[0]["target_tokens"]) == (line["text"], line["target_tokens"])
    assert [each["rank"] for each in best] == [1, 2, 3, 4]
    assert [each["score"] for each in best] == pytest.approx(
        expected.sequences_scores.tolist(), abs=1e-4
    )
    texts = [tokenizer.decode(ids, skip_special_tokens=True) for ids in expected.sequences]
    assert [each["text"] for each in best] == texts
    (blank,) = objects(capsys, *command[:3], " ", *command[4:])
    assert blank["n_best"] == []
    rows = [row.split("\t") for row in done(capsys, *command[:-1], "2")[0].splitlines()]
    assert rows == [[str(each["rank"]), f"{each['score']:.5f}", each["text"]] for each in best[:2]]


# --- score, evaluate, attention, align, generate, perplexity -------------------------------------

PAIRS = [
    ("The house is old.", "Das Haus ist alt."),
    ("He took a key.", "Er nahm einen Schlüssel mit."),
]


def test_score_prints_what_forcing_gives(tmp_path: Path, capsys: Capsys):
    path = tmp_path / "pairs.tsv.gz"
    path.write_bytes(gzip.compress("\n".join("\t".join(pair) for pair in PAIRS).encode()))
    command = ["score", "--model", GERMAN, "--data", str(path)]
    translator = load_translator(GERMAN)
    command.append("--tokens")
    lines = objects(capsys, *command)
    for pair, line in zip(PAIRS, lines, strict=True):
        forced = translator.force(*pair, capture=False)
        assert line["log_probs"] == pytest.approx(forced.log_probs, abs=1e-5)
        assert line["log_prob"] == pytest.approx(sum(forced.log_probs), abs=1e-5)
        assert (line["tokens"], line["target_tokens"]) == (
            len(forced.log_probs),
            [*forced.target_tokens],
        )
        assert line["mean"] == pytest.approx(line["log_prob"] / line["tokens"], abs=1e-5)
    row = done(capsys, *command)[0].splitlines()[0].split("\t")
    numbers = [float(row[0]), int(row[1]), float(row[2])]
    assert numbers == [lines[0][name] for name in ("log_prob", "tokens", "mean")]
    assert row[3].split() == lines[0]["target_tokens"]
    assert [float(value) for value in row[4].split()] == lines[0]["log_probs"]


def test_lines_of_pairs_keep_their_places_and_the_bad_ones_are_named(
    tmp_path: Path, capsys, monkeypatch
):
    monkeypatch.setattr("transformer.commands.lines.AT_ONCE", 2)
    good = "\t".join(PAIRS[0]).encode()
    lines = [good, b"", b"The house\t ", b"caf\xe9\tx", b"a\tb\tc", b"x\t" + b"y " * 1100, good]
    path = write(tmp_path / "pairs.tsv", b"\n".join(lines) + b"\n")
    out, err = done(capsys, "score", "--model", GERMAN, "--data", path, status=1)
    written = out.split("\n")
    assert [bool(line) for line in written] == [True, *[False] * 5, True, False]
    assert written[0] == written[6]
    reasons = ["the target is empty", "not UTF-8", "found 3 columns", "The translation has"]
    for number, (line, reason) in enumerate(zip(err.splitlines(), reasons, strict=True), start=3):
        assert line.startswith(f"{path}:{number}: ")
        assert reason in line
    found = objects(capsys, "score", "--model", GERMAN, "--data", path, status=1)
    device = str(load_translator(GERMAN).device)
    assert found[1] == {"log_prob": None, "tokens": 0, "mean": None, "device": device}
    assert found[2]["error"] == err.splitlines()[0]


@pytest.mark.parametrize(
    ("command", "links"), [("score", ""), ("evaluate", ""), ("align", "\t0-0")]
)
def test_what_has_no_piece_on_either_side_is_said(
    command: str, links: str, tmp_path: Path, capsys: Capsys
):
    pairs = f"It costs £5.\tCusta £5.{links}\nIt costs 5.\tCusta £5.{links}\n"
    _, err = done(
        capsys, command, "--model", UNSPELT, "--data", write(tmp_path / "pairs.tsv", pairs)
    )
    assert err.endswith(f"2 lines: {UNKNOWN}\n")
    out, err = done(capsys, "attention", "--model", UNSPELT, "The house costs £5.")
    assert ("no piece for £" in err, "no piece" in out) == (True, False)


def test_evaluate_scores_with_sacrebleu(model: str, files: dict[str, str], capsys: Capsys):
    command = ["evaluate", "--model", model, "--data", files["TEST"], "--beam-size", "2"]
    (line,) = objects(capsys, *command)
    assert (line["bleu"] > 20, line["chrf"] > 50, line["tokens_per_second"] > 0) == (
        True,
        True,
        True,
    )
    assert line["signature"].startswith("nrefs:1|case:mixed|eff:no|tok:13a")
    assert (0 < line["loss"] < 2, line["sentences"]) == (True, 12)
    out, _ = done(capsys, *command)
    assert out.startswith("BLEU ")
    assert "nats per token" in out


def test_attention_prints_a_table_from_one_and_saves_for_programs_from_zero(
    model, tmp_path: Path, capsys
):
    place = ["--kind", "cross", "--layer", "2", "--head", "4"]
    out, _ = done(capsys, "attention", "--model", model, "two three", *place)
    for words in (
        "cross attention, layer 2, head 4",
        "token read → token predicted",
        "audit: passed",
    ):
        assert words in out
    rows = done(capsys, "attention", "--model", model, "two three", "--kind", "decoder")[
        0
    ].splitlines()[3:-1]
    assert (rows[0].split()[-1] == "-", rows[-1].split()[-1] == "-") == (True, False)
    command = [
        "attention",
        "--model",
        model,
        "two three",
        "--target",
        "zwei",
        "--layer",
        "2",
        "--head",
        "3",
    ]
    (printed,) = objects(capsys, *command)
    assert (printed["layer"], printed["head"]) == (1, 2)
    for name in ("a.npz", "a.json"):
        done(capsys, *command, "--output", str(tmp_path / name))
    saved = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert {**saved, "device": printed["device"]} == printed
    with np.load(tmp_path / "a.npz", allow_pickle=False) as arrays:
        assert arrays["weights"] == pytest.approx(np.array(saved["weights"]), abs=1e-5)
        for name in ("key_tokens", "predicted_tokens"):
            assert arrays[name].tolist() == saved[name]


GOLD = [
    "It's an old house and it is not for sale .\tÉ uma casa antiga e não está à venda .\t"
    "0-0 1-1 2-3 3-2 4-4 6-6 7-5 8-7 9-8 10-9",
    "She doesn't know the name of the village .\tEla não sabe o nome da aldeia .\t"
    "0-0 1-1 2-2 3-3 4-4 5p5 6p5 7-6 8-7",
]


def test_align_scores_every_cross_head_whatever_apostrophe_is_pasted(
    tmp_path: Path, capsys: Capsys
):
    errors = []
    for name, apostrophe in (
        ("straight", "'"),
        ("curly", "’"),
        ("unknown", "ł"),
        ("split", "'\u200b"),
    ):
        gold = write(tmp_path / name, "\n".join(GOLD).replace("'", apostrophe) + "\n\n")
        errors.append(
            [line["aer"] for line in objects(capsys, "align", "--model", UNSPELT, "--data", gold)]
        )
    straight, curly, unknown, split = errors
    assert straight == curly == split
    assert min(unknown) < 0.1  # another word, whose links are counted as before


def test_generate_and_perplexity_say_what_the_language_model_gives(tmp_path: Path, capsys: Capsys):
    sample = [
        "--sample",
        "--top-p",
        "0.9",
        "--temperature",
        "0.5",
        "--seed",
        "3",
        "--max-length",
        "12",
    ]
    (line,) = objects(capsys, "generate", "--model", LANGUAGE, *sample, "The old house")
    assert line["prompt"] == "The old house"
    assert "".join(line["tokens"][: line["given"]]) == "▁The▁old▁house"
    assert len(line["log_probs"]) == len(line["tokens"]) <= 12
    texts = ["The old house is not for sale.", "She reads."]
    output = tmp_path / "found.json"
    data = write(tmp_path / "texts.txt", "\n".join(texts))
    command = ["perplexity", "--model", LANGUAGE, "--data", data, "--output", str(output)]
    assert "perplexity per word" in done(capsys, *command)[0]
    found = json.loads(output.read_text())["data"][data]
    model = load_language_model(LANGUAGE)
    total = sum(sum(model.force(text).log_probs) for text in texts)
    assert (found["texts"], found["words"]) == (2, 9)
    assert found["per_word"] == pytest.approx(math.exp(-total / 11), rel=1e-4)
    assert found["per_piece"] == pytest.approx(math.exp(-total / (found["pieces"] + 2)), rel=1e-4)


# --- refusals ------------------------------------------------------------------------------------

REFUSED: list[tuple[str, str]] = [
    ("translate --model models/nowhere x", "no model directory models/nowhere"),
    ("translate --model MODEL --beam-size 0 x", "beam size is 0"),
    ("translate --model MODEL --device abacus x", "'abacus' is unknown"),
    (
        "translate --model MODEL x --n-best 2",
        "--n-best is 2, but the beam keeps 1; give --beam-size 2.",
    ),
    ("translate --model MODEL x --beam-size 3 --n-best 0", "--n-best is 0; it must be at least 1."),
    (
        "translate --model MODEL --file x --output y --n-best 1",
        "--n-best is written to standard output;",
    ),
    ("evaluate --model MODEL --data LONG", "long.tsv:2: The text has 2,"),
    ("score --model MODEL --data none.tsv", "none.tsv: the file cannot be read"),
    ("attention --model MODEL x --layer 3", "no cross layer 3; this model has layers 1 to 2"),
    ("attention --model MODEL x --head 0", "no cross head 0; this model has heads 1 to 4"),
    ("attention --model MODEL x --output a.png", "must end in .npz or .json"),
    ("align --model MODEL --data VALID", "valid.tsv:1: expected source, tab, target, tab, links"),
    (
        "align --model MODEL --data INVISIBLE",
        "odd.tsv:2: a word of this pair has no visible character",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_bad_input_is_one_sentence(
    model: str, files: dict[str, str], capsys: Capsys, arguments, message
):
    places = files | {"MODEL": model}
    out, err = done(capsys, *(places.get(word, word) for word in arguments.split()), status=2)
    assert (out, len(err.strip().splitlines())) == ("", 1)
    assert message in err


@pytest.mark.parametrize("content", [b"", None])
def test_empty_standard_input_is_said(model: str, capsys: Capsys, monkeypatch, content):
    typed(monkeypatch, content)
    assert "nothing to translate" in done(capsys, "translate", "--model", model, status=2)[1]
