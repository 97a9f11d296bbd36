"""Texts: as people paste them, as sentences, as pieces and words, as lines of files; the kinds of
values."""

import gzip
import json
import math
import subprocess
import sys
import unicodedata
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from corpus import number_pairs, write_pairs
from hypothesis import given
from hypothesis import strategies as st

from transformer.sampling import Sampling
from transformer.text.kinds import (
    PART,
    Checked,
    above,
    at_least,
    listed,
    number,
    one_of,
    whole,
)
from transformer.text.pairs import DataError, ReadBounds, SentencePair, read_lines, read_pairs
from transformer.text.sentences import joined, sentences, split
from transformer.text.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Tokenizer, TokenizerError
from transformer.text.typed import PLAIN, clean, composed, read
from transformer.text.words import (
    BOS,
    EOS,
    Group,
    character_groups,
    is_special,
    readable,
    unknown_text,
    word_groups,
)
from transformer.translator import Translator, load_translator

# --- as they are typed ---------------------------------------------------------------------------

INVISIBLE = "\u200b\u2060\ufeff\u00ad\u200e\u202e\u2066\ufe0f\u034f\u180e\U000e0041"
BLANKS = "\u00a0\u2009\u202f\u3000\u2028\u2800\u3164\x07\t\n"
CLEANED = [
    *((f"{sign}The hou{sign}se{sign} is old", "The house is old") for sign in INVISIBLE),
    *((f"{blank}a{blank}{blank}b{blank}", "a b") for blank in BLANKS),
    ("a\x00b\x7fc", "a b c"),
    ("a\ud800b", "a\ufffdb"),
    ("\udc00", "\ufffd"),
    ("\ud83d\ude00", "😀"),
    ("e\u0301", "é"),
    ("می\u200cخواهم", "می\u200cخواهم"),  # a joiner stays where it shapes what is drawn
    ("👩\u200d👧", "👩\u200d👧"),
    ("Auf\u200clage", "Auflage"),
]


@pytest.mark.parametrize(("text", "cleaned"), CLEANED)
def test_a_text_is_cleaned_before_it_is_read(text, cleaned):
    assert clean(text) == cleaned == clean(cleaned)


@given(st.text() | st.text(st.sampled_from("a \u200b\u0301\u00a8“”—…’\ud83d\ude42\u200dé ́")))
def test_what_was_read_reads_as_itself(text: str):
    once = read(text, lambda _: True).text
    assert read(once, lambda _: True) == read(once)
    assert clean(once) == once == unicodedata.normalize("NFC", once)
    assert len(read(text, lambda _: True).words) == len(once.split(" ")) if once else True


def test_only_what_a_vocabulary_lacks_becomes_plain_and_words_are_numbered_as_typed():
    for character, plain in PLAIN.items():
        category = unicodedata.category(character)
        assert category[0] in "PSL"
        assert category not in ("Sc", "Ll", "Lu", "Lo")
        assert plain.isascii()
    pasted = read("It’s – “old”", lambda character: character in "’“”")
    assert (pasted.text, pasted.plain) == ('It\'s – "old"', ("’", "“", "”"))
    assert read("`a` b", "`".__eq__).text == "'a' b"  # of plain letters, too
    pasted = read("a\u200b \u200b b—c d", lambda _: True)
    assert (pasted.text, pasted.words) == ("a b - c d", (0, 2, 2, 2, 3))


@pytest.fixture(scope="module")
def production() -> Translator:
    return load_translator("assets/models/en-pt")


@pytest.mark.parametrize(
    "text", ["Müller isn’t “here”—now…", "½ a¨b £5 日本語 x", "👨\u200d👩\u200d👧 ok ﬁne", "a b"]
)
def test_every_word_has_its_pieces_whatever_became_of_it(production, text):
    groups = production.cut(text).groups()
    assert len(groups) == len(text.split())
    assert [i for group in groups for i in group.indices] == [*range(len(production.ids(text)))]
    if text == "a b":
        assert groups == (Group(0, 1, "a"), Group(1, 2, "b"))


