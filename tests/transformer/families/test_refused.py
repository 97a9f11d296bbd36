"""Directories that look like published models and are damaged, foreign or hostile: one sentence
each."""

import json
import os
import pickle
import shutil
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from marian_models import sentencepiece_model, write_vocabulary
from published import changed, copied, rewritten
from refusals import refused

from transformer import load_translator
from transformer.storage.files import CheckpointError

Damage = Callable[[Path], object]
SHARED = "model.shared.weight"
BIAS = "model.encoder.layers.0.fc1.bias"
WEIGHT = "model.encoder.layers.0.fc1.weight"


def config(file: str = "config.json", **entries: Any) -> Damage:
    return lambda directory: changed(directory, file, **entries)


settings = partial(config, "tokenizer_config.json")
generation = partial(config, "generation_config.json")


def content(name: str, written: str | bytes, size: int | None = None) -> Damage:
    """A file with another content, or of another size."""

    def damage(directory: Path) -> None:
        path = directory / name
        path.write_bytes(
            written.encode("utf-8", "surrogatepass") if isinstance(written, str) else written
        )
        if size is not None:
            os.truncate(path, size)

    return damage


def gone(name: str) -> Damage:
    return lambda directory: (directory / name).unlink()


def linked(name: str) -> Damage:
    """A file replaced by a device that never ends."""

    def damage(directory: Path) -> None:
        (directory / name).unlink()
        (directory / name).symlink_to("/dev/zero")

    return damage


def tensors(**changes: torch.Tensor | None) -> Damage:
    return lambda directory: rewritten(directory, **changes)


def without(file: str, part: str) -> Damage:
    """Without an entry of a JSON file, or without the last seven."""

    def damage(directory: Path) -> None:
        values = json.loads((directory / file).read_text())
        rest = (
            dict([*values.items()][:-7])
            if part == "end"
            else {k: v for k, v in values.items() if k != part}
        )
        (directory / file).write_text(json.dumps(rest))

    return damage


def index(name: str, weights: Any, file: str = "pytorch_model.bin.index.json") -> Damage:
    """Weights that an index lists, in the place of one file."""

    def damage(directory: Path) -> None:
        (directory / "model.safetensors").unlink()
        (directory / file).write_text(json.dumps({name: weights}))

    return damage


def whole(**entries: Any) -> Damage:
    """A ``tokenizer.json`` that says something else of its model."""

    def damage(directory: Path) -> None:
        model = json.loads((directory / "tokenizer.json").read_text())["model"]
        changed(directory, "tokenizer.json", model=model | entries)

    return damage


def fp8(directory: Path) -> None:
    """A weight in eight bits, with the way that config.json states."""
    changed(directory, quantization_config={"quant_method": "fbgemm_fp8"})
    rewritten(directory, **{WEIGHT: torch.zeros(48, 32, dtype=torch.float8_e4m3fn)})


