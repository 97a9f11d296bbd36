"""Small Marian models as transformers saves them, their random weights spread enough to tell heads
apart."""

import io
import json
import random
import warnings
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import sentencepiece
import torch

SOURCE_WORDS = (
    "the cat sat on a mat and saw two dogs that ran over hills with bright red hats while birds "
    "sang"
)
TARGET_WORDS = (
    "die Katze saß auf einer Matte und sah zwei Hunde die über Hügel liefen während Vögel sangen"
)
LANGUAGES = (">>fra<<", ">>spa<<", ">>por<<")
SIZES = {"d_model": 32, "ffn": 48, "heads": 4, "encoder_layers": 2, "decoder_layers": 3}


def trained(lines: Iterable[str], **options: Any) -> bytes:
    """A sentencepiece model of some lines."""
    written = io.BytesIO()
    usual = {"hard_vocab_limit": False, "num_threads": 1, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=written, **usual | options
    )
    return written.getvalue()


@cache
def sentencepiece_model(words: str, seed: int = 0, model_type: str = "unigram") -> bytes:
    """A model of about 80 pieces with sentencepiece's own normalisation, as OPUS-MT's have."""
    draw = random.Random(seed)
    lines = [" ".join(draw.choices(words.split(), k=8)) + " ." for _ in range(300)]
    return trained(lines, model_type=model_type, vocab_size=80)


def pieces_of(model: bytes) -> list[str]:
    """All pieces but the special ones."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = [processor.IdToPiece(number) for number in range(processor.get_piece_size())]
    return [piece for piece in pieces if piece not in ("<s>", "</s>", "<unk>")]


def vocabulary(*pieces: str) -> dict[str, int]:
    """Numbers in Marian's order: `</s>`, `<unk>`, the pieces, and, unless it is among them, `<pad>`
    last."""
    return {
        piece: number
        for number, piece in enumerate(dict.fromkeys(("</s>", "<unk>", *pieces, "<pad>")))
    }


def write_vocabulary(
    directory: Path, *, separate: bool = False, languages: bool = False
) -> tuple[int, int]:
    """Writes the vocabulary's files and returns the numbers of source and target pieces."""
    source = sentencepiece_model(SOURCE_WORDS)
    target = sentencepiece_model(TARGET_WORDS, 1, "bpe")
    (directory / "source.spm").write_bytes(source)
    (directory / "target.spm").write_bytes(target)
    named = LANGUAGES if languages else ()
    if separate:
        tables = vocabulary("<pad>", *pieces_of(source)), vocabulary("<pad>", *pieces_of(target))
        (directory / "target_vocab.json").write_text(json.dumps(tables[1]))
    else:
        tables = (vocabulary(*named, *pieces_of(source), *pieces_of(target)),) * 2
    (directory / "vocab.json").write_text(json.dumps(tables[0]))
    (directory / "tokenizer_config.json").write_text(json.dumps({"separate_vocabs": separate}))
    return len(tables[0]), len(tables[1])


def write_marian(
    directory: Path,
    *,
    seed: int = 0,
    activation: str = "swish",
    separate: bool = False,
    tied: bool = True,
    languages: bool = False,
    scaled: bool = True,
    generation: dict[str, Any] | None = None,
    file: str = "safetensors",
    dtype: torch.dtype = torch.float32,
    shards: bool = False,
    **sizes: int,
) -> Path:
    """Makes and saves a model; ``sizes`` replace ``SIZES``; ``file`` is "safetensors", "bin" or
    "old"."""
    from transformers import MarianConfig, MarianMTModel

    directory.mkdir(parents=True, exist_ok=True)
    source, target = write_vocabulary(directory, separate=separate, languages=languages)
    pad = 2 if separate else target - 1
    choices = {
        "vocab_size": source,
        "decoder_vocab_size": target,
        "activation_function": activation,
        "scale_embedding": scaled,
        "share_encoder_decoder_embeddings": not separate,
        "tie_word_embeddings": tied,
        "pad_token_id": pad,
        "decoder_start_token_id": pad,
        "eos_token_id": 0,
        "forced_eos_token_id": 0,
    }
    rules = {"max_length": 20, "num_beams": 4, "bad_words_ids": [[pad]], "forced_eos_token_id": 0}
    rules = rules if generation is None else generation
    model = random_of(MarianConfig, MarianMTModel, choices, seed, sizes)
    save(directory, model, rules, dtype, shards)
    if file != "safetensors":
        _as_pytorch(directory, model, old=file == "old", shards=shards)
    return directory


def random_of(
    of_config: Any, of_model: Any, choices: dict[str, Any], seed: int, sizes: dict[str, int]
) -> Any:
    """A random model of Marian's or fairseq's relatives; ``sizes`` replace ``SIZES``."""
    shape = SIZES | sizes
    heads = {f"{side}_attention_heads": shape["heads"] for side in ("encoder", "decoder")}
    layers = {name: shape[name] for name in ("d_model", "encoder_layers", "decoder_layers")}
    widths = {
        "encoder_ffn_dim": shape["ffn"],
        "decoder_ffn_dim": shape.get("decoder_ffn", shape["ffn"]),
    }
    config = of_config(**choices, **heads, **layers, **widths, max_position_embeddings=64)
    model = of_model(config).eval()
    spread(model, seed)
    return model


def save(
    directory: Path,
    model: Any,
    rules: dict[str, Any],
    dtype: torch.dtype,
    shards: bool,
    bare: bool = False,
) -> None:
    """As transformers saves a model; ``bare`` without its output projection: no prefix, no bias of
    logits."""
    model.generation_config.update(**rules)
    model = model.to(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        size = 20_000 if shards else "5GB"
        (model.model if bare else model).save_pretrained(directory, max_shard_size=size)


def spread(model: Any, seed: int) -> None:
    """Random values for every parameter and for a bias of the logits; positions stay what they
    are."""
    generator = torch.Generator().manual_seed(seed)
    widths = {
        "q_proj.weight": 0.5,
        "k_proj.weight": 0.5,
        "proj.weight": 0.15,
        "fc": 0.15,
        "norm": 0.1,
    }
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" in name:
                continue
            width = next((width for part, width in widths.items() if part in name), 0.1)
            parameter.normal_(std=width, generator=generator)
            if name.endswith("layer_norm.weight"):
                parameter.add_(1.0)
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.normal_(std=0.02, generator=generator)


def _as_pytorch(directory: Path, model: Any, *, old: bool, shards: bool) -> None:
    """Replaces the safetensors by PyTorch files, every name of a tied table in them, as OPUS-MT's
    have."""
    for path in [*directory.glob("*.safetensors"), *directory.glob("*.safetensors.index.json")]:
        path.unlink()
    state = model.state_dict()
    if not shards:
        torch.save(state, directory / "pytorch_model.bin", _use_new_zipfile_serialization=not old)
        return
    names = list(state)
    places = {
        name: f"pytorch_model-{1 + 2 * i // len(names):05d}-of-00002.bin"
        for i, name in enumerate(names)
    }
    for place in set(places.values()):
        torch.save(
            {name: state[name] for name in names if places[name] == place}, directory / place
        )
    index = {"metadata": {}, "weight_map": places}
    (directory / "pytorch_model.bin.index.json").write_text(json.dumps(index))


def reference(directory: Path) -> Any:
    """transformers' model of a directory, float32, with attention that returns its weights."""
    from transformers import AutoModelForSeq2SeqLM as Model

    return Model.from_pretrained(directory, attn_implementation="eager", dtype=torch.float32).eval()