def test_what_has_no_piece_is_noted_on_either_side(production, tokenizer):
    run = production.translate("It costs £5 and Müller isn’t here.", capture=False)
    assert run.notes == (
        "This model has no piece for ’; it reads it as the plain '.",
        "This model has no piece for £ and ü; it reads them as unknown.",
    )
    assert tokenizer.cut("one 日 two").notes() == (
        "This model has no piece for 日; it spells it in bytes.",
    )
    assert production.translate("The house is old.", capture=False).notes == ()
    assert "The model wrote an empty text." in production.translate("日本語", capture=False).notes
    tokens = production.translate("Müller lives in Łódź.", capture=False).source_tokens
    assert [*filter(None, map(unknown_text, tokens))] == ["ü", "Ł", "ź"]
    forced = production.force("The old house.", "A casa £ velha.")
    assert "This model has no piece for £; it reads it as unknown." in forced.notes
    assert "<unk:£>" in forced.target_tokens
    assert forced.attention.audit().passed
    again = production.force("The old house.", forced.target_tokens, capture=False)
    assert again.log_probs == pytest.approx(forced.log_probs, abs=1e-4)


# --- sentences -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parts",
    [
        ("He left. ", "She stayed.\n", "Why? ", "Go!!! ", "Wait… ", "What?!"),
        ("Dr. Smith met Mr. J. R. Brown at 3.15 p.m. ", "They paid $3.50. ", "20 people came."),
        ("“Why?” he asked. ", "“Because.” ", "She laughed. ", "(See fig. 2.) ", "Done."),
        ("So do I. ", "He left the U.S. Army at 5 p.m. 3 times, etc., and so on... perhaps."),
        (
            "Am 3. Oktober war es, z. B. hier. ",
            "Der 2. Weltkrieg endete 1945. ",
            "Er war 12. ",
            "Dann.",
        ),
        ("1. First do this. ", "2. Then that."),
        ("Sim. ", "— Não. ", "¿Qué? ", "¡Sí!"),
        ("「はい。」と言った。", "３．１４です。 ", "そう。"),
        ("هل أنت هنا؟ ", "نعم. ", "لا."),
        ("Τι κάνεις; ", "Καλά."),
        ("one; Two: three, Four.txt and www.a.org",),
        ("  ",),
    ],
)
def test_marks_end_sentences_and_abbreviations_and_numbers_stay_whole(parts):
    assert split("".join(parts)) == parts


@given(st.text(st.sampled_from('aB3 .!?…。"”)-\nΑ;Dr')) | st.text())
def test_joined_the_sentences_are_the_text_and_none_is_blank(text: str):
    parts = split(text)
    assert "".join(parts) == text
    assert len(parts) < 2 or all(part.strip() for part in parts)
    assert all(split(part.strip()) == (part.strip(),) for part in parts if part.strip())


LINEAR = """
import resource
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
from benchmarks.texts import HOSTILE, LENGTH, made
from transformer.text.sentences import joined, split
from transformer.text.typed import clean
for kind in HOSTILE:
    parts = split(made(kind, LENGTH))
    assert "".join(parts) == made(kind, LENGTH), kind
    joined(parts)
    clean(made(kind, LENGTH))
"""