class Payload:
    """Runs code if a pickle is trusted."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def stored(make: Callable[[Path], Any], new: bool = True) -> Damage:
    """A PyTorch file that holds something else."""
    return lambda directory: torch.save(
        make(directory), directory / "pytorch_model.bin", _use_new_zipfile_serialization=new
    )


def with_weight(make: Callable[[], torch.Tensor]) -> Damage:
    def state(directory: Path) -> Any:
        return torch.load(directory / "pytorch_model.bin", weights_only=True) | {WEIGHT: make()}

    return stored(state)


def compressed(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(50 * 2**20))


def twice(directory: Path) -> None:
    shutil.copy(directory / "pytorch_model.bin", directory / "a.bin")
    (directory / "pytorch_model.bin").rename(directory / "b.bin")
    changed(
        directory,
        "pytorch_model.bin.index.json",
        weight_map={SHARED: "a.bin", "lm_head.weight": "b.bin"},
    )


def two_vocabularies(directory: Path) -> None:
    write_vocabulary(directory, separate=True)


def at(place: int, value: float) -> torch.Tensor:
    """Numbers of the bias, one of them another."""
    bias = torch.zeros(48)
    bias[place] = value
    return bias


BIN = {"file": "bin"}
SAVED = {"saved": True}
OLD = {"file": "old"}
NORMS, UNEQUAL = "normalize_embedding = False", "only models with equal values"
OLDER = "25 languages, which puts the language behind the text; only mBART-50"
OTHERWISE = "orders tokens otherwise than"
NUMBERS = "not from 0 to 94"
ROWS = "pieces with its languages, but config.json has 100 rows|shape"
NOTHING = "something other than named tensors"
MORE = "holds more than numbers, which is refused"
SAFE = "model.safetensors.index.json"
LARGE = {"d_model": 16384, "encoder_ffn_dim": 65536, "decoder_ffn_dim": 65536}
ODD = {"d_model": 31, "encoder_attention_heads": 1, "decoder_attention_heads": 1}
VOCABULARY = [
    ("[" * 100_000, "not valid JSON"),
    ("[1, 2]", "not a JSON object"),
    ('{"</s>": 0, "<unk>": 1}', "no piece <pad>"),
    ('{"</s>": 0, "<pad>": 1}', "no piece <unk>"),
    ('{"</s>": 0, "<unk>": 1, "<pad>": 2, "a": 2}', "same number"),
    ('{"</s>": 0, "<unk>": 1, "<pad>": 95}', NUMBERS),
    ('{"</s>": 0, "<unk>": 1, "<pad>": -1}', NUMBERS),
    ('{"</s>": 0, "<unk>": true, "<pad>": 2}', NUMBERS),
    ('{"</s>": 0, "<unk>": ' + "9" * 5000 + "}", "not valid JSON"),
]
"""Contents of Marian's ``vocab.json`` that number no pieces."""
MARIAN: list[tuple[Damage, str]] = [
    (config(encoder_layers=10**9), "n_encoder_layers is 1000000000"),
    (config(decoder_layers=-1), "n_decoder_layers is -1"),
    (config(encoder_layers="6" * 10_000), "n_encoder_layers"),
    (config(d_model=33), "not a multiple of n_heads"),
    (config(vocab_size=10**9), "vocab_size is 1000000000"),
    (config(max_position_embeddings=10**6), "of about 64,"),
    (config(**LARGE), "at most 2,000,000,000"),
    (config(decoder_ffn_dim=50), r"decoder\.layers\.0\.fc1\.(weight|bias) has the shape"),
    (config(decoder_attention_heads=2), "decoder_attention_heads = 2"),
    (config(activation_function="tanh"), "activation 'tanh'"),
    (config(activation_function=["relu"]), "activation"),
    (config(normalize_before=True), "normalize_before = True"),
    (config(add_final_layer_norm=True), "add_final_layer_norm = True"),
    (config(pad_token_id=10**6, decoder_start_token_id=10**6), "pad_id is 1000000"),
    (config(eos_token_id=[0, 1]), "eos_id is"),
    (config(eos_token_id=3), "gives </s> the id 3, but the vocabulary has 0"),
    (config(scale_embedding=3), "scaled_embeddings is 3"),
    (config(encoder_layers=3), "lack 16 that config.json asks for"),
    (config(encoder_layers=1), "include 16 that config.json does not describe"),
    (config(vocab_size=200), "has the shape"),
    (config(vocab_size=60, pad_token_id=5, decoder_start_token_id=5), "not from 0 to 59"),
    (config(model_type="pegasus"), "pegasus model of another library"),
    *(
        (content("config.json", each), r"config\.json (is not valid JSON|is not a JSON object)")
        for each in ("", "[1]", "[" * 200_000)
    ),
    (generation(num_beams=10**9), "num_beams is 1000000000"),
    (generation(max_length=-3), "max_length is -3"),
    (generation(length_penalty=1e300), "length_penalty is"),
    (generation(early_stopping=1), "early_stopping is 1"),
    *((generation(bad_words_ids=each), "bad_words_ids") for each in (5, [[]], [[10**9]], [["a"]])),
    (generation(bad_words_ids=[[1]] * 10_001), "at most 10,000"),
    (generation(bad_words_ids=[[n] for n in range(95)]), "forbids every piece"),
    (generation(forced_eos_token_id=95), "forced_eos_token_id"),
    *(
        (index("weight_map", {SHARED: name}, file), "not a weight file beside it")
        for name in ("../x.bin", "/etc/passwd", "..", "x.pkl", "a\\b.bin", "")
        for file in (SAFE, "pytorch_model.bin.index.json")
    ),
    (index("weights", {}), "does not name any weight files"),
    (index("weight_map", []), "does not name any weight files"),
    (index("weight_map", {SHARED: "a.bin"}), r"lacks a\.bin"),
    (index("weight_map", {str(n): f"{n}.bin" for n in range(257)}), "names 257 files"),
    (gone("model.safetensors"), "neither model.safetensors nor pytorch_model.bin"),
    *((content("model.safetensors", b"\x00" * 6000, size), "damaged") for size in (0, 7, 5000)),
    (tensors(**{BIAS: None}), f"lack 1 that .* the first is {BIAS}"),
    (tensors(**{"model.encoder.extra": torch.zeros(2)}), "describe, such as 'model.encoder.extra'"),
    (tensors(**{"a\nb" + "c" * 9_000: torch.zeros(2)}), r"such as 'a\\nbc"),
    *(
        (tensors(**{BIAS: at(7, value)}), "NaN or infinite")
        for value in (float("nan"), float("-inf"))
    ),
    (tensors(**{BIAS: torch.zeros(48, dtype=torch.int32)}), "as I32"),
    (
        tensors(**{WEIGHT: torch.zeros(48, 32, dtype=torch.int8)}),
        rf"quantised \(bitsandbytes; {WEIGHT} is",
    ),
    (
        tensors(**{WEIGHT: torch.zeros(48, 32, dtype=torch.uint8)}),
        "only floating-point weights are supported",
    ),
    (
        tensors(**{WEIGHT: None, f"{WEIGHT[:-6]}qweight": torch.zeros(4, 48, dtype=torch.int32)}),
        r"quantised \(GPTQ or AWQ; .*qweight is stored as I32\)",
    ),
    (fp8, r"quantised \(fbgemm_fp8; "),
    *(
        (linked(name), f"{name} is not a file|no model dir|has no {name}|holds no model")
        for name in ("config.json", "vocab.json", "generation_config.json")
    ),
    *((gone(name), name) for name in ("source.spm", "target.spm", "vocab.json")),
    *((content("vocab.json", each), words) for each, words in VOCABULARY),
    (content("vocab.json", "{", 2**30), r"vocab\.json is larger than 16 MiB"),
    (content("source.spm", "", 200 * 2**20), r"source\.spm is larger than 16 MiB"),
    *(
        (content("target.spm", each), r"target\.spm is (damaged|empty)")
        for each in (b"", b"\x00" * 100, b"hello", sentencepiece_model("a b c d")[:200])
    ),
    (two_vocabularies, "two vocabularies"),
]
"""Damages of a Marian model in safetensors."""
PYTORCH: list[tuple[dict[str, Any], Damage, str]] = [
    *(
        (BIN, stored(lambda _, each=each: each), NOTHING)
        for each in ([1, 2], torch.zeros(3), {"a": 1}, {1: torch.zeros(2)}, OrderedDict(a=None))
    ),
    *(
        (
            BIN,
            stored(lambda path: {SHARED: torch.zeros(2), "x": Payload(path / "owned")}, new),
            MORE,
        )
        for new in (True, False)
    ),
    (
        BIN,
        lambda path: content("pytorch_model.bin", pickle.dumps(Payload(path / "owned")))(path),
        MORE,
    ),
    (
        BIN,
        with_weight(lambda: torch.empty(48, 32, device="meta")),
        "has no numbers or no single shape",
    ),
    (BIN, with_weight(lambda: torch.zeros(1).expand(48, 32)), "repeats its stored numbers"),
    (BIN, lambda path: compressed(path / "pytorch_model.bin"), "compressed zip file"),
    (BIN, twice, r"but a\.bin holds it too"),
    *(
        (form, lambda path, size=size: os.truncate(path / "pytorch_model.bin", size), "damaged")
        for form in (BIN, OLD)
        for size in (0, 100, 40_000)
    ),
]
"""Damages of a Marian model in a PyTorch file, or in an old one."""
OTHERS: list[tuple[str, dict[str, Any], Damage, str]] = [
    ("t5", {}, config(feed_forward_proj="relu2"), "has the feed-forward network 'relu2'"),
    ("t5", {}, config(relative_attention_num_buckets=64), "num_buckets = 64; only 32"),
    ("t5", {}, config(is_encoder_decoder=False), "is_encoder_decoder = False; only True"),
    (
        "t5",
        {},
        config(vocab_size=30),
        "pieces with its extra ids, but config.json has 30 rows|has the shape",
    ),
    ("t5", {}, config(d_kv=7), "asks for \\(21, 24\\)"),
    ("t5", {}, config(num_layers=3), "lack 8 that config.json asks for"),
    ("t5", {}, config(model_type="umt5"), "holds a umt5 model of another library"),
    ("t5", {}, config(tokenizer_class="ByT5Tokenizer"), f"'ByT5Tokenizer', which {OTHERWISE}"),
    ("t5", {}, settings(extra_ids=-1), "extra_ids = -1; it must be from 0 to 10,000"),
    ("t5", {"tied": False}, tensors(**{"lm_head.weight": None}), r"lack lm_head\.weight"),
    *(
        (family, {}, config(**{name: value}), f"{name} = {value}; only {not value}")
        for family, value in (("bart", True), ("mbart", False))
        for name in ("normalize_before", "add_final_layer_norm")
    ),
    ("bart", {}, config(normalize_embedding=False), NORMS),
    ("bart", {}, config(decoder_attention_heads=2), UNEQUAL),
    ("bart", {}, config(vocab_size=100), "pieces, but config.json has 100 rows|shape"),
    ("bart", {}, settings(add_prefix_space=True), "says add_prefix_space, which is not"),
    ("bart", {}, gone("vocab.json"), r"has no tokenizer.json and no vocab.json"),
    ("bart", {}, content("merges.txt", "x"), "is damaged or is not a byte-level vocabulary"),
    (
        "bart",
        {},
        config("added_tokens.json", foo=402),
        "gives 'foo' an id that is not the next one",
    ),
    ("mbart", {}, settings(tokenizer_class="MBartTokenizer"), OTHERWISE),
    ("mbart", {}, config(tokenizer_class="MBartTokenizer"), OLDER),
    ("mbart", {}, config(vocab_size=250_027), OLDER),
    ("mbart", {"entries": {"vocab_size": 223}}, lambda _: None, OLDER),
    ("mbart", {}, config(normalize_embedding=False), NORMS),
    ("mbart", {}, config(max_position_embeddings=128), "embed_positions.weight has the shape"),
    ("mbart", {}, config(vocab_size=100), ROWS),
    ("m2m", {}, config(normalize_before=False), "normalize_before = False; only True"),
    ("m2m", {}, config(static_position_embeddings=False), "static_position_embeddings = False"),
    ("m2m", {}, config(decoder_attention_heads=2), UNEQUAL),
    ("m2m", {}, config(vocab_size=100), ROWS),
    ("m2m", {}, config(decoder_start_token_id=1), "gives padding no position"),
    ("m2m", {}, config(**ODD), "need an even width"),
    ("m2m", {}, settings(legacy_behaviour=True), "legacy_behaviour = True; only False"),
    (
        "m2m",
        {},
        content("vocab.json", '{"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 9}'),
        "pieces from 0 on",
    ),
    ("m2m", {}, without("vocab.json", "<unk>"), "has no piece <unk>"),
    # whose pieces would get the ids of languages
    ("m2m", {}, without("vocab.json", "end"), r"lacks 7 pieces of sentencepiece\.bpe\.model"),
    *(
        (family, {}, settings(tokenizer_class=name), OTHERWISE)
        for family, name in (
            ("m2m", "SMALL100Tokenizer"),
            ("mbart", "MBartTokenizerFast"),
            ("t5", "RobertaTokenizer"),
            ("bart", "GPT2Tokenizer"),
            ("marian", "T5Tokenizer"),
        )
    ),
    *(
        (family, SAVED, content("tokenizer.json", each), "is damaged or is not a vocabulary")
        for family in ("t5", "bart", "nllb")
        for each in ("", "{", "[]", '{"model": 1}', "\ud800")
    ),
    ("t5", SAVED, whole(unk_id=None), r"has no piece for what it cannot spell\.$"),
    (
        "t5",
        SAVED,
        content("tokenizer.json", "{", 65 * 2**20),
        r"tokenizer\.json is larger than 64 MiB",
    ),
]
"""Damages of the other families: how a model is made, what is done to it, what is said."""
ROWS_OF_ALL = [
    *(("marian", {}, damage, words) for damage, words in MARIAN),
    *(("marian", form, damage, words) for form, damage, words in PYTORCH),
    *OTHERS,
]


@pytest.mark.parametrize(
    ("family", "options", "damage", "words"), ROWS_OF_ALL, ids=range(len(ROWS_OF_ALL))
)
def test_a_damaged_or_foreign_model_is_refused_in_one_sentence(
    tmp_path, family, options, damage, words
):
    directory = copied(tmp_path, family, **options)
    damage(directory)
    with refused(CheckpointError, words):
        load_translator(directory)
    assert not (directory / "owned").exists()
