"""Marian and T5 beside transformers, on small random checkpoints that the test makes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentencepiece import SentencePieceProcessor, sentencepiece_model_pb2

from tests.acceptance import surface

TEXT = "a b c d e f"
OPTIONS = {"d_model": 32, "attn_implementation": "eager"}
MARIAN = {
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "encoder_layers": 2,
    "decoder_layers": 2,
    **OPTIONS,
}
MARIAN |= {
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "max_position_embeddings": 64,
}
MARIAN |= {"activation_function": "swish", "scale_embedding": True}
MARIAN |= {"eos_token_id": 0, "forced_eos_token_id": 0}
T5 = {
    "d_kv": 6,
    "d_ff": 48,
    "num_heads": 4,
    "num_layers": 2,
    "decoder_start_token_id": 0,
    **OPTIONS,
}


def written(family: str, folder: Path) -> tuple[Any, list[int]]:
    """A model with random weights that tell heads apart, and the tokens of the text."""
    from transformers import MarianConfig, MarianMTModel, T5Config, T5ForConditionalGeneration

    proto = sentencepiece_model_pb2.ModelProto.FromString(
        (surface.REVERSE / "tokenizer.model").read_bytes()
    )
    del proto.pieces[1]  # <s>: T5 has none, and Marian's ids are in a table
    spec = proto.trainer_spec
    spec.pad_id = 0
    spec.eos_id = 1
    spec.unk_id = 2
    spec.bos_id = -1
    pieces = SentencePieceProcessor(model_proto=proto.SerializeToString())
    for name in ["spiece.model"] if family == "t5" else ["source.spm", "target.spm"]:
        (folder / name).write_bytes(proto.SerializeToString())
    (folder / "tokenizer_config.json").write_text('{"extra_ids": 0}')
    size = pieces.get_piece_size()
    ids = [*pieces.encode(TEXT), 1]
    if family == "t5":
        model = T5ForConditionalGeneration(T5Config(**T5, vocab_size=size))
        model.generation_config.update(max_length=20)
    else:
        names = ["</s>", "<unk>", *(pieces.IdToPiece(i) for i in range(3, size)), "<pad>"]
        table = {name: i for i, name in enumerate(names)}
        pad = size - 1
        (folder / "vocab.json").write_text(json.dumps(table))
        ids = [*(table[piece] for piece in pieces.encode_as_pieces(TEXT)), 0]
        starts = {"pad_token_id": pad, "decoder_start_token_id": pad}
        model = MarianMTModel(MarianConfig(**MARIAN, vocab_size=size, **starts))
        model.generation_config.update(max_length=20, num_beams=1, bad_words_ids=[[pad]])
    generator = torch.Generator().manual_seed(4)
    for name, parameter in model.requires_grad_(False).named_parameters():
        if "embed_positions" not in name:
            parameter.normal_(float(name.endswith("layer_norm.weight")), 0.3, generator=generator)
    model.eval().save_pretrained(folder)
    return model, ids


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", ["marian", "t5"])
def test_a_family_gives_the_numbers_of_transformers(family: str, tmp_path: Path) -> None:
    model, source = written(family, tmp_path)
    run = surface.load_translator(tmp_path).translate(TEXT, beam_size=1)
    ids = model.generate(torch.tensor([source]), num_beams=1, do_sample=False)
    out = model(torch.tensor([source]), decoder_input_ids=ids[:, :-1], output_attentions=True)
    assert run.target_ids == tuple(ids[0, 1:].tolist())
    np.testing.assert_allclose(
        surface.distributions(run)(), out.logits[0].log_softmax(-1), atol=1e-3
    )
    for kind, name in zip(surface.KINDS, ("encoder", "decoder", "cross"), strict=True):
        for layer, weights in enumerate(out[f"{name}_attentions"]):
            np.testing.assert_allclose(run.attention.weights(kind, layer), weights[0], atol=1e-4)
    assert run.attention.audit().passed