def test_a_hostile_text_is_cleaned_and_split_in_linear_time():
    """Each took minutes; the processor's time is bounded by the system, and nothing is measured."""
    ended = subprocess.run([sys.executable, "-c", LINEAR], capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")


@given(st.text(st.sampled_from("ae\u0301\u0323\u0344\u0f73가각각")) | st.text())
def test_what_is_composed_is_the_librarys_own(text: str):
    assert composed(text) == unicodedata.normalize("NFC", text)


def test_sentences_stand_after_what_a_text_begins_with_and_are_joined_as_their_script_does():
    assert sentences(" One.  Two. ") == ("One.", "Two.")
    assert sentences(">>fra<< One. Two.", ">>fra<<") == (">>fra<< One.", ">>fra<< Two.")
    assert sentences(" \n") == ()
    assert (
        joined(("Ja.\n", " Nein. ", "", "好。", "「是。」", "再见")) == "Ja. Nein. 好。「是。」再见"
    )


# --- pieces and words ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained() -> Tokenizer:
    return Tokenizer.train((text for pair in number_pairs(300) for text in pair), 300)


@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="▁\x00")))
def test_any_text_comes_back_as_it_was_without_special_pieces(trained: Tokenizer, text: str):
    ids = trained.source.encode(text)
    assert trained.target.decode(ids) == text
    assert not {*ids} & {PAD_ID, BOS_ID, EOS_ID, UNK_ID}


def test_a_vocabulary_is_trained_alike_and_survives_its_bytes(trained):
    assert trained.target.named([PAD_ID, BOS_ID, EOS_ID, UNK_ID]) == (
        "<pad>",
        "<s>",
        "</s>",
        "<unk>",
    )
    assert trained.vocab_size == 300
    texts = [
        "one two",
        "drei 😀",
        "<s> </s> <pad> <unk> <0xE2>",
        "  two  spaces, and one at the end ",
        "",
    ]
    alone = [trained.source.encode(text) for text in texts]
    assert alone == [Tokenizer(trained.serialized).source.encode(text) for text in texts]
    assert [trained.target.decode(ids) for ids in alone] == texts
    assert trained.encode_all(texts) == [
        trained.source.encode(trained.cut(text).clean.text) for text in texts
    ]
    assert trained.target.decode([BOS_ID, *trained.source.encode("two"), EOS_ID, PAD_ID]) == "two"
    assert trained.target.named(trained.source.encode("seven sieben")) == ("▁seven", "▁sieben")
    again = Tokenizer.train((text for pair in number_pairs(300) for text in pair), 300)
    assert again.serialized == trained.serialized


def test_what_is_no_vocabulary_or_cannot_be_one_is_refused(tokenizer):
    content = tokenizer.serialized
    flipped = bytearray(content)
    flipped[flipped.index("▁".encode())] ^= 0x20
    for damaged, words in (
        (b"", "sentencepiece"),
        (b"no model", "sentencepiece"),
        (content[:1000], r"\w"),
        (bytes(flipped), "damaged"),
    ):
        with pytest.raises(TokenizerError, match=words):
            Tokenizer(damaged)
    texts = [
        f"the {noun} is {color} ." for noun in ("house", "car", "tree") for color in ("old", "red")
    ]
    for size, bound, sign in ((100_000, "most", 1), (10, "least", -1)):
        with pytest.raises(
            TokenizerError, match=rf"{size}.*at {bound} \d+\. .* --vocab-size"
        ) as caught:
            Tokenizer.train(texts, size)
        fits = int(str(caught.value).split(f" at {bound} ")[1].split()[0].rstrip("."))
        assert Tokenizer.train(texts, fits).vocab_size == fits
        with pytest.raises(TokenizerError):
            Tokenizer.train(texts, fits + sign)


