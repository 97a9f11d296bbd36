"""Where models compute: the rule, what overrides it, and what happens when a GPU has no memory
left."""

from pathlib import Path

import pytest
import torch
from random_models import random_language_model, random_model

from transformer import Translator, devices, load_translator
from transformer.batches import translate_all
from transformer.commands.program import run_program
from transformer.devices import FULL, LARGE, VARIABLE, choose_device, on_cpu, stays
from transformer.storage.directory import save_checkpoint
from transformer.text.tokenizer import Tokenizer


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch says that there are two GPUs."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


@pytest.mark.usefixtures("gpu")
def test_large_models_take_the_gpu_the_environment_says_what_auto_is_and_an_option_overrides_both(
    monkeypatch: pytest.MonkeyPatch,
):
    assert choose_device().type == "cuda"
    assert LARGE == 50_000_000
    for size, place in ((LARGE, "cuda"), (LARGE - 1, "cpu")):
        assert (choose_device("auto", size).type, stays(size)) == (place, place == "cpu")
    monkeypatch.setenv(VARIABLE, "cuda:1")
    assert choose_device("auto", 1) == torch.device("cuda:1")
    assert choose_device("cpu").type == "cpu"
    assert not stays(1)
    monkeypatch.setenv(VARIABLE, "cpu")
    assert stays(LARGE)
    assert choose_device("cuda", 1).type == "cuda"
    monkeypatch.setenv(VARIABLE, "gpu")
    with pytest.raises(ValueError, match="device 'gpu' is unknown"):
        choose_device()
    with pytest.raises(ValueError, match="the last one here is cuda:1"):
        choose_device("cuda:2")


@pytest.mark.usefixtures("gpu")
def test_float32_is_float32_on_a_gpu(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        choose_device("cuda")
        assert torch.get_float32_matmul_precision() == "highest"
        assert not torch.backends.cuda.matmul.allow_tf32
        assert not torch.backends.cudnn.allow_tf32
    finally:
        torch.set_float32_matmul_precision(before)


def test_without_a_gpu_auto_is_the_cpu_and_cuda_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto", LARGE).type == "cpu"
    with pytest.raises(ValueError, match="no CUDA device here"):
        choose_device("cuda")


@pytest.mark.usefixtures("gpu")
def test_a_model_is_where_the_rule_says_or_on_the_cpu_where_the_gpu_has_no_room_and_says_so(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    places: list[str] = []

    def put(model: torch.nn.Module, place: torch.device, _: torch.dtype) -> torch.nn.Module:
        places.append(place.type)
        if place.type == "cuda":
            raise torch.OutOfMemoryError
        return model

    monkeypatch.setattr("transformer.translator.convert", put)
    model = random_model(vocab_size=tokenizer.vocab_size)
    save_checkpoint(tmp_path, model.config, model.state_dict(), tokenizer)
    assert load_translator(tmp_path).notes == ()
    monkeypatch.setattr(devices, "LARGE", 1_000)
    assert load_translator(tmp_path).notes == (FULL,)
    assert load_translator(tmp_path, "cpu").notes == ()
    assert places == ["cpu", "cuda", "cpu", "cpu"]
    with pytest.raises(ValueError, match="device 'tpu' is unknown; choose auto, cpu or cuda"):
        load_translator(tmp_path, "tpu")


class Full:
    """Stands for a place on a GPU whose memory ends at the n-th forward pass, for good."""

    def __init__(self, model: torch.nn.Module, passes: int) -> None:
        self.left = passes
        model.register_forward_pre_hook(self.passed)
        for module in model.modules():
            module.register_forward_pre_hook(self.passed)

    def passed(self, *_: object) -> None:
        self.left -= 1
        if self.left <= 0:
            raise torch.OutOfMemoryError("CUDA out of memory")


@pytest.mark.parametrize(("passes", "batch"), [(40, False), (40, True)])
def test_a_request_that_fills_the_gpu_is_answered_on_the_cpu_where_the_model_stays(
    passes: int, batch: bool, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
):
    translator = Translator(random_model(vocab_size=tokenizer.vocab_size), tokenizer)
    on_gpu = translator.model
    whole = on_cpu(translator.model)
    texts = ["one two", "three"]
    expected = translate_all(translator, texts)
    alone = translator.translate(texts[0])
    Full(on_gpu, passes)
    monkeypatch.setattr("transformer.translator.on_cpu", lambda _: whole)
    where = property(lambda self: torch.device("cuda" if self.model is on_gpu else "cpu"))
    monkeypatch.setattr(Translator, "device", where)
    if batch:
        assert translate_all(translator, texts) == expected
    else:
        run = translator.translate(texts[0])
        assert run.target_tokens == alone.target_tokens
        assert run.log_probs == pytest.approx(alone.log_probs)
        assert FULL in run.notes
        assert FULL in translator.force("one two", "three").notes
    assert (translator.model is whole, translator.notes) == (True, (FULL,))


def test_a_cpu_without_memory_is_no_reason_to_try_again(tokenizer: Tokenizer):
    model = random_language_model(vocab_size=tokenizer.vocab_size)
    Full(model, 1)
    with pytest.raises(torch.OutOfMemoryError):
        Translator(model, tokenizer).generate("one")


def test_a_command_that_fills_the_gpu_ends_in_a_sentence(capsys: pytest.CaptureFixture[str]):
    def fill() -> int:
        """Fill the memory."""
        raise torch.OutOfMemoryError

    assert run_program("program", None, lambda: {"fill": fill}, ["fill"]) == 2
    assert (
        capsys.readouterr().err
        == "The GPU has no memory left: ask for less at once, or use --device cpu.\n"
    )
