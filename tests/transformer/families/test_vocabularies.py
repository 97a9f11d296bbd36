"""Vocabularies of every family against transformers' tokenizers, as published and as people save
them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from m2m_models import english
from marian_models import write_marian
from properties import PROPERTY
from published import ADDED, PAIRS, changed, copied, ids_of, published, tokenizer_of
from refusals import refused

from transformer import Translator, load_translator
from transformer.families.m2m import M2M, NLLB
from transformer.families.pieces import pieces_by_id
from transformer.reader import InputError
from transformer.storage.files import CheckpointError
from transformer.text.typed import without_surrogates
from transformer.text.words import is_special

TEXTS = [
    "the house is small .",
    "The HOUSE, is; (small)!? 12.5 % of 3,000",
    "  the   cat\t\tsat \n on  ",
    "das Haus schläft e\u0301 \u00e9 \ufb01ne \u00bd \u212b",
    "小さな猫が古い家で眠る。漢字一二三",
    "שלום עולם مرحبا بالعالم",
    "🙂 👩‍👩‍👧 🇩🇪",
    "a</s>b<unk>c<pad>",
    "</s </S> <0x41>",
    ">>xyz<< the >>fra<< cat >>fra >><<",
    "“quoted” – dash… $%&#@ <script>alert(1)</script> {{x}} \\n %s",
    "龘 a 龘s tyv_Cyrl",
    "the <extra_id_0> house foo <extra_id_9>is",
    "foofoo the</s>foo b<unk><pad>",
    "\x00a\x01\x7f \u200b\u200d\ufeff \u202eright to left\u202c",
    "a" * 500,
    "cat " * 60,
]
FRAGMENTS = [
    "the",
    "cat",
    " ",
    " ",
    "  ",
    "▁",
    "</s>",
    "<unk>",
    "<pad>",
    "foo",
    "é",
    "漢",
    "🙂",
    ".",
]
VOCABULARIES: dict[str, tuple[str, dict[str, Any]]] = {
    "marian": ("marian", {}),
    "marian, languages": ("marian", {"languages": True}),
    "marian, separate": ("marian", {"separate": True}),
    "t5": ("t5", {}),
    "t5, no extra ids": ("t5", {"kind": "mt5"}),
    "madlad": ("t5", {"symbols": ("<2de>", "<2pt>", "<2xx_Latn>")}),
    "bart": ("bart", {}),
    "bart, tokenizer.json": ("bart", {"whole": True}),
    "mbart": ("mbart", {}),
    "m2m": ("m2m", {}),
    "nllb": ("nllb", {}),
    **{
        f"{family}, saved": (family, {"saved": True})
        for family in ("t5", "bart", "mbart", "m2m", "nllb")
    },
}


@dataclass(frozen=True)
class Reader:
    """A vocabulary as this package and as the reference read it."""

    family: str
    ours: Translator
    lead: str  # what a text begins with for this package alone
    ids: Callable[[str], list[int]]
    theirs: Any  # the reference's tokenizer


@cache
def reader(name: str) -> Reader:
    family, options = VOCABULARIES[name]
    directory = published(family, **options)
    ours = load_translator(directory)
    lead = PAIRS.get(family, "")
    theirs = tokenizer_of(family, directory)
    return Reader(
        family,
        ours,
        f"{lead} " if lead else "",
        lambda text: ids_of(family, directory, text),
        theirs,
    )


def check_text(name: str, text: str) -> None:
    """Ids, pieces and words of a text as typed, and the text of its ids."""
    read = reader(name)
    vocabulary = read.ours.tokenizer
    lead = ">>fra<< " if name == "marian, languages" else read.lead
    cut = vocabulary.cut(lead + text)
    clean = cut.clean.text.removeprefix(read.lead.strip()).strip() if read.lead else cut.clean.text
    ids = read.ids(clean)
    assert [*cut.ids, read.ours.config.eos_id] == ids, text
    assert len(cut.ids) == len(cut.pieces) == len(cut.words), text
    words = [word for word in cut.words if word >= 0]  # a blank as it was typed is of none
    assert words == sorted(words), text
    if not read.lead:
        assert vocabulary.source.encode(cut.clean.text) == [*cut.ids][read.family == "bart" :], text
    if read.family == "bart":  # whose pieces are named by their text, and spell whatever there is
        assert cut.unknown == () or "<unk>" in text
    else:
        pieces = read.theirs.convert_ids_to_tokens(ids)
        if name not in ("nllb", "marian, separate"):  # where the reference names other pieces
            assert [*read.ours.pieces(ids, "source")] == pieces, text
        assert ("<unk>" in pieces) == (bool(cut.unknown) or "<unk>" in text), text
    if read.family not in ("m2m", "nllb") or "saved" in name:
        spelled = read.theirs.decode(ids, skip_special_tokens=True).strip()
        target = ids if name != "marian, separate" else []
        assert vocabulary.target.decode(target) == spelled * bool(target), text


@pytest.mark.parametrize("name", VOCABULARIES)
def test_texts_are_cut_into_the_reference_s_ids_pieces_and_text(name):
    for text in TEXTS:
        check_text(name, text)


@pytest.mark.parametrize(
    "name", ["marian", "t5", "bart, saved", "mbart, saved", "m2m, saved", "nllb, saved"]
)
@PROPERTY
@given(parts=st.lists(st.sampled_from(FRAGMENTS), max_size=8))
def test_any_text_of_ordinary_and_special_pieces_is_cut_alike(name, parts):
    check_text(name, "a" + "".join(parts))


def test_marian_s_outputs_have_the_pieces_of_their_own_vocabulary():
    read = reader("marian, separate")
    ours = read.ours.tokenizer
    theirs = read.theirs
    every = [*range(read.ours.config.n_target_pieces)]
    for text in TEXTS:
        ids = ours.target.encode(clean := ours.cut(text).clean.text)
        assert [*ids, 0] == theirs(text_target=clean).input_ids
        assert ours.target.decode(ids) == theirs.decode(ids, skip_special_tokens=True)
    assert [*ours.target.named(every)] == theirs.convert_ids_to_tokens(every)


NONE: tuple[str, ...] = ()
LANGUAGES = {
    "marian": NONE,
    "marian, languages": (">>fra<<", ">>spa<<", ">>por<<"),
    "madlad": ("<2de>", "<2pt>", "<2xx_Latn>"),
    "m2m": tuple(f"__{code}__" for code in M2M),
    "nllb": NLLB,
    "nllb, saved": (*NLLB, "tyv_Cyrl"),
    "bart": NONE,
}


@pytest.mark.parametrize("name", LANGUAGES)
def test_the_languages_of_a_vocabulary_are_pieces_and_no_text(name):
    vocabulary = reader(name).ours.tokenizer
    languages = LANGUAGES[name]
    assert vocabulary.languages == languages
    numbers = [vocabulary.source.ids[language] for language in languages]
    assert all(map(is_special, vocabulary.source.named(numbers)))
    assert not any(
        map(is_special, vocabulary.source.named(vocabulary.source.encode("the house is")))
    )
    if languages and name != "marian, languages":  # whose languages the reference spells, too
        ids = [vocabulary.source.ids[languages[0]], *vocabulary.source.encode("the house is")]
        assert vocabulary.target.decode([*ids, reader(name).ours.config.eos_id]) == "the house is"
    if name == "nllb":
        assert vocabulary.source.ids["eng_Latn"] == english()
        assert vocabulary.source.ids["<mask>"] == english() - NLLB.index("eng_Latn") + len(NLLB)


def groups(name: str, text: str) -> list[str]:
    read = reader(name)
    return [group.text for group in read.ours.tokenizer.cut(read.lead + text).groups()]


def test_words_keep_their_places_whatever_spells_them():
    assert groups("marian", "the 語 cat 語s") == ["the", "語", "cat", "語s"]
    assert groups("bart", "the house 🙂 龘 is") == ["the", "house", "🙂", "龘", "is"]
    for name in PAIRS:  # although the language of the output is no piece
        cut = reader(name).ours.tokenizer.cut(f"{PAIRS[name]} house  is")
        assert cut.words[0] == 0
        assert groups(name, "house  is") == [PAIRS[name].split()[0], "house", "is"]
        assert reader(name).ours.tokenizer.source.pieces[cut.start] == PAIRS[name].split()[1]
    unknown = reader("marian").ours.tokenizer.cut("the 語")
    assert (unknown.unknown, unknown.pieces[-1]) == (("語",), "<unk:語>")
    spelled = reader("bart").ours.tokenizer.cut("the 🙂 龘")
    assert (spelled.pieces[0], spelled.notes()) == (
        "<s>",
        ("This model has no piece for 🙂 and 龘; it spells them in bytes.",),
    )


def test_a_mask_takes_the_space_before_it_and_what_no_page_can_send_is_replaced():
    """transformers 5 forgets the first where there is no tokenizer.json."""
    assert reader("bart").ours.tokenizer.cut("a <mask> b").pieces[:3] == ("<s>", "a", "<mask>")

    assert pieces_by_id({"\ud800": 0, "▁a": 1}, 3, without_surrogates) == [
        "\ufffd",
        "▁a",
        "<unused 2>",
    ]
    ours = reader("marian").ours.tokenizer
    assert ours.cut("a\ud800b  \t").clean.text == "a\ufffdb"
    assert ours.source.encode(ours.cut("\ud83d\ude42").clean.text) == ours.source.encode("🙂")


@pytest.mark.parametrize("family", ["t5", "bart", "mbart", "m2m", "nllb"])
def test_added_tokens_stay_whole_and_an_added_language_is_offered(family):
    ours = reader(f"{family}, saved").ours
    pair = PAIRS.get(family, "")
    languages = ours.config.language_pieces
    assert [token in ours.tokenizer.source.ids for token in ADDED] == [True, True]
    assert "foo" in ours.tokenizer.cut(f"{pair} the foo is").pieces
    assert languages[:2] == tuple(pair.split())
    assert ("tyv_Cyrl" in languages) == bool(pair)
    if pair:
        into = ours.translate(f"{languages[0]} tyv_Cyrl the house", beam_size=1, capture=False)
        assert into.target_tokens[0] == "tyv_Cyrl"


def test_neither_truncation_nor_padding_nor_chance_is_taken_over(tmp_path):
    directory = copied(tmp_path, "nllb", saved=True)
    path = directory / "tokenizer.json"
    text = "eng_Latn deu_Latn the little houses are sleeping quietly"
    ids = load_translator(directory).ids(text)
    tokenizer = tokenizer_of("nllb", directory).backend_tokenizer
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding(length=40)
    tokenizer.save(str(path))
    changed(
        directory, "tokenizer.json", model=json.loads(path.read_text())["model"] | {"dropout": 0.9}
    )
    ours = load_translator(directory)
    assert [ours.ids(text) for _ in range(5)] == [ids] * 5


PLACES: dict[str, Callable[[int], tuple[str, dict[str, Any]]]] = {
    "file": lambda number: ("added_tokens.json", {"tyv_Cyrl": number}),
    "head": lambda number: (
        "tokenizer.json",
        {"added_tokens": [ENTRY | {"id": number}], "model": {}},
    ),
    "named": lambda number: (
        "tokenizer_config.json",
        {"extra_special_tokens": {"tuvan": "tyv_Cyrl"}},
    ),
    "listed": lambda number: ("tokenizer_config.json", {"additional_special_tokens": ["tyv_Cyrl"]}),
    "decoder": lambda number: (
        "tokenizer_config.json",
        {"added_tokens_decoder": {str(number): ENTRY}},
    ),
}
ENTRY = {"content": "tyv_Cyrl", "special": True}


@pytest.mark.parametrize("place", PLACES)
def test_an_added_language_beside_sentencepiece_is_read_wherever_it_stands(tmp_path, place):
    directory = copied(tmp_path, "nllb")
    number = load_translator(directory).config.vocab_size - 3
    file, entries = PLACES[place](number)
    ours = load_translator(changed(directory, file, **entries))
    run = ours.translate("eng_Latn tyv_Cyrl the house is small", beam_size=1)
    assert (run.steps[0].token_id, run.steps[0].forced, ours.token_id("tyv_Cyrl")) == (
        number,
        True,
        number,
    )
    assert ours.config.language_pieces[-1] == "tyv_Cyrl"


@pytest.mark.parametrize("damage", [[1], {"5": 7}, {"5": {"content": 3}}, "tyv"], ids=str)
def test_damaged_entries_of_added_tokens_add_nothing(tmp_path, damage):
    directory = copied(tmp_path, "nllb")
    before = load_translator(directory).tokenizer.source.ids
    for name in ("added_tokens_decoder", "additional_special_tokens", "extra_special_tokens"):
        changed(directory, "tokenizer_config.json", **{name: damage})
    changed(directory, "tokenizer.json", added_tokens=damage)
    changed(directory, "added_tokens.json", far=10**9, less=-1, word="1")
    assert load_translator(directory).tokenizer.source.ids == before
    changed(directory, "tokenizer_config.json", added_tokens_decoder={"9" * 5000: {"content": "x"}})
    assert load_translator(directory).tokenizer.source.ids == before


@pytest.mark.parametrize("content", ["half \ud800", 10**400], ids=["text", "number"])
def test_added_tokens_beside_the_pieces_are_checked_like_all_json(tmp_path, content):
    directory = copied(tmp_path, "nllb")
    before = load_translator(directory).tokenizer.source.ids
    entries = [{"content": "tyv", "id": 5}, {"content": content, "id": 6}]
    changed(directory, "tokenizer.json", added_tokens=entries)
    assert load_translator(directory).tokenizer.source.ids == before


def test_one_table_of_ids_has_one_table_of_pieces(tmp_path):
    opened = load_translator(write_marian(tmp_path)).tokenizer
    assert opened.target.pieces is opened.source.pieces
    assert opened.target.split is not opened.source.split
    apart = load_translator(write_marian(tmp_path / "apart", separate=True)).tokenizer
    assert apart.target.pieces is not apart.source.pieces


@pytest.mark.parametrize(
    ("family", "lead", "back"),
    [("m2m", "__en__ __de__ ", 2), ("t5", "", 6), ("bart", "", 2)],
)
def test_tokens_added_beside_a_vocabulary_are_cut_and_spelled_as_the_reference_does(
    tmp_path, family, lead, back
):
    directory = copied(tmp_path, family)
    number = load_translator(directory).config.vocab_size - back  # the next one
    changed(directory, "added_tokens.json", foo=number)
    ours = load_translator(directory)
    theirs = tokenizer_of(family, directory)
    for text in ("the foo is small", "foofoo the", "a foo"):
        ids = [*ours.tokenizer.cut(lead + text).ids]
        expected = theirs(text if family == "m2m" else lead + text).input_ids
        assert number in ids
        assert [*ids, ours.config.eos_id] == expected
        spelled = theirs.decode(expected, skip_special_tokens=True).removeprefix("__en__")
        assert ours.tokenizer.target.decode(ids) == spelled.strip()


BOTH = "languages; begin the text with the one that it is in"
ASKED: list[tuple[str, dict[str, Any], str, str]] = [
    ("bart", {}, " ", "The text is empty"),
    (
        "marian",
        {"languages": True},
        "the cat sat",
        r"3 languages; begin the text .* >>fra<< or >>spa<<",
    ),
    ("marian", {"languages": True}, ">>xyz<< the >>fra<< cat", "3 languages; begin the text"),
    ("marian", {"languages": True}, ">>fra<<", "empty"),
    ("marian", {}, "cat " * 70, "shorten it to at most 64"),
    (
        "t5",
        {"symbols": ("<2de>", "<2pt>", "<2xx_Latn>")},
        "the house",
        "translates into 3 languages; begin",
    ),
    ("mbart", {}, "two dogs", f"knows 52 {BOTH}"),
    *(("nllb", {}, text, f"knows 202 {BOTH}") for text in ("dogs", "eng_Latn xyz_Latn a")),
    ("nllb", {}, "eng_Latn deu_Latn", "The text is empty"),
]


@pytest.mark.parametrize(("family", "options", "text", "words"), ASKED)
def test_what_cannot_be_translated_is_refused_in_one_sentence(family, options, text, words):
    with refused(InputError, words):
        load_translator(published(family, **options)).translate(text)


NAMED: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("nllb", {"src_lang": "fra_Latn", "tgt_lang": "por_Latn"}, {}, "fra_Latn por_Latn"),
    ("nllb", {"tgt_lang": "ace_Arab"}, {}, "ace_Latn ace_Arab"),
    ("nllb", {"src_lang": "fra_Latn"}, {"forced_bos_token_id": "deu_Latn"}, "fra_Latn deu_Latn"),
    ("nllb", {"src_lang": "xx", "tgt_lang": 3}, {}, "ace_Arab ace_Latn"),
    ("m2m", {"src_lang": "ja", "tgt_lang": "cs"}, {}, "__ja__ __cs__"),
    ("mbart", {"tgt_lang": "ro_RO"}, {}, "ar_AR ro_RO"),
    ("marian", {"target_lang": "por"}, {}, ">>por<< or >>fra<< or >>spa<<"),
]


@pytest.mark.parametrize(("family", "named", "generation", "words"), NAMED)
def test_the_sentence_proposes_the_languages_that_the_files_name(
    tmp_path, family, named, generation, words
):
    directory = copied(tmp_path, family, **({"languages": True} if family == "marian" else {}))
    ids = load_translator(changed(directory, "tokenizer_config.json", **named)).tokenizer.source.ids
    changed(
        directory,
        "generation_config.json",
        **{name: ids[piece] for name, piece in generation.items()},
    )
    with refused(InputError, f"such as {words}\\."):
        load_translator(directory).translate("the house")


def test_a_tokenizer_that_frames_texts_otherwise_is_refused(tmp_path):
    directory = copied(tmp_path, "mbart", saved=True)
    load_translator(
        changed(directory, "tokenizer_config.json", tokenizer_class="TokenizersBackend")
    )
    processor = json.loads((directory / "tokenizer.json").read_text())["post_processor"]
    frame = processor["single"]
    processor["single"] = frame[1:] + frame[:1]  # as MBartTokenizer has it
    changed(directory, "tokenizer.json", post_processor=processor)
    with refused(CheckpointError, "puts other tokens around a text"):
        load_translator(directory)


def test_a_byte_level_vocabulary_reads_line_breaks_and_blanks_as_the_reference_does():
    for text in ("the old house\nand the two dogs", "the house\n\nran .", " the  cat\t", "e\u0301"):
        for name in ("bart", "bart, tokenizer.json", "bart, saved"):
            read = reader(name)
            assert [*read.ours.tokenizer.cut(text).ids, 2] == read.ids(text)