def test_pieces_are_grouped_by_characters_and_by_words(tokenizer):
    names = {
        "▁Haus": "Haus",
        "▁": "◦",
        "▁<s>": "<s>",
        "<0xE2>": "0xE2",
        "<0x3C>": "<",
        "<0x0A>": "¶",
    }
    assert {piece: readable(piece) for piece in names} == names
    typed = "</s>", "<s>", "fr_XX", "<unk>"
    assert [piece for piece in (*names, *typed, EOS) if is_special(piece)] == [EOS]
    assert [is_special(piece) for piece in tokenizer.target.named(range(6))] == [True] * 4 + [
        False
    ] * 2
    pieces = tokenizer.target.named(tokenizer.source.encode("😀é€z"))
    assert [group.text for group in character_groups(pieces)][-4:] == ["😀", "é", "€", "z"]
    broken = character_groups(["<0xF0>", "<0x9F>", "▁a", "<0x80>", "<0xE2>"])
    assert broken == (Group(0, 2, "�"), Group(2, 3, "a"), Group(3, 4, "0x80"), Group(4, 5, "0xE2"))
    words = word_groups([BOS, "▁Ha", "us", ",", "▁", "<0xC3>", "<0xA9>", EOS])
    ends = Group(0, 1, "<s>", True), Group(7, 8, "</s>", True)
    assert words == (ends[0], Group(1, 4, "Haus,"), Group(4, 7, "é"), ends[1])
    assert word_groups(["▁pt", "_", "BR", "</s>"]) == (Group(0, 4, "pt_BR</s>"),)  # as it was typed
    pieces = (
        "<s>",
        *tokenizer.target.named(tokenizer.source.encode("one 😀 seven,  zwölf")),
        "</s>",
    )
    for groups in (character_groups(pieces), word_groups(pieces)):
        assert [i for group in groups for i in group.indices] == [*range(len(pieces))]
    assert word_groups([]) == character_groups([]) == ()


# --- lines of files ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "pairs"),
    [
        (b"a b\tc\n" + "Käse 😀\tx y\n".encode(), [("a b", "c", 1), ("Käse 😀", "x y", 2)]),
        (b"\xef\xbb\xbfa\tb\r\nc\td\r\n", [("a", "b", 1), ("c", "d", 2)]),
        (b"a\tb\n\n \nc\td\n\n\n", [("a", "b", 1), ("c", "d", 4)]),
    ],
)
def test_plain_and_gzipped_files_read_alike_without_blank_lines(tmp_path: Path, content, pairs):
    (tmp_path / "a.tsv").write_bytes(content)
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(content))
    for name in ("a.tsv", "a.tsv.gz"):
        found = read_pairs(tmp_path / name)
        assert found == [SentencePair(source, target) for source, target, _ in pairs]
        assert [pair.line for pair in found] == [line for *_, line in pairs]
    assert read_pairs(write_pairs(tmp_path / "b.tsv", [("a", "b")])) == [SentencePair("a", "b")]


PACKED = gzip.compress(b"a\tb\n" * 1000, mtime=0)[:30]
DAMAGED: list[tuple[str, bytes | None, str]] = [
    ("a.tsv", b"a\tb\nonly one\n", r"a\.tsv:2: .*found 1 column\."),
    ("a.tsv", b"a\tb\tc\n", r"a\.tsv:1: .*found 3 columns\."),
    ("a.tsv", b"a\tb\n \tb\n", r"a\.tsv:2: the source is empty"),
    ("a.tsv", b"a\t\n", r"a\.tsv:1: the target is empty"),
    ("a.tsv", b"a\tb\na\t\xff\n", r"a\.tsv:2: .*not UTF-8"),
    ("a.tsv", b"", r"a\.tsv: the file is empty"),
    ("a.tsv.gz", b"no gzip", "gzip file is damaged"),
    ("a.tsv.gz", PACKED, "gzip file is damaged"),
    ("a.tsv", None, "cannot be read: No such file"),
]


