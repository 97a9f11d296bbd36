"""Marian and T5 beside transformers, on small random checkpoints that the test makes."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import torch

from tests.acceptance import surface

LINE = "the cat sat on a mat and saw two dogs , die Katze saß auf einer Matte und sah zwei Hunde : ."
TEXT = "the cat : saw two dogs ."
MARIAN = {
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "d_model": 32,
}
MARIAN |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "max_position_embeddings": 64}
MARIAN |= {
    "activation_function": "swish",
    "scale_embedding": True,
    "eos_token_id": 0,
    "forced_eos_token_id": 0,
}
T5 = {"d_model": 32, "d_kv": 6, "d_ff": 48, "num_heads": 4, "num_layers": 2, "decoder_start_token_id": 0}
IDS = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}


def written(family: str, folder: Path) -> tuple[Any, list[int]]:
    """A model with random weights that tell heads apart, and the tokens of the text."""
    from transformers import MarianConfig, MarianMTModel, T5Config, T5ForConditionalGeneration

    file, words = io.BytesIO(), LINE.split()
    lines = [" ".join(words[i:] + words[:i]) for i in range(len(words))] * 9
    options = {"vocab_size": 90, "hard_vocab_limit": False, "num_threads": 1, "minloglevel": 2}
    options |= IDS if family == "t5" else {}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=file, **options)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=file.getvalue())
    for name in ["spiece.model"] if family == "t5" else ["source.spm", "target.spm"]:
        (folder / name).write_bytes(file.getvalue())
    (folder / "tokenizer_config.json").write_text('{"extra_ids": 0}')
    if family == "t5":
        config = T5Config(**T5, vocab_size=pieces.get_piece_size(), attn_implementation="eager")
        model, ids = T5ForConditionalGeneration(config), [*pieces.encode(TEXT), 1]
        model.generation_config.update(max_length=20)
    else:
        known = [pieces.IdToPiece(i) for i in range(3, pieces.get_piece_size())]
        table = {piece: i for i, piece in enumerate(["</s>", "<unk>", *known, "<pad>"])}
        (folder / "vocab.json").write_text(json.dumps(table))
        pad, ids = table["<pad>"], [*(table[piece] for piece in pieces.encode_as_pieces(TEXT)), 0]
        config = MarianConfig(**MARIAN, vocab_size=pad + 1, pad_token_id=pad, attn_implementation="eager")
        config.decoder_start_token_id = pad
        model = MarianMTModel(config)
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
    np.testing.assert_allclose(surface.distributions(run)(), out.logits[0].log_softmax(-1), atol=1e-3)
    for kind, name in zip(surface.KINDS, ("encoder", "decoder", "cross"), strict=True):
        for layer, weights in enumerate(out[f"{name}_attentions"]):
            np.testing.assert_allclose(run.attention.weights(kind, layer), weights[0], atol=1e-4)
    assert run.attention.audit().passed
