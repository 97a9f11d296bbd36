"""Train here: plans and pairs read or refused; a run at a time, within limits; what it logs and
keeps."""

import errno
import gzip
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from corpus import number_pairs
from programs import main
from safetensors.numpy import save_file
from waiting import until

from explorer.app.sections.training.live import points
from explorer.app.server import training
from explorer.app.server import training_plan as plans
from explorer.app.server.hosted import DISK, MEMORY, MINUTES, NICE, SWITCH
from explorer.app.server.models import ROOT, find
from explorer.app.server.training import (
    MARK,
    Log,
    TrainingRun,
    Workshop,
    difference,
    remove_leftovers,
)
from explorer.app.server.training_plan import OWN, TASKS, Plan, example, own_pairs
from transformer import load_translator
from transformer.text.pairs import DataError
from transformer.training.history import read_history

LINES = [f"one {i}\teins {i}" for i in range(60)]


def content(lines: list[str]) -> bytes:
    return "\n".join(lines).encode()


@pytest.mark.parametrize("task", TASKS)
def test_the_command_of_a_plan_is_one_that_the_package_knows(task: str, capsys) -> None:
    command = Plan(task=task, length=6, width=64, heads=2, layers=1, steps=200).arguments("run")
    assert "--device" not in command, "the rule of devices holds here, too"
    with pytest.raises(SystemExit, match="0"):
        main([*command, "--obey-input", "--help"])
    assert "usage" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("task", "../x"),
        ("length", 5.0),
        ("width", 4096),
        ("heads", 3),
        ("layers", 0),
        *(("steps", value) for value in (10**9, True, "100")),
    ],
)
def test_a_value_out_of_bounds_is_refused_by_its_name(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^{name} is {value!r}; it must be "):
        Plan(**{name: value})


@pytest.mark.parametrize(("count", "held_out", "packed"), [(60, 6, False), (10_000, 200, True)])
def test_a_file_is_read_and_one_pair_in_ten_is_held_out_but_at_most_200(count, held_out, packed):
    data = content([f"one {i}\teins {i}" for i in range(count)])
    pairs = own_pairs("a.tsv.gz", gzip.compress(data)) if packed else own_pairs("a.tsv", data)
    assert (len(pairs.train), len(pairs.valid)) == (count - held_out, held_out)
    assert not {pair.source for pair in pairs.train} & {pair.source for pair in pairs.valid}
    assert example(Plan(task=OWN), pairs) in pairs.valid


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (gzip.compress(b"a\tb\n" * 10**6), "unpacks to more than 2 MiB|more than 20,000 lines"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (content(["a b", *LINES]), "the file:1: expected source, tab, target"),
        (content(["a\t", *LINES]), "the file:1: the target is empty"),
        (content(["a\tb\tc", *LINES]), "found 3 columns"),
        (
            content([f"{chr(0x4E00 + i)}\ta" for i in range(1_100)]),
            "more signs than 1,000 pieces can spell",
        ),
        (content([f"{'long ' * 70}{i}\ta" for i in range(30)]), "sides of fewer than 64 tokens"),
        (content(LINES[:5] * 20), "5 different pairs; training needs at least 20"),
        (b"x" * (plans.LARGEST + 1), "at most 2 MiB are allowed"),
        (b"x" * (plans.BOUNDS.line + 1), "more than 8 KiB"),
        (content(["a\tb"] * (plans.BOUNDS.lines + 1)), "more than 20,000 lines"),
    ],
    ids=lambda each: each[:20] if isinstance(each, str) else None,
)
def test_a_bad_file_is_refused_in_one_sentence(data: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message) as refused:
        own_pairs("a.tsv.gz" if data[:2] == b"\x1f\x8b" else "a.tsv", data)
    assert "/" not in str(refused.value).replace("source, tab", "")


def test_the_example_of_a_toy_is_held_out_and_as_long_as_it_may_be() -> None:
    pair = example(Plan(task="reverse", length=8), None)
    assert len(pair.source.split()) == 8
    assert pair.target.split() == pair.source.split()[::-1]