@pytest.mark.parametrize(("name", "content", "message"), DAMAGED, ids=range(len(DAMAGED)))
def test_a_bad_line_or_file_is_named(tmp_path: Path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_pairs(tmp_path / name)


@pytest.mark.parametrize(
    ("content", "most", "message"),
    [
        (b"a\tb\n" * 1_500_000, 10**6, "unpacks to more than 1 MiB"),
        (b"a" * 50_000_000, 10**6, r"pairs\.tsv\.gz:1: this line has more than 1 KiB"),
        (b"a\tb\n" * 20_000, 10_000, "more than 10,000 lines"),
    ],
    ids=["total", "line", "lines"],
)
def test_a_packed_file_is_read_up_to_its_bounds_only(tmp_path: Path, content, most, message):
    (tmp_path / "pairs.tsv.gz").write_bytes(gzip.compress(content))
    with pytest.raises(DataError, match=message):
        deque(
            read_lines(tmp_path / "pairs.tsv.gz", ReadBounds(total=2**20, line=2**10, lines=most)),
            maxlen=0,
        )
    (tmp_path / "pairs.tsv").write_bytes(b"a\tb\n" * 3)
    assert len([*read_lines(tmp_path / "pairs.tsv", ReadBounds(total=12, line=4, lines=3))]) == 3


# --- a value is of its kind, or is named with what it must be ------------------------------------

KINDS = {
    "a whole number from 1 to 1,000": (
        whole(1, 1_000),
        (1, 1_000),
        (0, 1_001, 1.0, True, "1", None),
    ),
    "a whole number from 0": (whole(0, most=9), (0, 9), (-1, 10, math.inf)),
    "a number from -1 to 2.5": (
        number(-1, 2.5),
        (-1, 2.5, np.float32(2)),
        (2.6, math.nan, "1", True),
    ),
    "at least 1": (at_least(1), (1, 1.5, np.int64(3)), (0.99, math.inf, math.nan, None)),
    "above 0": (above(0), (1e-9, math.inf), (0, -1, math.nan)),
    "above 0 and at most 1": (above(0, 1), (1,), (0, 1.01)),
    "a number from 0 to below 1": (PART, (0, 0.999), (1, -0.1, "0")),
    "a, b or c": (one_of(*"abc"), ("a", "c"), ("", "d", ["a"], None)),
    "only": (one_of("only"), ("only",), ("other",)),
}


@pytest.mark.parametrize("said", KINDS)
def test_a_value_is_of_its_kind_or_is_named(said: str):
    kind, good, bad = KINDS[said]
    assert kind.said == said
    assert [kind.check("x", value) for value in good] == list(good)
    for value in bad:
        with pytest.raises(ValueError, match="must be") as caught:
            kind.check("x", value)
        assert str(caught.value) == f"x is {value!r}; it must be {said}."


@dataclass(frozen=True)
class Sizes(Checked):
    """Fields of every sort."""

    width: Annotated[int, whole(1, 9), "the width"] = 1
    most: Annotated[int, at_least(2)] | None = None
    order: Literal["pre", "post"] = "pre"
    tied: bool = True
    name: str = ""
    free: int = 0
    parts: tuple[Annotated[str, one_of(*"ab")], ...] = ()


@pytest.mark.parametrize(
    "wrong",
    [{"width": None}, {"most": 1}, {"order": "no"}, {"tied": 1}, {"name": 3}, {"parts": "ab"}],
    ids=str,
)
def test_a_field_is_checked_by_what_stands_beside_its_type(wrong: dict[str, Any]):
    assert Sizes(most=2, order="post", free=-3, parts=("a", "b"))
    ((name, value),) = wrong.items()
    with pytest.raises(ValueError, match=rf"^{name} is {value!r}; it must be .*\.$"):
        Sizes(**wrong)
    with pytest.raises(ValueError, match=r"^parts is 'c'; it must be a or b"):
        Sizes(parts=("a", "c"))


def test_parts_are_listed_as_in_a_sentence():
    assert [listed("abc"[:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]
    assert listed("abcde", "or", most=3) == "a, b, c or 2 more"
    assert listed("abc", most=3) == "a, b and c"


def test_numbers_of_numpy_become_plain_ones():
    found = Sampling(np.float32(0.5), np.uint8(3), np.float64(0.25), np.int64(8))
    assert json.loads(json.dumps(asdict(found))) == asdict(Sampling(0.5, 3, 0.25, 8))
