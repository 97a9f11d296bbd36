from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from closed_form import CASES

from transformer import interventions as do
from transformer import load_translator
from transformer.interventions import HeadMeans
from transformer.storage.description import MEANS_FILE, WEIGHTS_FILE
from transformer.storage.directory import read_means, write_means
from transformer.storage.files import CheckpointError


@pytest.fixture
def directory(closed_form_models, tmp_path: Path) -> Path:
    return Path(shutil.copytree(closed_form_models["copy"], tmp_path / "copy"))


def means_of(config, seed=0) -> HeadMeans:
    generator = torch.Generator().manual_seed(seed)
    shape = config.n_heads, config.d_head
    outputs = {
        kind: torch.randn(site.n_layers, *shape, generator=generator) for kind, site in config.sites.items()
    }
    return HeadMeans(outputs, {"data": "three pairs"})


def test_a_model_with_means_can_be_ablated_by_them_and_one_without_says_so(directory):
    sentence, change = CASES["copy"].sentence, do.ablate("cross", 0, 0, by="mean")
    with pytest.raises(do.InterventionError, match="has no mean outputs"):
        load_translator(directory).translate(sentence, interventions=[change])
    translator = load_translator(directory)
    means = means_of(translator.config)
    write_means(directory, means)
    opened = load_translator(directory)
    assert opened.means.about == {"data": "three pairs"}
    changed = opened.translate(sentence, max_length=3, interventions=[change])
    output = changed.attention.layer("cross", 0).output[0]
    assert (output == means.outputs["cross"][0, 0]).all()
    assert changed.attention.audit().passed


def test_means_of_other_weights_are_not_used(directory):
    config = load_translator(directory).config
    write_means(directory, means_of(config))
    with (directory / WEIGHTS_FILE).open("ab") as file:
        file.write(b" ")
    assert read_means(directory, config) is None


def test_a_damaged_file_or_one_of_another_model_is_refused_in_one_sentence(directory):
    config = load_translator(directory).config
    write_means(directory, means_of(config))
    content = (directory / MEANS_FILE).read_bytes()
    wrong = means_of(config)
    outputs = {kind: outputs[:, :1] for kind, outputs in wrong.outputs.items()}
    write_means(directory, HeadMeans(outputs, {}))
    with pytest.raises(CheckpointError, match=r"another model; remove it\.$"):
        read_means(directory, config)
    (directory / MEANS_FILE).write_bytes(content[:100])
    with pytest.raises(CheckpointError, match="damaged"):
        read_means(directory, config)
