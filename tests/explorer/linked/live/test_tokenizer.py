"""The tokenizer of the page that translates, in Node, against Python's."""

from __future__ import annotations

import base64
import gzip
import io
import json
import random
import subprocess
from collections.abc import Callable
from typing import Any

import sentencepiece
from playwright._impl._driver import compute_driver_executable
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from explorer.figures.base import captions
from explorer.linked.live.typing_tables import typing_tables
from explorer.linked.living.scripts import static
from explorer.linked.view.strips import chips
from transformer.text.tokenizer import Tokenizer

ASSETS = static().parent / "assets"
SAMPLE = gzip.decompress((ASSETS / "sample/tatoeba-en-de.tsv.gz").read_bytes()).decode().splitlines()
SCRIPT = """
import { readFileSync } from "node:fs";
const { folder, tables, cases } = JSON.parse(readFileSync(0, "utf-8"));
const { Tokenizer } = await import(`${folder}/tokenizer.js`);
const { Writing } = await import(`${folder}/chips.js`);
const writing = new Writing(tables);
const answers = cases.map(({ model, texts, ids }) => {
  try {
    const tokenizer = new Tokenizer(Uint8Array.from(Buffer.from(model, "base64")), tables);
    const read = texts.map((text) => {
      const found = tokenizer.read(text);
      const tokens = [...found.pieces, "</s>"];
      return { ...found, chips: writing.chips(tokens), names: tokens.map((piece) => writing.name(piece)) };
    });
    return { special: tokenizer.special, read, decoded: ids.map((each) => tokenizer.decode(each)) };
  } catch (error) {
    return error.message;
  }
});
process.stdout.write(JSON.stringify(answers));
"""
ALPHABETS = (
    "abcdefgh THE the ing. ,;!? 0123 '\"-`$€ ▁ <s> </s> <unk> <unk:a> <0x41> <sep> <b> >>de<<",
    "äöüßéèñçãõ ÀÅ ﬁ ① Ａ ½ ² ㎏ Ǆ e\u0301a\u0308o\u0302\u0323 n\u0303 \u1fef \u212b \u0958 \u0344",
    "‘’“”„«»‹›—–‐…−´ʼ",
    "中文字漢语言 日本かなカナ ｶﾞ 한국어 \u1112\u1161\u11ab \u0915\u094d\u200d\u0937 ن\u200cم \u05d0 ٣ ᠎",
    "👩\u200d🚀😀👍🏽❤\ufe0f🇩🇪 \u00ad\u200b\u200d\u200c\u2060\ufeff\u034f\ufe0f\u202e \u3164\u2800\u115f",
    "\x00\x01\t\n\r\x1c\x85\xa0\u2003\u2028\u3000 \x7f \ud800\udc00\udfff\ud83d \ude00\ufffd\U0010ffff\ue000",
)
TEXTS = ("", " ", " \t\n ", "▁", "▁▁ ▁", "a" * 3000, "l" * 32, "漢" * 300, "\ud83d\ude00", "`it`", "a `b` é")
SYMBOLS = {"user_defined_symbols": ["<sep>", "<b>", "ab", "①"]}
BPE = {"model_type": "bpe", **SYMBOLS}


def trained(options: dict[str, Any], unused: int = 0) -> bytes:
    """A small model; of its last pieces, every ``unused``-th is not used."""
    written = io.BytesIO()
    options = {"vocab_size": 700, "num_threads": 1, "minloglevel": 2, "model_writer": written, **options}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(SAMPLE[:2000]), **options)
    model = ModelProto.FromString(written.getvalue())
    for piece in model.pieces[300::unused] if unused else ():
        piece.type = piece.UNUSED
    return bytes(model.SerializeToString())


