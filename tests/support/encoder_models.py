"""Small encoders alone as transformers saves them, their random weights spread enough to tell heads
apart."""

import json
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from bart_models import write_bart_vocabulary
from m2m_models import pieces as sentencepieces
from safetensors.torch import load_file, save_file

SIZES = {
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 300,
}
DISTIL_SIZES = {"dim": 48, "hidden_dim": 80, "n_layers": 3, "n_heads": 6}
ROBERTA_SIZES = SIZES | {"type_vocab_size": 1, "pad_token_id": 1}
KINDS: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "BERT": ("BertForMaskedLM", "Bert", SIZES, "words"),
    "BERT, cased, tanh-approximated": (
        "BertForMaskedLM",
        "Bert",
        SIZES | {"hidden_act": "gelu_new"},
        "cased words",
    ),
    "BERT, XLM-R's pieces": ("BertForMaskedLM", "Bert", SIZES, "unigram"),
    "MiniLM": ("BertModel", "Bert", SIZES, "words"),
    "ELECTRA": ("ElectraForMaskedLM", "Electra", SIZES | {"embedding_size": 48}, "words"),
    "ELECTRA, of which is replaced": (
        "ElectraForPreTraining",
        "Electra",
        SIZES | {"embedding_size": 48},
        "words",
    ),
    "DistilBERT": ("DistilBertForMaskedLM", "DistilBert", DISTIL_SIZES, "words"),
    "RoBERTa": ("RobertaForMaskedLM", "Roberta", ROBERTA_SIZES, "bytes"),
    "RoBERTa, ten rows of segments": (
        "RobertaForMaskedLM",
        "Roberta",
        ROBERTA_SIZES | {"type_vocab_size": 10},
        "bytes",
    ),
    "XLM-R": ("XLMRobertaForMaskedLM", "XLMRoberta", ROBERTA_SIZES, "unigram"),
}
"""The class of transformers, that of its config, sizes, and vocabulary, of every shape that is
compared."""
SEGMENTLESS = (
    "BERT, XLM-R's pieces",
    "DistilBERT",
    "RoBERTa",
    "RoBERTa, ten rows of segments",
    "XLM-R",
)
"""Kinds whose models are told nothing of which text of a pair a token belongs to."""
LINES = [
    "the old house and the two dogs saw the small cat near the river",
    "The cats sat on the mat, and the Dogs ran in the rain. It's 12 o'clock!",
    "naive café resume unaffordable reading houses",
] * 30


@cache
def words(lower: bool) -> Any:
    """WordPiece, trained on a few lines."""
    from tokenizers import BertWordPieceTokenizer

    made = BertWordPieceTokenizer(lowercase=lower)
    made.train_from_iterator(LINES, vocab_size=180, min_frequency=1, show_progress=False)
    return made


def write_vocabulary(directory: Path, vocabulary: str) -> int:
    """Writes a vocabulary as transformers saves it, ``tokenizer.json``; returns its size."""
    import transformers

    if vocabulary == "bytes":
        return write_bart_vocabulary(directory, whole=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if vocabulary == "unigram":
            (directory / "sentencepiece.bpe.model").write_bytes(sentencepieces("unigram"))
            made = transformers.XLMRobertaTokenizer.from_pretrained(directory)
        else:
            lower = vocabulary == "words"
            ids = words(lower).get_vocab()
            made = transformers.BertTokenizer(vocab=ids, do_lower_case=lower)
        made.save_pretrained(directory)
    return len(made)


def write_encoder(directory: Path, kind: str, seed: int = 0, **changes: Any) -> Path:
    """Writes weights, config and vocabulary as transformers does; ``changes`` of the config."""
    import transformers

    (model_name, config_name, sizes, vocabulary) = KINDS[kind]
    directory.mkdir(parents=True, exist_ok=True)
    size = write_vocabulary(directory, vocabulary)
    values = {"vocab_size": size, **sizes, **changes}
    config = getattr(transformers, f"{config_name}Config")(**values)
    torch.manual_seed(seed)
    model = getattr(transformers, model_name)(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.save_pretrained(directory)
    return directory


def reference(directory: Path, kind: str) -> Any:
    """The model as transformers opens it, with attention that shows its weights."""
    import transformers

    model_class = getattr(transformers, KINDS[kind][0])
    return model_class.from_pretrained(directory, attn_implementation="eager").eval()


def tokenizer_of(directory: Path) -> Any:
    """transformers' tokenizer of a directory."""
    import transformers

    return transformers.AutoTokenizer.from_pretrained(directory)


def changed_config(directory: Path, **entries: Any) -> None:
    """Changes entries of config.json."""
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))


def rewritten(
    directory: Path, change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]
) -> None:
    """Changes the tensors of the safetensors file."""
    path = directory / "model.safetensors"
    save_file(change(load_file(path)), path, {"format": "pt"})
