"""M2M-100 and NLLB-200: one pre-norm model for many pairs of languages, with sinusoids and no bias
of logits.

The pieces of the languages stand behind the vocabulary. In M2M-100 a file lists the ids of the
other pieces; NLLB-200 has fairseq's order.
"""

from pathlib import Path
from typing import Any

from transformer.config import TransformerConfig
from transformer.families.bart import (
    MASK,
    PIECES_FILE,
    fairseq,
    pair_vocabulary,
    with_behind,
)
from transformer.families.family import Json, config_of, require
from transformer.families.pieces import SETTINGS_FILE, SPECIAL, settings_of
from transformer.storage.files import CheckpointError, read_json
from transformer.text.tokenizer import Vocabulary

FIELDS: dict[str, tuple[str, Any]] = {
    "vocab_size": ("vocab_size", 128_112),
    "scaled_embeddings": ("scale_embedding", True),
}
"""Maps our field to their name and the reference's default, used if config.json lacks the entry."""
REQUIRED: dict[str, object] = {
    "is_encoder_decoder": True,
    "tie_word_embeddings": True,
    "normalize_before": True,
    "static_position_embeddings": True,
}
"""Entries whose other values would mean another architecture; those of old files among them."""
CHOICES: Json = {"norm": "pre", "sine_layout": "inclusive", "first_position": 2, "unk_id": 3}
"""What all of them have in common. Positions 0 and 1 belong to fairseq's ``<s>`` and padding."""


def config(values: Json, path: Path) -> TransformerConfig:
    """Entries of a ``config.json`` as our config; CheckpointError if one is out of range or
    unsupported."""
    ours = config_of(
        values, path, fields=FIELDS, required=REQUIRED, activation="relu", choices=CHOICES
    )
    if ours.d_model % 2:
        raise CheckpointError(
            f"{path} says d_model = {ours.d_model}; the sinusoids of this family need an even "
            "width."
        )
    if ours.bos_id == ours.pad_id:
        raise CheckpointError(
            f"{path} says decoder_start_token_id = pad_token_id = {ours.pad_id}; this family gives "
            "padding no position, so an output that begins with it is not supported."
        )
    return ours


IDS_FILE = "vocab.json"
MADE_UP = 8
"""Rows of M2M-100 behind the languages, which stand for nothing."""


def vocabulary(directory: Path, config: TransformerConfig) -> tuple[Vocabulary, TransformerConfig]:
    """The vocabulary of a directory; CheckpointError if a file is missing, damaged or another
    model's."""
    settings = settings_of(directory)
    listed = directory / IDS_FILE
    require(settings, {"legacy_behaviour": False}, directory / SETTINGS_FILE)

    def order(pieces: list[str]) -> dict[str, int]:
        fairseq_ids = with_behind({}, (*SPECIAL, *pieces[3:]))
        if not listed.is_file():
            return with_behind(fairseq_ids, (*NLLB, MASK))
        ids = _listed(listed)
        codes = WMT21 if settings.get("language_codes") == "wmt21" else M2M
        missing = sorted(
            fairseq_ids.keys() - ids.keys()
        )  # languages would get their ids, rows would be left
        if missing and config.vocab_size - len(ids) - len(codes) > MADE_UP:
            raise CheckpointError(
                f"{listed} lacks {len(missing):,} pieces of {PIECES_FILE} for which config.json "
                f"has rows, such as {missing[0]!r:.60}; the file is not complete."
            )
        return with_behind(ids, [f"__{code}__" for code in codes])

    return pair_vocabulary(directory, config, order)


def _listed(path: Path) -> dict[str, int]:
    ids = read_json(path)
    numbers = [number for number in ids.values() if type(number) is int]
    missing = [piece for piece in SPECIAL if piece not in ids]
    if missing or sorted(numbers) != list(range(len(ids))):
        lacks = f"has no piece {missing[0]}" if missing else "does not number its pieces from 0 on"
        raise CheckpointError(f"{path} {lacks}, so it is not the vocabulary of an M2M-100 model.")
    return ids


