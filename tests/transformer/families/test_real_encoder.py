"""A published encoder alone, fetched as a package, beside transformers' own reading of the same
files."""

from pathlib import Path
from typing import Any

import pytest
import torch
from real_models import minilm
from real_texts import texts

from transformer import Capture, Translator, load_encoder

pytestmark = pytest.mark.nightly

TEXTS = (
    "The old house stands beside the river.",
    "  Hello 😀 你好, 12345 naïve café\n\n",
    "The capital of France is Paris; unaffordable, isn't it?",
    "Привет, мир! नमस्ते دنیا",
)
NEAR = 1e-5


@pytest.fixture(scope="module")
def directory(tmp_path_factory: Any) -> Path:
    return minilm(tmp_path_factory.mktemp("minilm"))


@pytest.fixture(scope="module")
def ours(directory: Path) -> Translator:
    return load_encoder(directory, "cpu")


@pytest.fixture(scope="module")
def theirs(directory: Path) -> tuple[Any, Any]:
    from transformers import AutoModel, AutoTokenizer

    model = AutoModel.from_pretrained(directory, attn_implementation="eager", dtype=torch.float32)
    return model.eval(), AutoTokenizer.from_pretrained(directory)


@pytest.mark.parametrize("texts", [*((text,) for text in TEXTS), TEXTS[:2]], ids=range(5))
def test_streams_and_all_72_heads_are_the_reference_s(
    texts: tuple[str, ...], ours: Translator, theirs: tuple[Any, Any]
) -> None:
    (model, tokenizer) = theirs
    read = tokenizer(*texts, return_tensors="pt")
    with torch.inference_mode():
        expected = model(**read, output_attentions=True, output_hidden_states=True)
    run = ours.fill(" [SEP] ".join(texts), capture=Capture(residual=True))
    assert list(ours.ids_of(run)["encoder"]) == read["input_ids"][0].tolist()
    passed = run.config.stacks["encoder"].passed()
    for layer, stream in enumerate(expected.hidden_states[1:]):
        difference = run.stream(passed[2 * layer + 1]).stream - stream[0]
        assert abs(difference).max() < NEAR
    n_heads = 0
    for layer, weights in enumerate(expected.attentions):
        for head in range(run.config.n_heads):
            difference = torch.as_tensor(run.weights("encoder", layer, head)) - weights[0, head]
            assert abs(difference).max() < NEAR
            n_heads += 1
    assert n_heads == 72
    assert run.audit().passed


def test_it_says_what_it_lacks(ours: Translator) -> None:
    run = ours.fill("The [MASK] house.")
    assert (run.text, run.fills, run.predict) == ("", {}, None)
    assert any("no output for masked words" in note for note in run.notes)


def test_300_texts_have_the_ids_of_the_reference_by_either_file(
    directory: Path, ours: Translator, theirs: tuple[Any, Any]
) -> None:
    assert_same(ours, theirs[1])
    (directory / "tokenizer.json").rename(directory / "aside.json")
    older = load_encoder(directory, "cpu")
    (directory / "aside.json").rename(directory / "tokenizer.json")
    assert_same(older, theirs[1])
    fields = ("bos_id", "eos_id", "unk_id", "n_segments", "n_separators")
    for name in fields:
        assert getattr(older.config, name) == getattr(ours.config, name)


def assert_same(ours: Translator, tokenizer: Any) -> None:
    """Ids as the reference has them, of texts that may be blank or long."""
    for text in texts():
        ids = [ours.config.bos_id, *ours.tokenizer.source.encode(text), ours.config.eos_id]
        assert ids == tokenizer(text)["input_ids"], text
