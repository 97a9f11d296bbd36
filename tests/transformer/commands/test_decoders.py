"""`generate` with decoders of others, in a conversation or not, and `models`, which lists them."""

import json
from pathlib import Path

import pytest
from decoder_models import END, TURN, write_decoder, write_gguf, write_vocabulary
from programs import main

from transformer import load_language_model
from transformer.families.registry import config_in
from transformer.hub.machine import Keeper, KeptModel
from transformer.storage import memory
from transformer.storage.description import parameter_count
from transformer.storage.memory import needed_bytes

Capsys = pytest.CaptureFixture[str]
TEMPLATE = (
    f"{{% for turn in messages %}}{TURN}{{{{ turn.role }}}} {{{{ turn.content }}}}{END}"
    f"{{% endfor %}}{TURN}assistant "
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models, as a directory and as a file, among folders that hold none."""
    folder = tmp_path_factory.mktemp("models")
    directory = folder / "language" / "llama"
    directory.mkdir(parents=True)
    write_decoder(directory, "Llama, groups of three", vocabulary=False)
    write_vocabulary(directory, chat_template=TEMPLATE)
    changes = {"tokenizer.chat_template": TEMPLATE}
    write_gguf(folder / "small.gguf", directory, "llama", **changes)
    (folder / "broken").mkdir()
    (folder / "broken" / "config.json").write_text('{"model_type": "mamba"}')
    (folder / "cut.gguf").write_bytes((folder / "small.gguf").read_bytes()[:2_000])
    (folder / "notes").mkdir()
    return folder


def lines(capsys: Capsys, *arguments: str, status: int = 0) -> list[str]:
    capsys.readouterr()
    assert main(arguments) == status
    captured = capsys.readouterr()
    return (captured.err if status == 2 else captured.out).splitlines()


@pytest.mark.parametrize("name", ["language/llama", "small.gguf"])
def test_a_chat_model_answers_and_the_line_is_the_answer_alone(
    folder: Path, capsys: Capsys, name: str
) -> None:
    path = str(folder / name)
    command = ["generate", "--model", path, "--chat", "--max-length", "40", "Hi"]
    (values,) = map(json.loads, lines(capsys, *command, "--json"))
    assert values["prompt"] == f"{TURN}user Hi{END}{TURN}assistant "
    model = load_language_model(path, "cpu")
    run = model.generate(chat=[{"role": "user", "content": "Hi"}], max_length=40)
    assert (values["given"], values["tokens"]) == (run.n_given, list(run.target_tokens))
    answer = model.text(run.target_ids[run.n_given :])
    assert "\n".join(lines(capsys, *command)) == answer
    assert TURN not in answer


def test_a_model_computes_in_16_bits_where_that_is_asked_for(folder: Path, capsys: Capsys) -> None:
    command = ["generate", "--model", str(folder / "small.gguf"), "--json", "--max-length", "9"]
    values = [
        json.loads(lines(capsys, *command, "--dtype", dtype, "the old")[0])
        for dtype in ("float32", "bfloat16")
    ]
    wide, narrow = (each["log_probs"] for each in values)
    assert wide != narrow
    assert narrow[0] == pytest.approx(wide[0], abs=0.2)
    with pytest.raises(SystemExit):
        main([*command, "--dtype", "float8", "the old"])
    assert "'float8' (choose from 'float32', 'bfloat16')" in capsys.readouterr().err


def test_without_a_template_a_conversation_is_refused(tmp_path: Path, capsys: Capsys) -> None:
    write_decoder(tmp_path, "GPT-2")
    command = ["generate", "--model", str(tmp_path), "--chat", "Hi"]
    capsys.readouterr()
    assert main(command) != 0
    assert "bring no chat template" in capsys.readouterr().err


def test_models_are_listed_with_sizes_and_what_cannot_be_opened_with_why(
    folder: Path, capsys: Capsys
) -> None:
    rows = list(map(json.loads, lines(capsys, "models", str(folder), "--json")))
    by_name = {Path(row.pop("model")).name: row for row in rows}
    assert list(by_name) == ["broken", "cut.gguf", "llama", "small.gguf"]
    broken = by_name.pop("broken")
    for row in (broken, by_name["cut.gguf"]):
        assert row.pop("found") == f"In {folder}"
        assert str(folder) in row.pop("path")
    assert "mamba" in broken.pop("error")
    cut = by_name.pop("cut.gguf")
    assert "cut off" in cut.pop("error")
    assert not broken | cut
    for name, kind in (("llama", "Llama"), ("small.gguf", "GGUF")):
        path = folder / ("language/llama" if name == "llama" else name)
        weights = path / "model.safetensors" if path.is_dir() else path
        parameters = parameter_count(config_in(path))
        assert by_name[name] == {
            "kind": kind,
            "path": str(path),
            "found": f"In {folder}",
            "architecture": "llama",
            "parameters": parameters,
            "disk": weights.stat().st_size,
            "memory": needed_bytes(config_in(path)),
        }
    (title, *listed, free) = lines(capsys, "models", str(folder))
    assert title == f"In {folder}:"
    assert free.endswith("of memory are free.")
    assert len(listed) == 4
    assert listed[0].startswith(f"  {folder}/broken: ")
    assert "llama (GGUF), 0.1 M parameters" in listed[-1]


def test_models_of_this_machine_are_listed_by_who_keeps_them(
    folder: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "models" / "own"
    own.mkdir(parents=True)
    (own / "config.json").write_text('{"vocab_size": 9, "architecture": "language_model"}')
    monkeypatch.setattr("transformer.commands.listing.BUNDLED", folder / "language")
    blob = tmp_path / f"sha256-{'0' * 64}"
    blob.write_bytes((folder / "small.gguf").read_bytes())
    kept = KeptModel(
        name="ollama/small:1b", title="small:1b", path=blob, nbytes=5, keeper=Keeper.OLLAMA
    )
    monkeypatch.setattr("transformer.commands.listing.kept_models", lambda: (kept,))
    monkeypatch.setattr("transformer.commands.listing.cached_models", list)
    monkeypatch.setattr("transformer.commands.listing.free_bytes", lambda: 1_000)
    listed = lines(capsys, "models")
    assert [line for line in listed if not line.startswith(" ")] == [
        "Bundled:",
        "In models:",
        "Ollama:",
        "1.0 kB of memory are free.",
    ]
    assert "LanguageModel (own)" in listed[3]
    assert listed[5].startswith(f"  small:1b ({blob}): llama (GGUF), ")
    assert listed[5].endswith("of memory, more than is free")
    rows = list(map(json.loads, lines(capsys, "models", "--json")))
    assert [row["found"] for row in rows] == ["Bundled", "In models", "Ollama"]
    assert rows[2]["disk"] == blob.stat().st_size
    assert load_language_model(blob, "cpu").continues


def test_a_model_that_does_not_fit_is_refused_with_both_numbers(
    folder: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    meminfo = folder / "meminfo"
    meminfo.write_text("MemTotal: 9 kB\nMemAvailable:      1000 kB\n")
    monkeypatch.setattr(memory, "_MEMINFO", meminfo)
    for name in ("language/llama", "small.gguf"):
        path = str(folder / name)
        (sentence,) = lines(capsys, "generate", "--model", path, "the", status=2)
        assert f"{path} needs 0.0 GB of memory, and 0.0 GB are free." in sentence
    monkeypatch.setattr(memory, "free_bytes", lambda: None)
    assert load_language_model(folder / "small.gguf", "cpu").continues