_M2M = """
af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht
hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps
pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu
"""
M2M = tuple(_M2M.split())
"""Codes of M2M-100, ISO 639-1 where there is one; their pieces are `__en__`, and so on."""
WMT21 = ("en", "ha", "is", "ja", "cs", "ru", "zh", "de")
"""Those of the models for WMT 2021."""
_NLLB = """
ace_Arab ace_Latn acm_Arab acq_Arab aeb_Arab afr_Latn ajp_Arab aka_Latn amh_Ethi apc_Arab arb_Arab ars_Arab
ary_Arab arz_Arab asm_Beng ast_Latn awa_Deva ayr_Latn azb_Arab azj_Latn bak_Cyrl bam_Latn ban_Latn bel_Cyrl
bem_Latn ben_Beng bho_Deva bjn_Arab bjn_Latn bod_Tibt bos_Latn bug_Latn bul_Cyrl cat_Latn ceb_Latn ces_Latn
cjk_Latn ckb_Arab crh_Latn cym_Latn dan_Latn deu_Latn dik_Latn dyu_Latn dzo_Tibt ell_Grek eng_Latn epo_Latn
est_Latn eus_Latn ewe_Latn fao_Latn pes_Arab fij_Latn fin_Latn fon_Latn fra_Latn fur_Latn fuv_Latn gla_Latn
gle_Latn glg_Latn grn_Latn guj_Gujr hat_Latn hau_Latn heb_Hebr hin_Deva hne_Deva hrv_Latn hun_Latn hye_Armn
ibo_Latn ilo_Latn ind_Latn isl_Latn ita_Latn jav_Latn jpn_Jpan kab_Latn kac_Latn kam_Latn kan_Knda kas_Arab
kas_Deva kat_Geor knc_Arab knc_Latn kaz_Cyrl kbp_Latn kea_Latn khm_Khmr kik_Latn kin_Latn kir_Cyrl kmb_Latn
kon_Latn kor_Hang kmr_Latn lao_Laoo lvs_Latn lij_Latn lim_Latn lin_Latn lit_Latn lmo_Latn ltg_Latn ltz_Latn
lua_Latn lug_Latn luo_Latn lus_Latn mag_Deva mai_Deva mal_Mlym mar_Deva min_Latn mkd_Cyrl plt_Latn mlt_Latn
mni_Beng khk_Cyrl mos_Latn mri_Latn zsm_Latn mya_Mymr nld_Latn nno_Latn nob_Latn npi_Deva nso_Latn nus_Latn
nya_Latn oci_Latn gaz_Latn ory_Orya pag_Latn pan_Guru pap_Latn pol_Latn por_Latn prs_Arab pbt_Arab quy_Latn
ron_Latn run_Latn rus_Cyrl sag_Latn san_Deva sat_Beng scn_Latn shn_Mymr sin_Sinh slk_Latn slv_Latn smo_Latn
sna_Latn snd_Arab som_Latn sot_Latn spa_Latn als_Latn srd_Latn srp_Cyrl ssw_Latn sun_Latn swe_Latn swh_Latn
szl_Latn tam_Taml tat_Cyrl tel_Telu tgk_Cyrl tgl_Latn tha_Thai tir_Ethi taq_Latn taq_Tfng tpi_Latn tsn_Latn
tso_Latn tuk_Latn tum_Latn tur_Latn twi_Latn tzm_Tfng uig_Arab ukr_Cyrl umb_Latn urd_Arab uzn_Latn vec_Latn
vie_Latn war_Latn wol_Latn xho_Latn ydd_Hebr yor_Latn yue_Hant zho_Hans zho_Hant zul_Latn
"""
NLLB = tuple(_NLLB.split())
"""Codes of NLLB-200 (FLORES-200): ISO 639-3 and the script; they are pieces themselves."""

M2M100 = fairseq(
    name="M2M-100 and NLLB-200",
    types=("m2m_100",),
    files=(PIECES_FILE,),
    tokenizers=("M2M100Tokenizer", "NllbTokenizer"),
    config=config,
    vocabulary=vocabulary,
)
