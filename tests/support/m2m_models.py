"""Small M2M-100 and NLLB-200 models as transformers saves them, with the published layout of
files."""

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from marian_models import random_of, save, trained
from t5_models import LINES

PAIRS = {"m2m": "__en__ __de__", "nllb": "eng_Latn deu_Latn"}
"""How a text begins that shall be translated from English into German."""


@cache
def pieces(model_type: str = "bpe") -> bytes:
    """A sentencepiece model with sentencepiece's own special pieces."""
    draw = random.Random(0)
    words = [word for line in LINES for word in line.split()]
    lines = [*LINES, *(" ".join(draw.choices(words, k=8)) for _ in range(300))]
    return trained(lines, model_type=model_type, vocab_size=260)


def write_vocabulary(directory: Path, kind: str) -> int:
    """Writes the files of a vocabulary and returns its number of pieces, the languages among
    them."""
    (directory / "sentencepiece.bpe.model").write_bytes(pieces())
    found = sentencepiece.SentencePieceProcessor(model_proto=pieces())
    names = [found.IdToPiece(number) for number in range(3, found.get_piece_size())]
    if kind == "nllb":
        return 4 + len(names) + 202 + 1
    listed = {
        piece: number for number, piece in enumerate(("<s>", "<pad>", "</s>", "<unk>", *names))
    }
    (directory / "vocab.json").write_text(json.dumps(listed))
    return len(listed) + 100


def write_m2m(
    directory: Path,
    *,
    kind: str = "m2m",
    seed: int = 0,
    activation: str = "relu",
    generation: dict[str, Any] | None = None,
    dtype: torch.dtype = torch.float32,
    shards: bool = False,
    **sizes: int,
) -> Path:
    """Makes and saves a model; ``sizes`` replace those of Marian's."""
    from transformers import M2M100Config, M2M100ForConditionalGeneration

    directory.mkdir(parents=True, exist_ok=True)
    choices = {
        "vocab_size": write_vocabulary(directory, kind) + 3,
        "activation_function": activation,
    }
    model = random_of(M2M100Config, M2M100ForConditionalGeneration, choices, seed, sizes)
    save(directory, model, generation or {"max_length": 20, "num_beams": 4}, dtype, shards)
    return directory


def english() -> int:
    """The id of NLLB's English: fairseq numbers the pieces, with one more at the start, then
    languages."""
    count = sentencepiece.SentencePieceProcessor(model_proto=pieces()).get_piece_size()
    return count + 1 + 46
