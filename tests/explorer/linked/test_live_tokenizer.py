"""The tokenizer of the page that translates, in Node, against Python's."""

from __future__ import annotations

import base64
import gzip
import io
import json
import random
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from playwright._impl._driver import compute_driver_executable
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from explorer.figures.base import captions
from explorer.linked.living.scripts import static
from explorer.linked.typing_tables import typing_tables
from explorer.linked.view.strips import chips
from transformer.text.vocabulary import Tokenizer

ROOT = static().parent
SAMPLE = gzip.decompress((ROOT / "assets/sample/tatoeba-en-de.tsv.gz").read_bytes()).decode().splitlines()
SYMBOLS = {"user_defined_symbols": ["<sep>", "<b>", "ab"]}
BPE = {"model_type": "bpe", **SYMBOLS}
SCRIPT = """
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
const { folder, tables, cases } = JSON.parse(readFileSync(0, "utf-8"));
const { Tokenizer } = await import(pathToFileURL(`${folder}/tokenizer.js`));
const { Writing } = await import(pathToFileURL(`${folder}/chips.js`));
const writing = new Writing(tables);
const answers = cases.map(({ model, texts, ids }) => {
  try {
    const tokenizer = new Tokenizer(Uint8Array.from(Buffer.from(model, "base64")), tables);
    return {
      special: tokenizer.special,
      read: texts.map((text) => {
        const read = tokenizer.read(text);
        const shown = [...read.pieces, "</s>"];
        return { ...read, chips: writing.chips(shown), names: shown.map((piece) => writing.name(piece)) };
      }),
      decoded: ids.map((each) => tokenizer.decode(each)),
    };
  } catch (error) {
    return error.message;
  }
});
process.stdout.write(JSON.stringify(answers));
"""
ALPHABETS = (
    "abcdefgh THE the ing. ,;!? 0123 '\"-`$€",
    "äöüßéèñçãõ ÀÅ ﬁ ① Ａ ½ ² ㎏ Ǆ",
    "e\u0301a\u0308o\u0302\u0323 n\u0303 \u1fef \u212b \u0958 \u0344",
    "‘’“”„«»‹›—–‐…−´ʼ",
    "中文字漢语言 日本かなカナ ｶﾞ 한국어 \u1112\u1161\u11ab",
    "👩\u200d🚀😀👍🏽❤\ufe0f🇩🇪 \u0915\u094d\u200d\u0937 ن\u200cم \u05d0",
    "\u00ad\u200b\u200d\u200c\u2060\ufeff\u034f\ufe0f\u202e \u3164\u2800\u115f",
    "\x00\x01\t\n\r\x1c\x85\xa0\u2003\u2028\u3000 \x7f",
    "\ud800\udc00\udfff\ud83d \ude00\ufffd\U0010ffff\ue000",
    "▁ <s> </s> <unk> <unk:a> <0x41> <sep> <b>",
)
TEXTS = (
    "", " ", " \t\n ", "▁", "▁▁ ▁", "a" * 3000, "漢" * 300, "the" * 200, "\ud800", "\ud83d\ude00", "\u0301a",
    "a\u200b b", "He said: ‘It’s…’ — “no”!", "½ of ﬁve", "´x ¨y", "<script>alert(1)</script>",
    "x\u200by\u00ad z", "ﷺ", "`it`",
)  # fmt: skip


