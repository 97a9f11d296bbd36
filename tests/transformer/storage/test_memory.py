"""How much memory a model needs, and how much there is."""

from pathlib import Path

import pytest

from transformer.config import LanguageModelConfig, TransformerConfig
from transformer.model import LanguageModel, Transformer
from transformer.storage import memory
from transformer.storage.description import numbers_held, parameter_count

SIZES = {"vocab_size": 500, "d_model": 32, "d_ff": 64, "n_heads": 4}


def test_free_memory_is_what_the_machine_and_the_container_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:   2000 kB\n")
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_GROUP", tmp_path)
    assert memory.free_bytes() == 2_048_000
    group = {"max": "1000000", "current": "700000", "stat": "anon 5\ninactive_file 100000\n"}
    for name, text in group.items():
        (tmp_path / f"memory.{name}").write_text(text)
    assert memory.free_bytes() == 400_000
    (tmp_path / "memory.current").write_text("2000000")
    assert memory.free_bytes() == 0
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.free_bytes() == 2_048_000
    (tmp_path / "meminfo").unlink()
    assert memory.free_bytes() is None


@pytest.mark.parametrize("positions", ["none", "rotary", "learned", "alibi"])
def test_only_learned_tables_of_positions_are_parameters(positions: str) -> None:
    config = LanguageModelConfig(**SIZES, n_layers=2, positions=positions, max_positions=3_000)
    model = LanguageModel(config)
    learned = sum(parameter.numel() for parameter in model.parameters())
    assert parameter_count(config) == pytest.approx(learned, rel=0.03)
    computed = sum(table.numel() for table in model.buffers())
    assert numbers_held(config) == pytest.approx(learned + computed, rel=0.03)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_each_stack_has_its_own_positions(positions: str) -> None:
    layers = {"n_encoder_layers": 1, "n_decoder_layers": 1}
    config = TransformerConfig(**SIZES, **layers, positions=positions, max_positions=3_000)
    model = Transformer(config)
    learned = sum(parameter.numel() for parameter in model.parameters())
    assert parameter_count(config) == pytest.approx(learned, rel=0.03)
    computed = sum(table.numel() for table in model.buffers())
    assert numbers_held(config) == pytest.approx(learned + computed, rel=0.03)


def test_a_model_needs_four_bytes_a_number() -> None:
    config = LanguageModelConfig(**SIZES, n_layers=2)
    assert memory.needed_bytes(config) == 4 * numbers_held(config)
