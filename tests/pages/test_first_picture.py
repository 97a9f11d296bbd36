"""The first picture of a cold server: drawn without PyTorch and pandas, which then load behind
it."""

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
NEEDED = [
    "explorer.app.address.session",
    "explorer.linked.view",
    "explorer.app.server.runs",
    "explorer.app.shell.sentence",
]
HEAVY = ["torch", "pandas", "pyarrow", "matplotlib"]
VISIT = f"""
import importlib, json, sys
from streamlit.testing.v1 import AppTest
def heavy():
    return sorted(set(sys.modules) & set({HEAVY}))
def opened():
    at = AppTest.from_file("app.py", default_timeout=60).run()
    assert not at.exception, at.exception
    return at
def feeds(at):
    told = [json.loads(each.proto.json) for each in at.get("bidi_component") if each.proto.json]
    return {{data[0]["name"]: data[0] for data in told if isinstance(data, list) and "name" in data[0]}}
def state(at):
    now = at.session_state["state"]
    return [now.step, now.encoder, now.decoder, now.cross]
found = {{"modules": {{}}}}
for name in {NEEDED}:
    importlib.import_module(name)
    found["modules"][name] = heavy()
first = opened()
found["first"] = [heavy(), feeds(first), state(first)]
at = opened()
before = feeds(at)["cross"]["title"]
at.query_params["cross"] = "3.4"
at.run()
for toggle in (each for each in at.toggle if "Source share" not in each.label):
    toggle.set_value(True)
at.run()
assert not at.exception, at.exception
found["settings"] = [heavy(), before != feeds(at)["cross"]["title"]]
at = opened()
found["waiting"] = heavy()
at.text_input[0].set_value("We like music.").run()
assert not at.exception, at.exception
found["own"] = [heavy(), "".join(chip["text"] for chip in feeds(at)["strips"]["source"])]
from explorer.app.server import models, runs
from explorer.app.server.run_key import RunKey
models.loading.wait()
first.run()
assert not first.exception, first.exception
asked = RunKey.of(first.session_state["state"], models.find("en-de"), first.text_input[0].value)
assert runs.translate(asked).attention is not None
found["live"] = [feeds(first), state(first)]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def visit() -> dict[str, Any]:
    """What a fresh Python had loaded, and what it drew, after each step of a visit."""
    command = [sys.executable, "-c", VISIT]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_what_the_first_picture_needs_loads_no_pytorch(visit: dict[str, Any]):
    assert visit["modules"] == {name: [] for name in NEEDED}


def test_the_first_page_is_drawn_without_pytorch(visit: dict[str, Any]):
    loaded, drawn, _ = visit["first"]
    assert loaded == []
    assert {"strips", "encoder", "decoder", "cross", "next"} <= set(drawn)


def test_other_heads_and_settings_are_drawn_without_pytorch(visit: dict[str, Any]):
    assert visit["settings"] == [[], True]


def test_an_own_sentence_waits_for_the_model_and_is_translated(visit: dict[str, Any]):
    loaded, words = visit["own"]
    assert visit["waiting"] == []
    assert "torch" in loaded
    assert words.startswith("Welikemusic.")


def alike(here: object, there: object) -> bool:
    """Whether two values of feeds are equal but for rounding: 1e-5 in numbers, one level in
    colours."""
    if isinstance(here, dict) and "bdata" in here:
        one, other = (
            np.frombuffer(base64.b64decode(each["bdata"]), each["dtype"]) for each in (here, there)
        )
        close = 1 if here["dtype"] == "u1" else 1e-5 * max(1, np.abs(one).max())
        return one.shape == other.shape and np.abs(one.astype(float) - other).max() <= close
    if isinstance(here, dict):
        return list(here) == list(there) and all(alike(here[name], there[name]) for name in here)
    if isinstance(here, list):
        return len(here) == len(there) and all(map(alike, here, there))
    if isinstance(here, str) and here.startswith("{"):
        return alike(json.loads(here), json.loads(there))
    return here == there


def test_the_live_run_draws_what_the_shipped_one_drew(visit: dict[str, Any]):
    _, before, at_first = visit["first"]
    after, later = visit["live"]
    assert later == at_first
    for each in (*before.values(), *after.values()):
        each.pop("badge", None)  # it says how far rounding went
    after.pop("proof")  # of the live run, made after its pictures were sent
    for name in before:
        assert alike(before[name], after[name]), name
    assert list(before) == list(after)
