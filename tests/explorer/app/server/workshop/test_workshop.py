"""The workshop: plans and pairs read or refused; a run at a time, within limits; what it logs and keeps."""

import errno
import gzip
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from corpus import number_pairs
from hypothesis import given
from programs import main
from properties import PROPERTY, as_file, damaged, or_refused
from safetensors.numpy import save_file
from waiting import until

from explorer.app.server.hosted import DISK, MEMORY, MINUTES, NICE, SWITCH
from explorer.app.server.models import find
from explorer.app.server.workshop import plan as plans
from explorer.app.server.workshop.plan import OWN, PLAN_FILE, TASKS, Plan, TrainingOrder, example, own_pairs
from explorer.app.server.workshop.run import POINTS, ROOT, Log, difference
from explorer.app.server.workshop.workshop import FOLDER, Workshop
from transformer import load_translator
from transformer.text.pairs import DataError, SentencePair
from transformer.training.history import read_history

LINES = [f"one {i}\teins {i}" for i in range(60)]


def content(lines: list[str]) -> bytes:
    return "\n".join(lines).encode()


@pytest.mark.parametrize("task", TASKS)
def test_an_order_survives_being_written_and_its_command_is_one_that_the_package_knows(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = Plan(task=task, length=6, width=64, heads=2, layers=1, steps=200)
    order = TrainingOrder(plan, SentencePair("a b", "b a"))
    order.write(tmp_path)
    assert TrainingOrder.read(tmp_path) == order
    command = plan.arguments("run")
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


@PROPERTY
@given(damaged(asdict(Plan())))
def test_a_damaged_plan_is_refused_in_one_sentence_or_survives(values) -> None:
    with or_refused(ValueError), tempfile.TemporaryDirectory() as folder:
        written = {"plan": values, "shown": {"source": "a", "target": "b"}}
        (Path(folder) / PLAN_FILE).write_text(json.dumps(written))
        order = TrainingOrder.read(Path(folder))
        assert Plan(**as_file(asdict(order.plan))) == order.plan


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
        (content([f"{chr(0x4E00 + i)}\ta" for i in range(900)]), "different characters, and no vocabulary"),
        (content([f"{'long ' * 70}{i}\ta" for i in range(30)]), "pairs that are learned have a side of 64"),
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


# --- the log of a run ---------------------------------------------------------------------------------------


def line(step: int, **values: float) -> str:
    usual = {"loss": 1 / step, "learning_rate": 1e-3, "gradient_norm": 1.0, "tokens": 7, "seconds": 0.5}
    return json.dumps({"step": step, **usual, **values}) + "\n"


def test_a_growing_log_is_read_on_and_a_half_written_line_waits(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = Log(path)
    assert log.curves().step == 0
    path.write_text(line(1) + line(2, valid_loss=3.0, valid_loss_average=2.0, exact=0.25) + line(3)[:9])
    first = log.curves()
    assert (first.step, first.seconds) == (2, 1.0)
    assert (first.valid, first.exact) == (((2, 2.0),), ((2, 0.25),))
    with path.open("a") as file:
        file.write(line(3)[9:] + "no JSON\n[]\n" + "[" * 50_000 + "\n" + line(4))
        file.write(line(5, loss=float("inf")) + line(6, seconds="1") + line(7, exact=10**400))
    assert log.curves().loss == tuple((step, pytest.approx(1 / step)) for step in (1, 2, 3, 4))


def test_a_long_log_becomes_means_of_neighbouring_steps(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(line(step) for step in range(1, 2 * POINTS + 1)))
    means = tuple(
        (step, pytest.approx((1 / step + 1 / (step - 1)) / 2)) for step in range(2, 2 * POINTS + 1, 2)
    )
    assert Log(path).curves().loss == means


@pytest.mark.parametrize(
    ("rows", "nats"),
    [
        (np.eye(5), math.log(5)),
        (np.eye(5)[[2, 2, 2]], 0),  # rows that are alike do not differ however sharp they are
        (np.full((4, 3), 1 / 3), 0),
        (np.array([[1, 0], [0.5, 0.5]]), 0.75 * math.log(4 / 3) + 0.25 * math.log(4) - 0.5 * math.log(2)),
    ],
)
def test_rows_that_each_look_at_a_key_of_their_own_differ_most(rows: np.ndarray, nats: float) -> None:
    assert difference(rows) == pytest.approx(nats)


# --- a run --------------------------------------------------------------------------------------------------

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
    made = Workshop(models)
    yield made
    made.close()
    assert made.run is None or made.run.wait(60)


def ended(workshop: Workshop) -> str:
    assert workshop.run is not None
    assert workshop.run.wait(120)
    return workshop.run.told


def step(workshop: Workshop) -> int:
    assert workshop.run is not None
    return workshop.run.curves().step


def test_a_run_on_own_pairs_obeys_its_visitor_alone_and_its_model_is_kept(workshop, models):
    lines = "\n".join("\t".join(pair) for pair in number_pairs(200)).encode()
    plan = Plan(task=OWN, width=32, heads=2, layers=1, steps=100)
    workshop.start("anna", plan, own_pairs("numbers.tsv", lines))
    run = workshop.run
    assert run is not None
    assert os.getpriority(os.PRIO_PROCESS, run.pid or 0) >= 3
    with pytest.raises(ValueError, match="one at a time"):
        workshop.start("ben", SMALL)
    assert not workshop.controls("ben")
    assert workshop.controls("anna")
    run.pause()
    assert run.paused
    with pytest.raises(ValueError, match="no run that has ended"):
        workshop.keep("early")
    run.go_on()
    assert ended(workshop) == "Finished all 100 steps."
    assert run.curves().step == 100
    assert run.curves().exact
    workshop.keep("numbers")
    assert workshop.run is None
    assert find("numbers").path == models / "numbers"
    assert load_translator(models / "numbers").translate("one two").source_tokens
    assert "# numbers" in (models / "numbers" / "README.md").read_text()
    assert read_history(models / "numbers") is not None
    assert not (models / FOLDER / "run").exists()


def test_a_killed_process_leaves_its_checkpoint_and_another_server_finds_it(workshop, models):
    workshop.start("anna", LONG)
    until(lambda: step(workshop) > 0)
    assert workshop.run is not None
    with pytest.raises(ValueError, match="Another server"):
        Workshop(models).start("ben", SMALL)
    os.kill(workshop.run.pid or 0, signal.SIGKILL)
    assert ended(workshop) == "Its process was ended from outside (signal 9); its last checkpoint is kept."
    workshop.close()
    again = Workshop(models)
    assert again.run is not None
    assert again.run.order == workshop.run.order
    assert not again.controls("anna")
    assert "started again" in again.run.told
    again.keep("rescued")
    assert load_translator(models / "rescued")


def test_a_run_that_is_stopped_while_it_pauses_is_saved(workshop: Workshop) -> None:
    workshop.start("anna", LONG)
    until(lambda: step(workshop) > 0)
    assert workshop.run is not None
    workshop.run.pause()
    workshop.run.stop()
    assert ended(workshop) == "Stopped, and saved after its last step."
    assert workshop.run.has_model
    assert not workshop.run.paused


@pytest.mark.parametrize(("name", "value"), [(MINUTES, "1e-5"), (MEMORY, "1"), (DISK, "1e-4")])
def test_a_run_beyond_a_limit_is_stopped_with_a_reason(name, value, workshop, monkeypatch):
    monkeypatch.setenv(name, value)
    workshop.start("anna", LONG)
    assert f"{float(value):g} M" in (told := ended(workshop)) or f"{float(value):g} minutes" in told
    assert told.endswith("the limit of this server.")


def test_a_full_disk_ends_a_run_in_one_sentence_and_keeps_the_checkpoint_before(workshop, monkeypatch):
    monkeypatch.setattr(Workshop, "_used", lambda self: 0)
    monkeypatch.setenv(DISK, "0.4")
    workshop.start("anna", LONG)
    file = "run/training.safetensors"
    assert ended(workshop) == (
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
        (models / "kept" / "trained-here").touch()
        (models / "kept" / "large").write_bytes(b"0" * 2000)
        monkeypatch.setenv(DISK, "0.001")
    else:
        models.write_text("a file")
    with pytest.raises(ValueError, match=reason):
        workshop.start("anna", SMALL)
    assert workshop.run is None


SERVER = """
import sys
from pathlib import Path
from explorer.app.server.hosted import Limits
from explorer.app.server.workshop import plan as plans
from explorer.app.server.workshop.plan import Plan, TrainingOrder, example
from explorer.app.server.workshop.run import TrainingRun
plan = Plan(task="copy", length=3, width=32, layers=1, steps=5000)
run = TrainingRun(TrainingOrder(plan, example(plan, None)), Path(sys.argv[1]))
run.begin(Limits(nice=0), lambda: 0)
run.pause()
print(run.pid, flush=True)
sys.stdin.read()
"""


def test_a_killed_server_takes_its_run_with_it_even_while_it_pauses(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SERVER, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, **pipes) as server:
        assert server.stdout is not None
        pid = int(server.stdout.readline())
        server.kill()
    until(lambda: gone(pid))


def gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has fetched yet counts."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.fixture
def left(models: Path) -> Workshop:
    """A workshop with a run that has ended, without training."""
    folder = models / FOLDER / "run"
    (folder / "run").mkdir(parents=True)
    TrainingOrder(SMALL, SentencePair("a b", "a b")).write(folder)
    for name in ("config.json", "model.safetensors"):
        (folder / "run" / name).write_text("{}")
    return Workshop(models)


HURTS = ("", ".", "..", "../x", "a/b", "a.b", "-a", "a" * 41, "ä", "a b", "a\n", "imported: x", "a\0")
REFUSED = dict.fromkeys(HURTS, "A name has 1 to 40 letters")
REFUSED |= dict.fromkeys(("en-de", "EN-DE", "positions", "Taken"), "already a model called")


def test_a_model_is_kept_under_a_good_name_that_is_not_taken(left: Workshop, models: Path) -> None:
    (models / "taken").mkdir()
    for name, reason in REFUSED.items():
        with pytest.raises(ValueError, match=reason):
            left.keep(name)
    left.keep("My_copy-2")
    assert (models / "My_copy-2" / "config.json").is_file()
    assert left.run is None
    with pytest.raises(ValueError, match="no run that has ended"):
        left.keep("again")


@pytest.mark.parametrize("content", ['{"plan": [], "shown": 3}', "[" * 50_000])
def test_a_run_whose_plan_is_damaged_is_not_deleted_for_another(left, models, content):
    left.close()
    (models / FOLDER / "run" / PLAN_FILE).write_text(content)
    again = Workshop(models)
    assert again.run is None
    with pytest.raises(ValueError, match=r"plan\.json is damaged; whoever runs this server can move"):
        again.start("anna", SMALL)
    assert (models / FOLDER / "run" / "run" / "model.safetensors").is_file()
    again.close()


def test_a_model_with_a_card_of_any_bytes_and_a_damaged_log_is_kept(left: Workshop, models: Path) -> None:
    run = models / FOLDER / "run" / "run"
    save_file({}, run / "model.safetensors")
    (run / "README.md").write_bytes(b"\n# run\n\xff --output run --obey-input")
    (run / "log.jsonl").write_bytes(b"\xff\n" + b"[" * 50_000)
    left.keep("mine")
    assert (models / "mine" / "README.md").read_bytes() == b"\n# mine\n\xff --output models/mine"
    assert (models / "mine" / "log.jsonl").is_file()


def test_pairs_that_a_full_disk_interrupts_leave_no_half_file_and_begin_no_run(workshop, models, monkeypatch):
    def full(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink().name.startswith(".train.tsv"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    lines = "\n".join("\t".join(pair) for pair in number_pairs(200)).encode()
    with pytest.raises(ValueError, match=r"^The run cannot begin: No space left on device\.$"):
        workshop.start("anna", Plan(task=OWN, steps=100), own_pairs("numbers.tsv", lines))
    assert workshop.run is None
    assert {path.name for path in (models / FOLDER / "run").iterdir()} == {PLAN_FILE}
