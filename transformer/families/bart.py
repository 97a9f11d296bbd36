"""BART and mBART-50, and what Marian and M2M-100 share with them: the names of their weights.

BART (a text in, another out, such as its summary) is post-norm and has a byte-level vocabulary.
mBART-50 (52 languages) is pre-norm and has fairseq's vocabulary. Both have learned positions, and a
LayerNorm on the sum of embedding and position.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from transformer.config import TransformerConfig
from transformer.families.family import Family, Json, config_of, every_part
from transformer.families.pieces import (
    SPECIAL,
    WHOLE_FILE,
    WholePieces,
    added_tokens,
    languages_of,
    read_pieces,
    settings_of,
    whole_pieces,
)
from transformer.families.whole import Whole
from transformer.storage.files import CheckpointError
from transformer.text.tokenizer import Vocabulary
from transformer.text.words import BOS

_ATTENTION = ("q_proj", "k_proj", "v_proj", "out_proj")
ENCODER_PARTS = {
    **{f"self_attention.{part}": f"self_attn.{part}" for part in _ATTENTION},
    "self_attention_residual.norm": "self_attn_layer_norm",
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
    "feed_forward_residual.norm": "final_layer_norm",
}
DECODER_PARTS = ENCODER_PARTS | {
    **{f"cross_attention.{part}": f"encoder_attn.{part}" for part in _ATTENTION},
    "cross_attention_residual.norm": "encoder_attn_layer_norm",
}
"""Maps our part of a layer to theirs; each part has a ``weight`` and a ``bias``."""

SHARED = "model.shared.weight"
SOURCE = "model.encoder.embed_tokens.weight"
TARGET = "model.decoder.embed_tokens.weight"
OUTPUT = "lm_head.weight"
TIED = {
    (True, True): ((SHARED, SOURCE, TARGET, OUTPUT),),
    (True, False): ((SHARED, SOURCE, TARGET), (OUTPUT,)),
    (False, True): ((SOURCE,), (TARGET, OUTPUT)),
    (False, False): ((SOURCE,), (TARGET,), (OUTPUT,)),
}
"""By (shared, tied) embeddings: the groups of names of one table; a file may hold any of a
group."""


def tables(config: TransformerConfig) -> list[tuple[str, ...]]:
    """For the tables of source, target and output: the names under which a file may hold each."""
    groups = TIED[config.shared_embeddings, config.tied_embeddings]
    return [
        (role, *next(group for group in groups if role in group))
        for role in (SOURCE, TARGET, OUTPUT)
    ]


def names(config: TransformerConfig) -> dict[str, str]:
    """Our name of every weight besides the tables → theirs."""
    parts = dict(every_part(config, "model.{}.layers.{}", ENCODER_PARTS, DECODER_PARTS))
    norms = {"embedding_norm": "layernorm_embedding"} if config.embedding_norm else {}
    norms |= {"final_norm": "layer_norm"} if config.norm == "pre" else {}
    sides = "encoder", "decoder"
    parts |= {
        f"{side}.{our}": f"model.{side}.{their}" for side in sides for our, their in norms.items()
    }
    ours = {
        f"{our}.{kind}": f"{their}.{kind}"
        for our, their in parts.items()
        for kind in ("weight", "bias")
    }
    if config.positions == "learned":
        ours |= {
            f"{side}.positions.table": f"model.{side}.embed_positions.weight" for side in sides
        }
    return ours


FIELDS: dict[str, tuple[str, object]] = {
    "vocab_size": ("vocab_size", 50_265),
    "scaled_embeddings": ("scale_embedding", False),
}
"""Maps our field to their name and the reference's default; those of mBART are the same."""
REQUIRED: dict[str, object] = {
    "is_encoder_decoder": True,
    "normalize_embedding": True,
    "static_position_embeddings": False,
}
"""Entries of older configs whose other values would mean another architecture."""
CHOICES: Json = {"embedding_norm": True, "positions": "learned", "unk_id": 3}
_OF_BART = {"normalize_before": False, "add_final_layer_norm": False, "extra_pos_embeddings": 2}
_OF_MBART = {"normalize_before": True, "add_final_layer_norm": True}


bart_config = partial(
    config_of,
    fields=FIELDS,
    required=REQUIRED | _OF_BART,
    activation="gelu",
    choices=CHOICES | {"norm": "post", "task": "write"},
)
OLD = (
    "{} holds an mBART model of 25 languages, which puts the language behind the text; only "
    "mBART-50, with the language before the text, is supported."
)
"""What is said of mBART-cc25 and what was trained from it: the same ``model_type``, another
order."""


def mbart_config(values: Json, path: Path) -> TransformerConfig:
    """As ``config_of``; CheckpointError also for another order of languages."""
    old = values.get("tokenizer_class") in ("MBartTokenizer", "MBartTokenizerFast")
    if old or values.get("vocab_size") == 250_027:
        raise CheckpointError(OLD.format(path.parent))
    return config_of(
        values,
        path,
        fields=FIELDS,
        required=REQUIRED | _OF_MBART,
        activation="gelu",
        choices=CHOICES | {"norm": "pre"},
    )


