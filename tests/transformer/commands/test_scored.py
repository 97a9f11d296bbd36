"""`score` and `translate --n-best`: log-probabilities of given translations, and all that a beam found."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path

import pytest
from marian_models import write_marian
from programs import main
from published import model_of, tokenizer_of

from transformer.beam import beam_search
from transformer.decoding import DecodingState, Node, NodeState, finish, pad
from transformer.requests import Request
from transformer.translator import load_translator

MODEL, UNSPELT = "assets/models/en-de", "assets/models/en-pt"
PAIRS = [("The house is old.", "Das Haus ist alt."), ("He took a key.", "Er nahm einen Schlüssel mit.")]
TEXT = "the cat sat on a hat with two red dogs ."


def test_score_prints_what_forcing_gives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pairs.tsv.gz"
    path.write_bytes(gzip.compress("\n".join("\t".join(pair) for pair in PAIRS).encode()))
    command = ["score", "--model", MODEL, "--data", str(path)]
    assert main([*command, "--json", "--tokens"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    translator = load_translator(MODEL)
    for pair, line in zip(PAIRS, found, strict=True):
        forced = translator.force(*pair, capture=False)
        assert line["log_probs"] == pytest.approx(forced.log_probs, abs=1e-5)
        assert line["log_prob"] == pytest.approx(sum(forced.log_probs), abs=1e-5)
        assert line["tokens"] == len(line["target_tokens"]) == len(forced.log_probs)
        assert line["mean"] == pytest.approx(line["log_prob"] / line["tokens"], abs=1e-5)
    assert found[0]["target_tokens"] == list(translator.force(*PAIRS[0]).target_tokens)
    assert main([*command, "--tokens"]) == 0
    first = capsys.readouterr().out.splitlines()[0].split("\t")
    assert [float(first[0]), int(first[1]), float(first[2])] == [
        found[0][name] for name in ("log_prob", "tokens", "mean")
    ]
    assert first[3].split() == found[0]["target_tokens"]
    assert [float(value) for value in first[4].split()] == found[0]["log_probs"]


def test_lines_keep_their_places_and_the_bad_ones_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transformer.commands.lines.AT_ONCE", 2)
    path, good = tmp_path / "pairs.tsv", "\t".join(PAIRS[0]).encode()
    lines = [good, b"", b"The house\t ", b"caf\xe9\tx", b"a\tb\tc", b"x\t" + b"y " * 1100, good]
    path.write_bytes(b"\n".join(lines) + b"\n")
    command = ["score", "--model", MODEL, "--data", str(path)]
    assert main(command) == 1
    captured = capsys.readouterr()
    written = captured.out.split("\n")
    assert [bool(line) for line in written] == [True, *[False] * 5, True, False]
    assert written[0] == written[6]
    said = captured.err.splitlines()
    reasons = ["the target is empty", "not UTF-8", "found 3 columns", "The translation has"]
    for number, (line, reason) in enumerate(zip(said, reasons, strict=True), start=3):
        assert line.startswith(f"{path}:{number}: ")
        assert reason in line
    assert main([*command, "--json"]) == 1
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    device = str(load_translator(MODEL).device)
    assert found[1] == {"log_prob": None, "tokens": 0, "mean": None, "device": device}
    assert found[2]["error"] == said[0]


@pytest.mark.parametrize(("command", "links"), [("score", ""), ("evaluate", ""), ("align", "\t0-0")])
def test_what_has_no_piece_on_either_side_is_said(
    command: str, links: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(f"It costs £5.\tCusta £5.{links}\nIt costs 5.\tCusta £5.{links}\n", encoding="utf-8")
    assert main([command, "--model", UNSPELT, "--data", str(path)]) == 0
    captured = capsys.readouterr()
    assert captured.err.endswith("2 lines: This model has no piece for £; it reads it as unknown.\n")
    assert len(captured.out.splitlines()) >= 2


def test_a_missing_file_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "--model", MODEL, "--data", "none.tsv"]) == 2
    assert capsys.readouterr().err.startswith("none.tsv: the file cannot be read")


def test_the_best_translations_are_those_that_the_search_finished(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text, history = "The old man took a key out of his pocket.", list[Node]()
    translator = load_translator(MODEL)
    ids = (*translator.ids(text), translator.config.eos_id)
    request = DecodingState(translator.model, pad([ids], translator.config.pad_id).to(translator.device))
    finish(beam_search(request, Request(translator, text).limit, 4, translator.rules, history))
    finished = [node for node in history if node.state in (NodeState.FINISHED, NodeState.CUT)]
    expected = [node.hypothesis() for node in sorted(finished, key=lambda node: -node.score)]
    assert len(expected) == 4
    for count in (4, 2):
        command = ["translate", "--model", MODEL, text, "--beam-size", "4", "--n-best", str(count)]
        assert main([*command, "--json"]) == 0
        line = json.loads(capsys.readouterr().out)
        found = line["n_best"]
        assert [each["rank"] for each in found] == list(range(1, count + 1))
        assert found[0]["text"] == line["text"]
        assert found[0]["target_tokens"] == line["target_tokens"]
        for each, hypothesis in zip(found, expected[:count], strict=True):
            assert each["text"] == translator.text(hypothesis.token_ids)
            assert each["score"] == pytest.approx(hypothesis.score, abs=1e-5)
            assert each["log_probs"] == pytest.approx(hypothesis.log_probs, abs=1e-5)
        assert main(command) == 0
        lines = [row.split("\t") for row in capsys.readouterr().out.splitlines()]
        assert lines == [[str(each["rank"]), f"{each['score']:.5f}", each["text"]] for each in found]


@pytest.mark.parametrize("seed", [0, 1])
def test_the_best_translations_are_the_reference_s(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    model = write_marian(tmp_path / "marian", seed=seed)
    tokenizer = tokenizer_of("marian", model)
    options = {"num_beams": 4, "num_return_sequences": 4, "output_scores": True}
    expected = model_of(model).generate(
        **tokenizer(TEXT, return_tensors="pt"), return_dict_in_generate=True, **options
    )
    assert (
        main(["translate", "--model", str(model), TEXT, "--beam-size", "4", "--n-best", "4", "--json"]) == 0
    )
    found = json.loads(capsys.readouterr().out)["n_best"]
    assert [each["score"] for each in found] == pytest.approx(expected.sequences_scores.tolist(), abs=1e-4)
    texts = [tokenizer.decode(ids, skip_special_tokens=True) for ids in expected.sequences]
    assert [each["text"] for each in found] == texts


def test_a_blank_text_has_no_translations_and_keeps_its_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for more in ([], ["--json"]):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"The cat sleeps.\n\nThe house.\n")))
        assert main(["translate", "--model", MODEL, "--beam-size", "2", "--n-best", "2", *more]) == 0
        lines = capsys.readouterr().out.split("\n")
        if more:
            assert [len(json.loads(line)["n_best"]) for line in lines[:-1]] == [2, 0, 2]
        else:
            assert [line[:2] for line in lines] == ["1\t", "2\t", "", "1\t", "2\t", ""]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["x", "--n-best", "2"], "--n-best is 2, but the beam keeps 1; give --beam-size 2."),
        (["x", "--beam-size", "3", "--n-best", "0"], "--n-best is 0; it must be at least 1."),
        (["--file", "x", "--output", "y", "--n-best", "1"], "--n-best is written to standard output;"),
    ],
)
def test_what_a_beam_does_not_keep_is_one_sentence(
    capsys: pytest.CaptureFixture[str], more: list[str], reason: str
) -> None:
    assert main(["translate", "--model", MODEL, *more]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(reason)
