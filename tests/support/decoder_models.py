"""Small decoders as transformers saves them, their random weights spread enough to tell heads
apart."""

import json
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

N_PIECES = 330
SIZES = {
    "vocab_size": N_PIECES,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "max_position_embeddings": 512,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
GPT2_SIZES = {
    "vocab_size": N_PIECES,
    "n_embd": 48,
    "n_layer": 3,
    "n_head": 4,
    "n_positions": 512,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
WIDER = {"hidden_size": 64, "num_attention_heads": 4}
DEFAULT = {"rope_type": "default", "rope_theta": 10_000.0}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 5_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "GPT-2": ("GPT2", GPT2_SIZES),
    "Llama, a head of keys each": ("Llama", SIZES | {"num_key_value_heads": 6}),
    "Llama, groups of three": ("Llama", SIZES | {"num_key_value_heads": 2}),
    "Llama, one key head, tied, llama3": (
        "Llama",
        SIZES | {"num_key_value_heads": 1, "tie_word_embeddings": True, "rope_parameters": LLAMA3},
    ),
    "Llama, linear": (
        "Llama",
        SIZES | {"rope_parameters": DEFAULT | {"rope_type": "linear", "factor": 4.0}},
    ),
    "Llama, wide heads": ("Llama", SIZES | {"num_key_value_heads": 3, "head_dim": 14}),
    "Mistral": ("Mistral", SIZES | {"num_key_value_heads": 3, "sliding_window": None}),
    "Qwen2": ("Qwen2", SIZES | {"num_key_value_heads": 2}),
    "Qwen3": ("Qwen3", SIZES | {"num_key_value_heads": 2, "head_dim": 16}),
    "Pythia": (
        "GPTNeoX",
        SIZES | WIDER | {"rope_parameters": DEFAULT | {"partial_rotary_factor": 0.25}},
    ),
    "GPT-NeoX, one after another": ("GPTNeoX", SIZES | WIDER | {"use_parallel_residual": False}),
    "OPT": (
        "OPT",
        {
            "vocab_size": N_PIECES,
            "hidden_size": 48,
            "ffn_dim": 80,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "max_position_embeddings": 512,
            "word_embed_proj_dim": 48,
            "bos_token_id": 0,
            "eos_token_id": 0,
            "pad_token_id": 1,
        },
    ),
}
"""The class of transformers, and its config, of every shape that is compared."""
END = "<|endoftext|>"
TURN = "<|turn|>"


@cache
def byte_level() -> Any:
    """A byte-level vocabulary, trained on a few lines."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=N_PIECES - 10, special_tokens=[END, TURN], initial_alphabet=alphabet
    )
    lines = ["the old house and the two dogs saw the small cat near the river"] * 30
    tokenizer.train_from_iterator(lines, trainer)
    return tokenizer


def write_decoder(
    directory: Path,
    kind: str,
    seed: int = 0,
    *,
    vocabulary: bool = True,
    shard_size: str = "1GB",
    **changes: Any,
) -> None:
    """Writes weights, config and vocabulary as transformers does; ``changes`` of the config."""
    import transformers

    (name, values) = KINDS[kind]
    made = {"GPTNeoX": "GPTNeoXForCausalLM", "GPT2": "GPT2LMHeadModel"}
    model_class = getattr(transformers, made.get(name, f"{name}ForCausalLM"))
    config = getattr(transformers, f"{name}Config")(**values | changes)
    torch.manual_seed(seed)
    model = model_class(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.08 * torch.randn_like(parameter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.save_pretrained(directory, max_shard_size=shard_size)
    if vocabulary:
        write_vocabulary(directory)


def write_vocabulary(directory: Path, **settings: Any) -> None:
    """Writes `tokenizer.json` and its settings."""
    byte_level().save(str(directory / "tokenizer.json"))
    values = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END, **settings}
    (directory / "tokenizer_config.json").write_text(json.dumps(values))


def reference(directory: Path) -> Any:
    """The model as transformers opens it, with attention that shows its weights."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(directory, attn_implementation="eager")
    return model.eval()


def write_gguf(path: Path, directory: Path, architecture: str, **changes: Any) -> None:
    """Writes a model of `write_decoder` as llama.cpp keeps it, its matrices as ``kind``."""
    import gguf
    from safetensors.torch import load_file

    kind = changes.pop("kind", gguf.GGMLQuantizationType.F32)
    values = json.loads((directory / "config.json").read_text())
    writer = gguf.GGUFWriter(path, architecture)
    entries = _entries(values, architecture)
    for name, value in {**entries, **changes}.items():
        _add(writer, name, value)
    for name, tensor in load_file(directory / "model.safetensors").items():
        theirs = _named(name, architecture)
        numbers = _laid_out(name, tensor.float().numpy(), values, architecture)
        if numbers.ndim == 2 and kind != gguf.GGMLQuantizationType.F32:
            packed = gguf.quantize(numbers, kind)
            writer.add_tensor(theirs, packed, raw_dtype=kind)
        else:
            writer.add_tensor(theirs, np.ascontiguousarray(numbers))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _entries(values: dict[str, Any], architecture: str) -> dict[str, Any]:
    model = json.loads(byte_level().to_str())["model"]
    pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
    pieces += [f"<unused {number}>" for number in range(len(pieces), values["vocab_size"])]
    sizes = {
        "context_length": values.get("max_position_embeddings", values.get("n_positions")),
        "embedding_length": values.get("hidden_size", values.get("n_embd")),
        "feed_forward_length": values.get("intermediate_size", 4 * values.get("n_embd", 0)),
        "block_count": values.get("num_hidden_layers", values.get("n_layer")),
        "attention.head_count": values.get("num_attention_heads", values.get("n_head")),
    }
    if architecture == "gpt2":
        sizes["attention.layer_norm_epsilon"] = values["layer_norm_epsilon"]
    else:
        sizes |= {
            "attention.head_count_kv": values["num_key_value_heads"],
            "attention.key_length": values.get("head_dim") or 8,
            "attention.layer_norm_rms_epsilon": values["rms_norm_eps"],
            "rope.freq_base": float(values["rope_parameters"]["rope_theta"]),
        }
    return {
        **{f"{architecture}.{name}": value for name, value in sizes.items()},
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": pieces,
        "tokenizer.ggml.token_type": [3 if piece in (END, TURN) else 1 for piece in pieces],
        "tokenizer.ggml.merges": [" ".join(pair) for pair in model["merges"]],
        "tokenizer.ggml.eos_token_id": 0,
        "tokenizer.ggml.bos_token_id": 0,
    }


def _add(writer: Any, name: str, value: Any) -> None:
    if isinstance(value, bool):
        writer.add_bool(name, value)
    elif isinstance(value, int):
        writer.add_uint32(name, value)
    elif isinstance(value, float):
        writer.add_float32(name, value)
    elif isinstance(value, str):
        writer.add_string(name, value)
    elif value is not None:
        writer.add_array(name, value)


_PARTS = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "ln_1": "attn_norm",
    "ln_2": "ffn_norm",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
}
_TOPS = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
    "transformer.wte.weight": "token_embd.weight",
    "transformer.wpe.weight": "position_embd.weight",
    "transformer.ln_f.weight": "output_norm.weight",
    "transformer.ln_f.bias": "output_norm.bias",
}


def _named(name: str, architecture: str) -> str:
    if name in _TOPS:
        return _TOPS[name]
    bare = name.removeprefix("model.layers.").removeprefix("transformer.h.")
    (layer, _, rest) = bare.partition(".")
    (part, _, end) = rest.rpartition(".")
    return f"blk.{layer}.{_PARTS[part]}.{end}"


def _laid_out(name: str, numbers: Any, values: dict[str, Any], architecture: str) -> Any:
    """GPT-2's matrices (out, in); Llama's queries and keys with neighbours that turn together."""
    if architecture == "gpt2":
        return numbers.T if numbers.ndim == 2 and ".h." in name else numbers
    if architecture == "llama" and name.endswith(("q_proj.weight", "k_proj.weight")):
        width = values.get("head_dim") or values["hidden_size"] // values["num_attention_heads"]
        halves = numbers.reshape(-1, 2, width // 2, numbers.shape[1])
        return halves.swapaxes(1, 2).reshape(numbers.shape)
    return numbers
