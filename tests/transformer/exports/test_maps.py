"""A run with the maps of all its heads: the file gives back the very arrays that the model computed."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from transformer import Translation, Translator, Window
from transformer.exports.maps import MappedRun, load_maps, save_maps
from transformer.run import NotCapturedError
from transformer.storage.description import model_digests
from transformer.storage.directory import save_checkpoint

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
def mapped(translation: Translation, directory: Path, tmp_path_factory: pytest.TempPathFactory) -> MappedRun:
    path = tmp_path_factory.mktemp("maps") / "first.npz"
    save_maps(translation, directory, path)
    return load_maps(path)


def test_every_map_is_the_one_that_the_model_computed(translation: Translation, mapped: MappedRun):
    for kind, site in translation.config.sites.items():
        for layer in range(site.n_layers):
            for head in range(translation.config.n_heads):
                here, there = mapped.map(kind, layer, head), translation.head(kind, layer, head)
                for name in ("weights", "scores", "mask"):
                    assert np.array_equal(getattr(here, name), getattr(there, name))
                assert here.audit == there.audit
                assert here.audit.passed
                for name in ("query_tokens", "predicted_tokens", "key_tokens", "window", "model", "norm"):
                    assert getattr(here, name) == getattr(there, name)
                assert np.array_equal(mapped.weights(kind, layer, head), here.weights)
                assert np.array_equal(mapped.mask(kind, layer, head), here.mask)
    with pytest.raises(NotCapturedError):
        mapped.head("cross", 0, 0)


def test_text_tokens_steps_and_the_digests_of_the_model_come_back(translation, mapped, directory: Path):
    names = "source_text text source_tokens target_tokens steps log_probs method notes"
    for name in names.split():
        assert getattr(mapped, name) == getattr(translation, name)
    assert mapped.digests == model_digests(directory)


def test_a_window_of_a_map_is_a_part_of_it(translation: Translation, mapped: MappedRun):
    window = Window(1, 3, 0, 2)
    here, there = (run.map("cross", 0, 1, window) for run in (mapped, translation))
    assert np.array_equal(here.weights, there.weights)
    assert (here.predicted_tokens, here.key_tokens) == (there.predicted_tokens, there.key_tokens)


def test_the_file_is_read_without_pytorch():
    code = "import sys; from transformer.exports.maps import load_maps; load_maps(sys.argv[1])"
    code += "; print('torch' in sys.modules)"
    command = [sys.executable, "-c", code, str(ROOT / "assets/models/en-de/first.npz")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
