"""The study of ways back, on a model set by hand whose answers go through one head."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from corpus import write_pairs

from lab.__main__ import main
from lab.studies.way_back import told
from transformer import interventions, load_translator
from transformer.storage.description import WAY_BACK_FILE, model_digests
from transformer.storage.files import read_json


def test_the_head_that_writes_a_token_is_switched_off(tmp_path: Path, closed_form_models: dict[str, Path]):
    directory = tmp_path / "model"
    shutil.copytree(closed_form_models["copy"], directory)
    text = "seven six five four three two"
    data = write_pairs(tmp_path / "pairs.tsv", [(text, "one"), ("one two three four five six seven", "one")])
    assert main(["way-back", "--model", str(directory), "--data", str(data), "--sentences", "1"]) == 0
    found = read_json(directory / WAY_BACK_FILE)
    assert found["digests"] == model_digests(directory)
    model = load_translator(directory)
    run = model.translate(text)
    step = int(np.random.default_rng(1).integers(len(run.steps)))
    writes, other = (
        model.force(text, run.target_ids, interventions=[interventions.ablate("cross", 0, head)])
        for head in (0, 1)
    )
    own = run.log_probs[step]
    assert found["own"]["value"] == pytest.approx(writes.log_probs[step] - own, rel=1e-3)
    assert found["other"]["value"] == pytest.approx(other.log_probs[step] - own, rel=1e-3, abs=1e-6)
    assert found["apart"]["value"] == pytest.approx(found["own"]["value"] - found["other"]["value"], abs=1e-4)
    assert f"costs more in {100 * found['more']:.0f} % of" in " ".join(map(str, told(found).parts))