def trained(options: dict[str, Any], unused: int = 0) -> bytes:
    """A small model; of its pieces, every ``unused``-th is not used."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SAMPLE[:2000]),
        model_writer=written,
        vocab_size=700,
        num_threads=1,
        minloglevel=2,
        **options,
    )
    model = ModelProto.FromString(written.getvalue())
    for piece in model.pieces[300::unused] if unused else ():
        piece.type = piece.UNUSED
    return bytes(model.SerializeToString())


def in_node(cases: Sequence[tuple[bytes, Sequence[str], Sequence[Sequence[int]]]]) -> list[Any]:
    node, _ = compute_driver_executable()
    if not Path(node).exists():
        pytest.skip("needs the Node of playwright")
    asked = {
        "folder": str(static() / "engine-1"),
        "tables": typing_tables(),
        "cases": [
            {"model": base64.b64encode(model).decode(), "texts": texts, "ids": ids}
            for model, texts, ids in cases
        ],
    }
    run = subprocess.run(
        [node, "--input-type=module", "-e", SCRIPT], input=json.dumps(asked).encode(), capture_output=True
    )
    assert not run.returncode, run.stderr.decode()
    return list(json.loads(run.stdout))


def read(tokenizer: Tokenizer, text: str) -> dict[str, Any]:
    pieced = tokenizer.cut(text)
    groups = [{"start": group.start, "stop": group.stop, "text": group.text} for group in pieced.groups()]
    lists = {name: list(getattr(pieced, name)) for name in ("ids", "pieces", "words", "unknown", "spelled")}
    shown = [*pieced.pieces, "</s>"]
    view = {"chips": chips(shown), "names": [captions.quote(piece) for piece in shown]}
    return view | {"text": pieced.read.text, "plain": list(pieced.read.plain), "groups": groups, **lists}


def mixtures(count: int) -> list[str]:
    """Texts that mix what is easily told apart with what is not; the same ones every time."""
    dice = random.Random(5)
    found = []
    for _ in range(count):
        chosen = dice.sample(ALPHABETS, dice.randint(1, 3))
        parts = [
            dice.choice([*alphabet, *alphabet.split(" ")])
            for alphabet in chosen
            for _ in range(dice.randint(1, 9))
        ]
        dice.shuffle(parts)
        found.append("".join(part + " " * (dice.random() < 0.2) for part in parts))
    return found


MODELS: dict[str, Callable[[], bytes]] = {
    "en-de": (ROOT / "assets/models/en-de/tokenizer.model").read_bytes,
    "en-pt": (ROOT / "assets/models/en-pt/tokenizer.model").read_bytes,
    "bpe": lambda: trained({**BPE, "byte_fallback": True}),
    "bpe, pieces that are not used": lambda: trained(BPE, unused=3),
    "identity": lambda: trained(
        {"normalization_rule_name": "identity", "remove_extra_whitespaces": False, **SYMBOLS}
    ),
    "nmt_nfkc": lambda: trained(
        {"byte_fallback": True, "unk_surface": "<?>", "pad_id": 3, **SYMBOLS}, unused=4
    ),
    "no first space": lambda: trained({"add_dummy_prefix": False, "normalization_rule_name": "nfkc_cf"}),
    "space behind": lambda: trained({"treat_whitespace_as_suffix": True, "bos_id": -1}),
}


def test_texts_are_read_as_python_reads_them() -> None:
    texts = [*TEXTS, *SAMPLE[::60], *mixtures(500)]
    dice = random.Random(6)
    cases, wanted = [], []
    for model in (make() for make in MODELS.values()):
        tokenizer = Tokenizer(model)
        ids = [dice.choices(range(tokenizer.vocab_size), k=dice.randint(0, 9)) for _ in texts]
        ids += [dice.choices(range(min(260, tokenizer.vocab_size)), k=12) for _ in range(50)]
        ids += [tokenizer.encode(text.encode("utf-8", "replace").decode()) for text in texts]
        cases.append((model, texts, ids))
        special = {**tokenizer.special._asdict()}
        decoded = [tokenizer.decode(each) for each in ids]
        wanted.append(
            {"special": special, "read": [read(tokenizer, text) for text in texts], "decoded": decoded}
        )
    for name, case, answer, right in zip(MODELS, cases, in_node(cases), wanted, strict=True):
        assert isinstance(answer, dict), (name, answer)
        assert answer["special"] == right["special"], name
        for asked, key in ((texts, "read"), (case[2], "decoded")):
            wrong = [each for each in zip(asked, answer[key], right[key], strict=True) if each[1] != each[2]]
            assert not wrong, (name, len(wrong), wrong[0])


def test_what_cannot_be_read_is_refused_in_a_sentence() -> None:
    damaged = "The tokenizer file is damaged or is not a sentencepiece model."
    model = MODELS["en-de"]()
    refused = {
        b"": damaged,
        b"no model": damaged,
        model[:-3]: damaged,
        trained(
            {"model_type": "char"}
        ): "The tokenizer splits a text into words or characters, which this page cannot do.",
        trained({"eos_id": -1}): "The tokenizer has no </s> or no <unk>, which this page needs.",
    }
    assert in_node([(each, [], []) for each in refused]) == list(refused.values())


def test_the_tables_are_small() -> None:
    assert len(json.dumps(typing_tables())) < 12_000
