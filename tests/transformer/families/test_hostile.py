"""Vocabularies that a stranger wrote to hold a process up: each is refused in a sentence, before it
can."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from published import changed, copied
from refusals import refused

from transformer import load_translator
from transformer.families.patterns import tries_for_ever
from transformer.families.whole import MOST_CHARACTERS
from transformer.storage.files import CheckpointError

ROOT = Path(__file__).resolve().parents[3]
WHOLE = "tokenizer.json"


def rule(kind: str, pattern: str, content: str = "") -> dict[str, Any]:
    """A rule with a pattern: of a normaliser, or of what splits before the model."""
    more = {"content": content} if kind == "Replace" else {"behavior": "Isolated", "invert": False}
    return {"type": kind, "pattern": {"Regex": pattern}, **more}


def literal(pattern: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"String": pattern}, "content": content}


def table(content: bytes) -> dict[str, Any]:
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(content).decode()}


def steps(name: str, *rules: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", name: [*rules]}


GROWS, FOR_EVER, STOPPED = (
    r"may make [\d,]+ characters of one",
    "may take for ever",
    "its library stopped",
)
HOSTILE: dict[str, tuple[str, Any, str]] = {
    "a normaliser's pattern": ("normalizer", rule("Replace", "(a+)+$", "x"), FOR_EVER),
    "a splitter's pattern": ("pre_tokenizer", rule("Split", "(a|a)*$"), FOR_EVER),
    "the second pattern": (
        "normalizer",
        steps("normalizers", {"type": "NFC"}, rule("Replace", "(a+)+$")),
        "",
    ),
    "a decoder's pattern": ("decoder", rule("Replace", "(a+)+$", "x"), FOR_EVER),
    "doubled 19 times": ("normalizer", steps("normalizers", *[literal("a", "aa")] * 19), GROWS),
    "doubled when written": ("decoder", steps("decoders", *[literal("a", "aa")] * 19), GROWS),
    "long once": ("normalizer", literal("a", "a" * 5000), GROWS),
    "nothing found": ("normalizer", literal("", "x" * 1024), GROWS),
    "prepended": (
        "normalizer",
        steps("normalizers", *[{"type": "Prepend", "prepend": "xx"}] * 7),
        GROWS,
    ),
    "bytes of bytes": ("normalizer", steps("normalizers", *[{"type": "ByteLevel"}] * 6), GROWS),
    "a table's long text": ("normalizer", table(bytes(4) + b"a" * 5000 + b"\0"), GROWS),
    "a table of nonsense": ("normalizer", table(b"\x10\0\0\0" + b"\xff" * 16 + b"a\0"), ""),
    "an empty table": ("normalizer", table(bytes(6)), ""),
    "no length": ("pre_tokenizer", {"type": "FixedLength", "length": 0}, ""),
    "many rules": (
        "normalizer",
        steps("normalizers", *[{"type": "StripAccents"}] * 65),
        "65 rules",
    ),
    "more than there is": (
        "decoder",
        {"type": "Strip", "content": "a", "start": 2**40, "stop": 9},
        "",
    ),
}
"""What stands in the file, under which name, and what is said."""


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_vocabulary_is_refused_when_it_is_opened(tmp_path, case):
    name, value, words = HOSTILE[case]
    directory = copied(tmp_path, "bart", whole=True)
    changed(directory, WHOLE, **{name: value})
    with refused(CheckpointError, words or "has no piece for what it cannot spell|for ever"):
        load_translator(directory)


@pytest.fixture(scope="module")
def slow(tmp_path_factory) -> Any:
    """A model whose vocabulary is slow on a single text."""
    directory = copied(tmp_path_factory.mktemp("slow"), "bart", whole=True)
    first = rule("Replace", "z*z*z*(?!z)(?<=y)", "x")
    changed(directory, WHOLE, normalizer=steps("normalizers", first, literal("q", "q" * 100)))
    return load_translator(directory)


def test_a_text_at_which_the_library_stops_is_refused_in_a_sentence(slow):
    slow.translate("the house")
    with refused(CheckpointError, "rules at which its library stopped"):
        slow.translate("z" * 2000)
    slow.translate("the house")


def test_a_text_that_may_become_too_long_is_refused_before_it_is_read(slow):
    with refused(CheckpointError, r"only texts of at most [\d,]+ are read"):
        slow.ids("a" * (MOST_CHARACTERS // 100 + 1))


PUBLISHED = [
    " {2,}",
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| "
        r"?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    ),
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}]*[\p{Ll}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}",
    r"[^\r\n\p{L}\p{N}]?+\p{L}+",
    r" ?[^(\s|[.,!?…。，、।۔،])]+",
    r"(?=(\d{3})+(?!\d))",
    "[一-龥]+",
    "(?i)a+?b",
]
"""The forms of patterns in published vocabularies."""
ENDLESS = [
    "(a+)+$",
    "(a|a)*c",
    "(a|b){5}",
    "(a*)?*",
    "(?:a{1,50})+",
    "a{1,50}+",
    "(a+){1}+",
    "(?:(?:a)+)+",
    "(?>(a+))+",
    "(?<n>a+)+",
    "((a|b)c){2,}",
    "(?:a?){30}",
    "a*a*a*a*c",
    "a?" * 13 + "a",
    "(a|b)" * 13,
    "a{0,9}" * 5,
    r"(a+)\1",
    r"(?<n>a)\g<n>",
    "(?x)(a+) +",
    "(?x:a)",
    "(?#a)(a+)+",
    "(?~a)",
    "(",
    ")",
    "[a",
]


def test_patterns_of_published_vocabularies_are_read_and_endless_ones_are_not():
    assert [pattern for pattern in PUBLISHED if tries_for_ever(pattern)] == []
    assert [pattern for pattern in ENDLESS if not tries_for_ever(pattern)] == []


def test_one_place_calls_the_library():
    files = [
        *ROOT.glob("transformer/**/*.py"),
        *ROOT.glob("explorer/**/*.py"),
        *ROOT.glob("pages/*.py"),
    ]
    calls = [
        file.name
        for file in files
        if re.search(r"^\s*(from|import) tokenizers", file.read_text(), re.M)
    ]
    assert calls == ["whole.py"]


def test_a_table_of_published_rules_is_read(tmp_path):
    """That of T5 and of its relatives: one sign becomes up to eighteen, two spaces one."""
    directory = copied(tmp_path, "t5", saved=True)
    normalizer = json.loads((directory / WHOLE).read_text())["normalizer"]
    prepended = steps("normalizers", normalizer, rule("Replace", " {2,}", "▁"), {"type": "NFKC"})
    changed(directory, WHOLE, normalizer=prepended)
    assert load_translator(directory).ids("the house")