AS_TYPED = {"normalization_rule_name": "identity", **SYMBOLS}
AS_TYPED |= {"remove_extra_whitespaces": False, "add_dummy_prefix": False}
IN_BYTES = {"byte_fallback": True, "unk_surface": "<?>", "pad_id": 3, **SYMBOLS}
MODELS: dict[str, Callable[[], bytes]] = {
    "en-de": (ASSETS / "models/en-de/tokenizer.model").read_bytes,
    "en-pt": (ASSETS / "models/en-pt/tokenizer.model").read_bytes,
    "bpe": lambda: trained({**BPE, "byte_fallback": True}),
    "bpe, pieces that are not used": lambda: trained(BPE, unused=3),
    "identity": lambda: trained(AS_TYPED),
    "nmt_nfkc": lambda: trained(IN_BYTES, unused=4),
    "no first space": lambda: trained({"add_dummy_prefix": False, "normalization_rule_name": "nfkc_cf"}),
    "space behind": lambda: trained({"treat_whitespace_as_suffix": True, "bos_id": -1}),
}


def in_node(cases: list[tuple[bytes, list[str], list[list[int]]]]) -> list[Any]:
    written = [{"model": base64.b64encode(model).decode(), "texts": t, "ids": ids} for model, t, ids in cases]
    asked = {"folder": (static() / "engine-1").as_uri(), "tables": typing_tables(), "cases": written}
    command = [compute_driver_executable()[0], "--input-type=module", "-e", SCRIPT]
    run = subprocess.run(command, input=json.dumps(asked).encode(), stdout=subprocess.PIPE, check=True)
    return list(json.loads(run.stdout))


def read(tokenizer: Tokenizer, text: str) -> dict[str, Any]:
    pieced = tokenizer.cut(text)
    lists = {name: list(getattr(pieced, name)) for name in ("ids", "pieces", "words", "unknown", "spelled")}
    groups = [{"start": group.start, "stop": group.stop, "text": group.text} for group in pieced.groups()]
    tokens = [*pieced.pieces, "</s>"]
    view = {"chips": chips(tokens), "names": [captions.quote(piece) for piece in tokens]}
    return {"text": pieced.clean.text, "plain": list(pieced.clean.plain), "groups": groups, **lists, **view}


def mixture(dice: random.Random) -> str:
    chosen = dice.sample(ALPHABETS, dice.randint(1, 3))
    parts = [dice.choice([*each, *each.split(" ")]) for each in chosen for _ in range(dice.randint(1, 9))]
    dice.shuffle(parts)
    return "".join(part + " " * (dice.random() < 0.2) for part in parts)


def test_texts_are_read_written_and_joined_as_in_python() -> None:
    dice = random.Random(5)
    texts = [*TEXTS, *SAMPLE[::60], *(mixture(dice) for _ in range(600))]
    cases, wanted = [], []
    for model in (make() for make in MODELS.values()):
        tokenizer = Tokenizer(model)
        ids = [dice.choices(range(most), k=9) for most in (260, tokenizer.vocab_size) for _ in range(150)]
        ids += [list(tokenizer.cut(text).ids) for text in texts]
        cases.append((model, texts, ids))
        decoded, found = map(tokenizer.decode, ids), (read(tokenizer, text) for text in texts)
        wanted.append({"special": tokenizer.special._asdict(), "read": [*found], "decoded": [*decoded]})
    for name, answer, right in zip(MODELS, in_node(cases), wanted, strict=True):
        assert answer["special"] == right["special"], name
        for key in ("read", "decoded"):
            pairs = zip(answer[key], right[key], strict=True)
            assert [(one, other) for one, other in pairs if one != other] == [], name


def test_what_cannot_be_read_is_refused_in_a_sentence() -> None:
    damaged = "The tokenizer file is damaged or is not a sentencepiece model."
    words = "The tokenizer splits a text into words or characters, which this page cannot do."
    lacks = "The tokenizer has no </s> or no <unk>, which this page needs."
    refused = {b"": damaged, b"no model": damaged, MODELS["en-de"]()[:-3]: damaged}
    refused |= {trained({"model_type": "char"}): words, trained({"eos_id": -1}): lacks}
    assert in_node([(model, [], []) for model in refused]) == list(refused.values())
    assert len(json.dumps(typing_tables())) < 12_000
