"""The vocabulary of mBART-50: a sentencepiece model, fairseq's order of ids, 52 languages behind."""

from __future__ import annotations

from pathlib import Path

from transformer.families.mbart.config import OLD
from transformer.families.pairs import MASK, PIECES_FILE, PairVocabulary, in_fairseq_order, pair_vocabulary
from transformer.families.pieces import read_model
from transformer.storage.files import CheckpointError

_CODES = """
ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV my_MM ne_NP
nl_XX ro_RO ru_RU si_LK tr_TR vi_VN zh_CN af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN
mn_MN mr_IN pl_PL ps_AF pt_XX sv_SE sw_KE ta_IN te_IN th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI
"""
LANGUAGES = tuple(_CODES.split())
"""ISO 639-1, and a country or none (XX), in the order of their ids; the first 25 are those of mBART-cc25."""
OF_CC25 = 25


def read_vocabulary(directory: Path, size: int) -> PairVocabulary:
    """Reads the vocabulary of a model with so many rows of embeddings.

    CheckpointError if a file is missing, damaged or too large, or there are more pieces than rows.
    """
    path = directory / PIECES_FILE
    model = read_model(path)
    ids = in_fairseq_order(model)
    if size == len(ids) + OF_CC25 + 1:
        raise CheckpointError(OLD.format(directory))
    return pair_vocabulary(path, model, ids, LANGUAGES, (MASK,), size)