IDS_FILE, MERGES_FILE, MASK = "vocab.json", "merges.txt", "<mask>"


def bart_vocabulary(
    directory: Path, config: TransformerConfig
) -> tuple[Vocabulary, TransformerConfig]:
    """Byte-level pieces; a source begins with `<s>`, a target does not, since the search begins
    it."""
    if settings_of(directory).get("add_prefix_space"):
        raise CheckpointError(
            f"{directory} says add_prefix_space, which is not supported for this family."
        )
    whole = directory / WHOLE_FILE
    files = [directory / IDS_FILE, directory / MERGES_FILE]
    absent = [path.name for path in files if not path.is_file()]
    if whole.is_file():
        pieces = whole_pieces(directory, config.vocab_size, SPECIAL)
        pieces.check_frame((BOS,))
    elif absent:
        raise CheckpointError(
            f"{directory} has no {WHOLE_FILE} and no {absent[0]}, so it is not a complete model "
            "directory."
        )
    else:
        pieces = WholePieces(byte_level(files, config.vocab_size), config.vocab_size, SPECIAL)
    return Vocabulary(pieces, pieces, before=(BOS,)), config


def byte_level(files: list[Path], size: int) -> Whole:
    """The two files of a byte-level vocabulary, with fairseq's special pieces and added tokens;
    CheckpointError if one is damaged, or an added token has another id than the next."""
    tokenizer = Whole.byte_level(*files)
    tokenizer.add(SPECIAL, special=True)
    tokenizer.add([MASK], special=True, after_spaces=True)
    added, special = added_tokens(files[0].parent, tokenizer.ids(), size)
    for piece in sorted(added, key=added.__getitem__):
        tokenizer.add([piece], special=piece in special)
        if tokenizer.id_of(piece) != added[piece]:
            raise CheckpointError(
                f"{files[0].parent} gives {piece!r:.60} an id that is not the next one."
            )
    return tokenizer


PIECES_FILE = "sentencepiece.bpe.model"
_CODES = """
ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV my_MM ne_NP
nl_XX ro_RO ru_RU si_LK tr_TR vi_VN zh_CN af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN
mn_MN mr_IN pl_PL ps_AF pt_XX sv_SE sw_KE ta_IN te_IN th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI
"""
LANGUAGES = tuple(_CODES.split())
"""ISO 639-1, and a country or none (XX), in the order of their ids; the first 25 are those of
mBART-cc25."""


def pair_vocabulary(
    directory: Path, config: TransformerConfig, order: Callable[[list[str]], dict[str, int]]
) -> tuple[Vocabulary, TransformerConfig]:
    """The vocabulary of a model for many pairs of languages; ``order`` and errors as for
    ``read_pieces``.

    A text begins with two of them, such as ``eng_Latn deu_Latn``: the first is a piece of the
    source, the second the one with which the output begins.
    """
    path = directory / PIECES_FILE
    pieces = read_pieces(path, config.vocab_size, order, "languages", SPECIAL, pair=True)
    languages = languages_of(pieces)
    if not languages:
        raise CheckpointError(
            f"{directory / WHOLE_FILE} names no language, although the model needs two."
        )
    config = replace(config, languages=" ".join(languages), language_pair=True)
    return Vocabulary(pieces, pieces, languages, pair=True), config


def mbart_vocabulary(
    directory: Path, config: TransformerConfig
) -> tuple[Vocabulary, TransformerConfig]:
    """mBART-50: fairseq's order, for which three pieces of sentencepiece make room; 52 languages
    behind."""

    def order(pieces: list[str]) -> dict[str, int]:
        ids = with_behind({}, (*SPECIAL, *pieces[3:]))
        if config.vocab_size == len(ids) + 25 + 1:  # the languages of mBART-cc25, and ``<mask>``
            raise CheckpointError(OLD.format(directory))
        return with_behind(ids, (*LANGUAGES, MASK))

    return pair_vocabulary(directory, config, order)


def with_behind(ids: dict[str, int], pieces: Sequence[str]) -> dict[str, int]:
    """The ids of some pieces, and of others behind them."""
    return ids | {piece: len(ids) + number for number, piece in enumerate(pieces)}


fairseq = partial(Family, names=names, tables=tables)
"""A family with these names of weights."""
BART = fairseq(
    name="BART",
    types=("bart",),
    files=(MERGES_FILE, IDS_FILE),
    tokenizers=("BartTokenizer", "RobertaTokenizer"),
    config=bart_config,
    vocabulary=bart_vocabulary,
)
MBART = fairseq(
    name="mBART-50",
    types=("mbart",),
    files=(PIECES_FILE,),
    tokenizers=("MBart50Tokenizer",),
    config=mbart_config,
    vocabulary=mbart_vocabulary,
)
