"""The languages of a model by its card or its vocabulary, their names and sample pairs. No PyTorch."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from transformer.storage.description import read_header

_THREE = """
ace Acehnese; acm Mesopotamian Arabic; acq Ta'izzi-Adeni Arabic; aeb Tunisian Arabic; afr Afrikaans;
ajp South Levantine Arabic; aka Akan; als Tosk Albanian; amh Amharic; apc North Levantine Arabic;
arb Modern Standard Arabic; ars Najdi Arabic; ary Moroccan Arabic; arz Egyptian Arabic; asm Assamese;
ast Asturian; awa Awadhi; ayr Central Aymara; azb South Azerbaijani; azj North Azerbaijani; bak Bashkir;
bam Bambara; ban Balinese; bel Belarusian; bem Bemba; ben Bengali; bho Bhojpuri; bjn Banjar;
bod Standard Tibetan; bos Bosnian; bug Buginese; bul Bulgarian; cat Catalan; ceb Cebuano; ces Czech;
cjk Chokwe; ckb Central Kurdish; crh Crimean Tatar; cym Welsh; dan Danish; deu German;
dik Southwestern Dinka; dyu Dyula; dzo Dzongkha; ell Greek; eng English; epo Esperanto; est Estonian;
eus Basque; ewe Ewe; fao Faroese; fij Fijian; fin Finnish; fon Fon; fra French; fur Friulian;
fuv Nigerian Fulfulde; gaz West Central Oromo; gla Scottish Gaelic; gle Irish; glg Galician; grn Guarani;
guj Gujarati; hat Haitian Creole; hau Hausa; heb Hebrew; hin Hindi; hne Chhattisgarhi; hrv Croatian;
hun Hungarian; hye Armenian; ibo Igbo; ilo Ilocano; ind Indonesian; isl Icelandic; ita Italian;
jav Javanese; jpn Japanese; kab Kabyle; kac Jingpho; kam Kamba; kan Kannada; kas Kashmiri; kat Georgian;
kaz Kazakh; kbp Kabiyè; kea Kabuverdianu; khk Halh Mongolian; khm Khmer; kik Kikuyu; kin Kinyarwanda;
kir Kyrgyz; kmb Kimbundu; kmr Northern Kurdish; knc Central Kanuri; kon Kikongo; kor Korean; lao Lao;
lij Ligurian; lim Limburgish; lin Lingala; lit Lithuanian; lmo Lombard; ltg Latgalian; ltz Luxembourgish;
lua Luba-Kasai; lug Ganda; luo Luo; lus Mizo; lvs Standard Latvian; mag Magahi; mai Maithili;
mal Malayalam; mar Marathi; min Minangkabau; mkd Macedonian; mlt Maltese; mni Meitei; mos Mossi;
mri Maori; mya Burmese; nld Dutch; nno Norwegian Nynorsk; nob Norwegian Bokmål; npi Nepali;
nso Northern Sotho; nus Nuer; nya Nyanja; oci Occitan; ory Odia; pag Pangasinan; pan Eastern Panjabi;
pap Papiamento; pbt Southern Pashto; pes Western Persian; plt Plateau Malagasy; pol Polish; por Portuguese;
prs Dari; quy Ayacucho Quechua; ron Romanian; run Rundi; rus Russian; sag Sango; san Sanskrit; sat Santali;
scn Sicilian; shn Shan; sin Sinhala; slk Slovak; slv Slovenian; smo Samoan; sna Shona; snd Sindhi;
som Somali; sot Southern Sotho; spa Spanish; srd Sardinian; srp Serbian; ssw Swati; sun Sundanese;
swe Swedish; swh Swahili; szl Silesian; tam Tamil; taq Tamasheq; tat Tatar; tel Telugu; tgk Tajik;
tgl Tagalog; tha Thai; tir Tigrinya; tpi Tok Pisin; tsn Tswana; tso Tsonga; tuk Turkmen; tum Tumbuka;
tur Turkish; twi Twi; tzm Central Atlas Tamazight; uig Uyghur; ukr Ukrainian; umb Umbundu; urd Urdu;
uzn Northern Uzbek; vec Venetian; vie Vietnamese; war Waray; wol Wolof; xho Xhosa; ydd Eastern Yiddish;
yor Yoruba; yue Yue Chinese; zho Chinese; zsm Standard Malay; zul Zulu
"""
_TWO = """
af Afrikaans; am Amharic; ar Arabic; az Azerbaijani; ba Bashkir; be Belarusian; bg Bulgarian; bn Bengali;
br Breton; bs Bosnian; ca Catalan; cs Czech; cy Welsh; da Danish; de German; el Greek; en English;
es Spanish; et Estonian; fa Persian; ff Fulah; fi Finnish; fr French; fy Western Frisian; ga Irish;
gd Scottish Gaelic; gl Galician; gu Gujarati; ha Hausa; he Hebrew; hi Hindi; hr Croatian;
ht Haitian Creole; hu Hungarian; hy Armenian; id Indonesian; ig Igbo; is Icelandic; it Italian;
ja Japanese; jv Javanese; ka Georgian; kk Kazakh; km Khmer; kn Kannada; ko Korean; lb Luxembourgish;
lg Ganda; ln Lingala; lo Lao; lt Lithuanian; lv Latvian; mg Malagasy; mk Macedonian; ml Malayalam;
mn Mongolian; mr Marathi; ms Malay; my Burmese; ne Nepali; nl Dutch; no Norwegian; ns Northern Sotho;
oc Occitan; or Odia; pa Panjabi; pl Polish; ps Pashto; pt Portuguese; ro Romanian; ru Russian; sd Sindhi;
si Sinhala; sk Slovak; sl Slovenian; so Somali; sq Albanian; sr Serbian; ss Swati; su Sundanese;
sv Swedish; sw Swahili; ta Tamil; te Telugu; th Thai; tl Tagalog; tn Tswana; tr Turkish; uk Ukrainian;
ur Urdu; uz Uzbek; vi Vietnamese; wo Wolof; xh Xhosa; yi Yiddish; yo Yoruba; zh Chinese; zu Zulu
"""
_SCRIPTS = {
    "Arab": "Arabic script",
    "Deva": "Devanagari",
    "Hans": "simplified",
    "Hant": "traditional",
    "Latn": "Latin script",
    "Tfng": "Tifinagh",
}
_TWICE = ("ace", "bjn", "kas", "knc", "taq", "zho")
"""Languages that NLLB-200 knows in two scripts."""


def _table(text: str) -> dict[str, str]:
    pairs = (entry.split(maxsplit=1) for entry in text.split(";"))
    return {code: " ".join(name.split()) for code, name in pairs}


LANGUAGES = _table(_THREE) | _table(_TWO)
"""English names of languages by their codes: ISO 639-1 where there is one, and ISO 639-3 (NLLB-200)."""


def language_name(piece: str) -> str:
    """The name of the language of a piece, such as `deu_Latn`, `__de__` or `<2de>`; its code if unknown."""
    code = piece.strip("<>_").removeprefix("2")
    own, _, script = code.partition("_")
    name = LANGUAGES.get(own, code)
    return f"{name} ({_SCRIPTS[script]})" if own in _TWICE and script in _SCRIPTS else name


def languages_of(directory: Path) -> tuple[str, str] | None:
    """The codes of the two languages that a card names, such as ``("en", "de")``; None if it names others."""
    codes = read_header(directory).language
    return (codes[0], codes[1]) if len(codes) == 2 else None


def languages_in_words(codes: Sequence[str]) -> str:
    """Languages by their codes, such as "English → German"; empty without codes."""
    return " → ".join(LANGUAGES.get(code, code) for code in codes)


FOLDER = Path(__file__).resolve().parents[3] / "assets" / "sample"


@dataclass(frozen=True)
class Sample:
    """The files of two languages, in a folder of samples."""

    data: str  # pairs
    alignments: str  # links made by hand for other pairs


USUAL = Sample("tatoeba-en-de.tsv.gz", "alignments.tsv")
SAMPLES = {("en", "de"): USUAL, ("en", "pt"): Sample("tatoeba-en-pt.tsv.gz", "alignments-en-pt.tsv")}


def sample_of(model: Path | None) -> Sample:
    """The sample of a model's languages; that of English and German if its card names no others."""
    return USUAL if model is None else SAMPLES.get(languages_of(model) or ("", ""), USUAL)