# --- the log of a run ----------------------------------------------------------------------------


def line(step: int, **values: float) -> str:
    usual = {
        "loss": 1 / step,
        "learning_rate": 1e-3,
        "gradient_norm": 1.0,
        "tokens": 7,
        "seconds": 0.5,
    }
    return json.dumps({"step": step, **usual, **values}) + "\n"


def test_a_growing_log_is_read_on_and_a_half_written_line_waits(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = Log(path)
    assert log.steps() == []
    path.write_text(
        line(1) + line(2, valid_loss=3.0, valid_loss_average=2.0, exact=0.25) + line(3)[:9]
    )
    assert [each.step for each in log.steps()] == [1, 2]
    with path.open("a") as file:
        file.write(line(3)[9:] + "no JSON\n[]\n" + "[" * 50_000 + "\n" + line(4))
        file.write(line(5, loss=float("inf")) + line(6, seconds="1") + line(7, exact=10**400))
    steps = log.steps()
    assert [(each.step, each.loss) for each in steps] == [(step, 1 / step) for step in (1, 2, 3, 4)]
    assert points(steps) == {
        "training loss": [(step, pytest.approx(1 / step, rel=1e-5)) for step in (1, 2, 3, 4)],
        "validation loss": [(2, 2.0)],
        "exact matches": [(2, 0.25)],
    }
    assert set(map(len, points([]).values())) == {0}


@pytest.mark.parametrize(
    ("rows", "nats"),
    [
        (np.eye(5), math.log(5)),
        (np.eye(5)[[2, 2, 2]], 0),  # rows that are alike do not differ however sharp they are
        (np.full((4, 3), 1 / 3), 0),
        (
            np.array([[1, 0], [0.5, 0.5]]),
            0.75 * math.log(4 / 3) + 0.25 * math.log(4) - 0.5 * math.log(2),
        ),
    ],
)
def test_rows_that_each_look_at_a_key_of_their_own_differ_most(
    rows: np.ndarray, nats: float
) -> None:
    assert difference(rows) == pytest.approx(nats)


# --- a run ---------------------------------------------------------------------------------------

SMALL = Plan(task="copy", length=3, width=32, heads=2, layers=1, steps=100)
LONG = Plan(task="copy", length=3, width=32, heads=2, layers=1, steps=5000)


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRANSFORMER_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv(SWITCH, "on")
    monkeypatch.setenv(NICE, "3")
    return tmp_path / "models"


@pytest.fixture
def workshop(models: Path) -> Iterator[Workshop]:
    workshop = Workshop()
    yield workshop
    if workshop.run is not None:
        workshop.run.stop()
        outcome(workshop.run)


def outcome(run: TrainingRun | None) -> str:
    assert run is not None
    until(lambda: bool(run.outcome), 120)
    assert gone(run.pid)
    return run.outcome


def gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has fetched yet counts."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def begun(workshop: Workshop, plan: Plan = LONG) -> TrainingRun:
    """A run that has made its first steps."""
    workshop.start("anna", plan)
    run = workshop.run
    assert run is not None
    until(lambda: run.done > 0)
    return run


KILLED = """
import os, signal
from explorer.app.server.training import TrainingRun
from explorer.app.server.training_plan import Plan
run = TrainingRun(Plan(task="copy", length=3, width=32, heads=2, layers=1, steps=5000))
print(run.folder, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
"""A server that is killed while it has a run."""


def test_what_a_killed_server_left_is_removed_at_the_next_start_and_no_other_folder(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    killed = subprocess.run(
        [sys.executable, "-c", KILLED], cwd=ROOT, capture_output=True, text=True, check=False
    )
    left = Path(killed.stdout.strip())
    foreign = tmp_path / "training-data"
    foreign.mkdir()
    run = begun(workshop)
    assert left.parent == run.folder.parent == tmp_path
    assert left.is_dir()
    remove_leftovers()
    assert sorted(tmp_path.glob("training-*")) == sorted([foreign, run.folder])


def test_a_run_on_own_pairs_is_the_only_one_ends_and_its_model_is_kept(
    workshop: Workshop, models: Path
):
    lines = "\n".join("\t".join(pair) for pair in number_pairs(200)).encode()
    plan = Plan(task=OWN, width=32, heads=2, layers=1, steps=100)
    workshop.start("anna", plan, own_pairs("numbers.tsv", lines))
    run = workshop.run
    assert run is not None
    until(lambda: run.pid > 0)
    assert os.getpriority(os.PRIO_PROCESS, run.pid) >= 3
    with pytest.raises(ValueError, match="one at a time"):
        workshop.start("ben", SMALL)
    with pytest.raises(ValueError, match="no run that has ended"):
        workshop.keep("early")
    assert outcome(run) == "Finished all 100 steps."
    assert ([step.step for step in run.steps()], run.complete) == ([*range(1, 101)], True)
    assert run.steps()[-1].exact is not None
    workshop.keep("numbers")
    assert workshop.run is None
    assert find("numbers").path == models / "numbers"
    assert load_translator(models / "numbers").translate("one two").source_tokens
    card = (models / "numbers" / "README.md").read_text()
    assert "# numbers" in card
    assert "--output models/numbers" in card
    assert "--obey-input" not in card
    assert read_history(models / "numbers") is not None
    assert {path.name for path in models.iterdir()} == {"numbers"}
    assert not (models / "numbers" / "training.safetensors").exists()


def test_a_run_that_is_stopped_is_saved_and_another_takes_its_place(workshop: Workshop) -> None:
    run = begun(workshop)
    until(lambda: run.has_model)
    run.stop()
    assert outcome(run) == "Stopped, and saved after its last step."
    assert load_translator(run.directory)
    folder = run.folder
    workshop.start("ben", LONG)
    assert workshop.run is not None
    workshop.run.stop()
    assert outcome(workshop.run).startswith("Stopped, ")
    assert not folder.exists()


def test_a_killed_process_leaves_its_checkpoint(workshop: Workshop, models: Path) -> None:
    run = begun(workshop)
    os.kill(run.pid, signal.SIGKILL)
    assert (
        outcome(run)
        == "Its process was ended from outside (signal 9); its last checkpoint is kept."
    )
    workshop.keep("rescued")
    assert load_translator(models / "rescued")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (MINUTES, "1e-5", "1e-05 minutes"),
        (MEMORY, "1", "1 MB of memory"),
        (DISK, "1e-4", "0.0001 MB"),
    ],
)
def test_a_run_beyond_a_limit_is_stopped_with_a_reason(
    name, value, words, workshop, models, monkeypatch
):
    monkeypatch.setenv(name, value)
    workshop.start("anna", LONG)
    (models / "kept").mkdir()
    (models / "kept" / MARK).write_bytes(bytes(200))
    assert words in (why := outcome(workshop.run))
    assert why.endswith("the limit of this server.")


def test_a_full_disk_ends_a_run_in_one_sentence_and_keeps_the_checkpoint_before(
    workshop, monkeypatch
):
    monkeypatch.setattr(training, "nbytes_of", lambda *folders: 0)
    monkeypatch.setenv(DISK, "0.4")
    workshop.start("anna", LONG)
    file = "run/training.safetensors"
    assert outcome(workshop.run) == (
        f"It failed: {file} could not be written: File too large; its last checkpoint is kept."
    )
    workshop.keep("before")


@pytest.mark.parametrize(
    "reason", ["The run cannot begin: ", "whoever runs it can delete some", "switched off"]
)
def test_without_a_folder_or_room_or_leave_nothing_begins(reason, workshop, models, monkeypatch):
    if reason == "switched off":
        monkeypatch.setenv(SWITCH, "off")
    elif reason.startswith("whoever"):
        (models / "kept").mkdir(parents=True)
        (models / "kept" / MARK).touch()
        (models / "kept" / "large").write_bytes(b"0" * 2000)
        monkeypatch.setenv(DISK, "0.001")
    else:
        models.write_text("a file")
    with pytest.raises(ValueError, match=reason):
        workshop.start("anna", SMALL)
    assert workshop.run is None


SERVER = """
import sys, time
from explorer.app.server.training import TrainingRun
from explorer.app.server.training_plan import Plan
run = TrainingRun(Plan(task="copy", length=3, width=32, layers=1, steps=5000))
run.wait("", "")
while not run.done:
    time.sleep(0.05)  # the thread of the run computes meanwhile
print(run.pid, run.folder, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("ends", [subprocess.Popen.kill, lambda server: server.stdin.close()])
def test_a_server_takes_its_run_with_it_however_it_ends(ends) -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", SERVER], cwd=ROOT, **pipes) as server:
        assert server.stdout is not None
        pid, folder = server.stdout.readline().split()
        assert not gone(int(pid))
        ends(server)
    until(lambda: gone(int(pid)))
    shutil.rmtree(folder, ignore_errors=True)  # a server that was killed leaves it


@pytest.fixture
def left(workshop: Workshop, models: Path) -> TrainingRun:
    """A run that has ended, without training."""
    models.mkdir()
    workshop.run = TrainingRun(SMALL)
    workshop.run.directory.mkdir()
    for name in ("config.json", "model.safetensors"):
        (workshop.run.directory / name).write_text("{}")
    return workshop.run


HURTS = (
    "",
    ".",
    "..",
    "../x",
    "a/b",
    "a.b",
    "-a",
    "a" * 41,
    "ä",
    "a b",
    "a\n",
    "imported: x",
    "a\0",
)
REFUSED = dict.fromkeys(HURTS, "A name has 1 to 40 letters")
REFUSED |= dict.fromkeys(("en-de", "EN-DE", "positions", "Taken"), "already a model called")


@pytest.mark.usefixtures("left")
def test_a_model_is_kept_under_a_good_name_that_is_not_taken(
    workshop: Workshop, models: Path
) -> None:
    (models / "taken").mkdir()
    for name, reason in REFUSED.items():
        with pytest.raises(ValueError, match=reason):
            workshop.keep(name)
    workshop.keep("My_copy-2")
    assert (models / "My_copy-2" / "config.json").is_file()
    assert workshop.run is None
    with pytest.raises(ValueError, match="no run that has ended"):
        workshop.keep("again")


def test_of_two_servers_that_keep_a_model_under_one_name_the_slower_is_refused(
    left, workshop, models
):
    def slow(directory: Path) -> None:
        shutil.copytree(directory, models / directory.name)  # the other server was quicker

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "_finish", slow)
        with pytest.raises(ValueError, match=r"^The model cannot be kept: Directory not empty\.$"):
            workshop.keep("mine")
    assert {path.name for path in models.iterdir()} == {"mine"}
    assert workshop.run is left
    workshop.keep("other")


def test_a_model_with_a_card_of_any_bytes_and_a_damaged_log_is_kept(
    left: TrainingRun, workshop, models
):
    save_file({}, left.directory / "model.safetensors")
    (left.directory / "README.md").write_bytes(b"\n# run\n\xff --output run --obey-input")
    (left.directory / "log.jsonl").write_bytes(b"\xff\n" + b"[" * 50_000)
    workshop.keep("mine")
    assert (models / "mine" / "README.md").read_bytes() == b"\n# mine\n\xff --output models/mine"
    assert (models / "mine" / "log.jsonl").is_file()


def test_pairs_that_a_full_disk_interrupts_begin_no_run(workshop: Workshop, monkeypatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    lines = "\n".join("\t".join(pair) for pair in number_pairs(200)).encode()
    with pytest.raises(ValueError, match=r"^The run cannot begin: No space left on device\.$"):
        workshop.start("anna", Plan(task=OWN, steps=100), own_pairs("numbers.tsv", lines))
    assert workshop.run is None
