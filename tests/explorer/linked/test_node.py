"""The page that translates, in Node, against Python: its model, its tokenizer, and what it
refuses."""

import base64
import gzip
import hashlib
import io
import json
import math
import random
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import torch
from decoder_models import KINDS, write_decoder
from playwright._impl._driver import compute_driver_executable
from sentencepiece.sentencepiece_model_pb2 import ModelProto
from tokenizers import pre_tokenizers

from explorer.figures.base import captions, labels
from explorer.linked.live.carried import (
    Json,
    browser_config,
    byte_level_tables,
    carried,
    unknown_rule,
)
from explorer.linked.live.page import LiveError, live, typing_tables
from explorer.linked.served import scripts, static
from explorer.linked.view.strips import chips
from transformer import Translation, Translator, load_language_model, load_translator
from transformer.config import LanguageModelConfig, TransformerConfig
from transformer.families.whole import PRE_TOKENIZERS, PreTokenizer, Whole
from transformer.families.written import TypedPieces
from transformer.interventions import ablate
from transformer.model import LanguageModel, Transformer
from transformer.requests import Request
from transformer.storage import eight_bits
from transformer.storage.directory import half_precision, save_checkpoint
from transformer.text.tokenizer import Tokenizer
from transformer.text.words import EOS, is_end, is_special

ASSETS = static().parent / "assets"
ENGINE = scripts() / "engine"
MODELS = ASSETS / "models"


def sample(name: str) -> list[str]:
    return (
        gzip.decompress((ASSETS / f"sample/tatoeba-{name}.tsv.gz").read_bytes())
        .decode()
        .splitlines()
    )


def in_node(script: str, values: object) -> str:
    """What a script of modules prints that reads these values."""
    node, _ = compute_driver_executable()
    command = [node, "--input-type=module", "--eval", script]
    given = json.dumps(values).encode()
    return subprocess.run(
        command, input=given, stdout=subprocess.PIPE, check=True, timeout=300
    ).stdout.decode()


# --- the model -----------------------------------------------------------------------------------

OFF = (("encoder", 0, 1), ("decoder", 1, 0), ("cross", 2, 3))
MARGIN = 1e-3
"""Where the two best tokens are nearer than this, rounding may choose."""
CONFIGS: dict[str, dict[str, Any]] = {
    "post-norm, GELU": {"activation": "gelu", "sine_layout": "halves", "first_position": 2},
    "pre-norm, gated, RMS": {
        "norm": "pre", "norm_by": "rms", "gated": True, "activation": "silu", "positions": "rotary",
    },
    "alibi": {"positions": "alibi"},
    "no positions": {"positions": "none", "norm": "pre"},
    "no biases, own tables": {
        "biases": False, "shared_embeddings": False, "tied_embeddings": False, "output_bias": True,
        "scaled_embeddings": False, "embedding_norm": True, "positions": "learned",
    },
    "wide heads, not divided": {
        "head_width": 20, "scaled_scores": False, "activation": "gelu_tanh", "scaled_output": True,
        "decoder_d_ff": 40, "positions": "t5",
    },
    "inclusive sines, one layer": {"sine_layout": "inclusive", "n_encoder_layers": 1, "n_heads": 6},
    "shaw": {"positions": "shaw", "norm": "pre"},
}  # fmt: skip
TRANSLATES = """
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
const { engine, cases } = JSON.parse(readFileSync(0, "utf-8"));
const of = (name) => import(pathToFileURL(`${engine}/${name}`));
const modules = ["tensors.js", "matrix.js", "model.js"].map(of);
const [{ tensorsOf }, { Memory }, { Model }] = await Promise.all(modules);
const packed = (numbers) => Buffer.from(numbers.buffer).toString("base64");
for (const { path, config, kernel, runs } of cases) {
  const tensors = tensorsOf(new Uint8Array(readFileSync(`${path}/model.safetensors`)));
  const memory = kernel ? await Memory.of(readFileSync(`${engine}/kernel.wasm`)) : null;
  const model = new Model(config, tensors, memory);
  const found = [];
  for (const run of runs) {
    const { steps, kinds } = await (run.prompt ? model.goOn(run) : model.translate(run));
    const numbers = Object.entries(kinds).map(([kind, { layers }]) =>
      [kind, layers.map(({ weights, scores }) => [packed(weights), packed(scores)])]);
    found.push({ ids: steps.map((s) => s.id), logs: steps.map((s) => s.log), best: steps.map((s) => s.best),
      kinds: Object.fromEntries(numbers) });
  }
  process.stdout.write(JSON.stringify(found) + "\\n");
}
"""


@dataclass(frozen=True)
class Case:
    """A model, and runs of it in Python."""

    path: Path
    model: Translator
    runs: list[Translation]
    kernel: bool = True

    def values(self) -> dict[str, Any]:
        """What Node is asked."""
        runs = []
        for run in self.runs:
            off = [
                f"{intervention.kind}.{intervention.layer}.{intervention.head[0]}"
                for intervention in run.interventions
            ]
            target = run.target_ids if run.method == "forced" else None
            asked: dict[str, Any] = {"off": off, "given": target}
            if run.source_tokens:
                asked["ids"] = [*self.model.ids(run.source_text), self.model.config.eos_id]
                asked["limit"] = Request(self.model, run.source_text).limit
            else:
                # one that ended could have gone on
                asked["limit"] = len(run.steps) + 5 * is_end(run.target_tokens[-1])
                asked["start"] = run.start_id
                asked["prompt"] = run.target_ids[: run.n_given]
            runs.append(asked)
        config = browser_config(self.model)
        return {"path": str(self.path), "config": config, "kernel": self.kernel, "runs": runs}


def agree(cases: list[Case]) -> None:
    """Compares every run with that of the engine; what differs most is printed."""
    answers = in_node(
        TRANSLATES, {"engine": str(ENGINE), "cases": [case.values() for case in cases]}
    )
    for case, line in zip(cases, answers.splitlines(), strict=True):
        apart = {"log p": 0.0, "weights": 0.0, "scores": 0.0}
        passed_over = 0
        for run, found in zip(case.runs, json.loads(line), strict=True):
            if [*run.target_ids] != found["ids"]:
                pairs = enumerate(zip(run.target_ids, found["ids"], strict=False))
                one, other = run.steps[next(i for i, (a, b) in pairs if a != b)].alternatives[:2]
                assert one.log_prob - other.log_prob < MARGIN, (case.path, run.source_text)
                passed_over += 1
                continue
            logs = [step.log_prob for step in run.steps]
            apart["log p"] = max(apart["log p"], np.abs(np.subtract(logs, found["logs"])).max())
            for kind, layers in found["kinds"].items():
                for layer, packed in enumerate(layers):
                    maps = [run.map(kind, layer, head) for head in range(run.config.n_heads)]
                    for what, each in zip(("weights", "scores"), packed, strict=True):
                        numbers = np.frombuffer(base64.b64decode(each), np.float32)
                        true = np.stack([getattr(each, what) for each in maps]).ravel()
                        apart[what] = max(apart[what], float(np.abs(true - numbers).max()))
        print(case.path.name, "kernel" if case.kernel else "plain", apart)
        assert passed_over <= len(case.runs) // 20, (
            case.path,
            passed_over,
        )  # two tokens as good as alike
        assert apart["weights"] < 1e-4, case.path
        assert apart["log p"] < 1e-3, case.path
        assert apart["scores"] < 2e-3, case.path


@pytest.mark.parametrize("name", ["en-de", "en-pt"])
def test_sentences_are_translated_as_python_translates_them_with_heads_off_and_forced_too(
    name: str,
) -> None:
    model = load_translator(MODELS / name, "cpu")
    lines = sample(name)
    texts = [line.split("\t")[0] for line in lines[:: len(lines) // 24]][:24]
    runs = [model.translate(text) for text in texts]
    runs += [model.translate(texts[5], interventions=[ablate(*head)]) for head in OFF]
    runs.append(model.translate(texts[7], interventions=[ablate(*head) for head in OFF]))
    runs.append(model.force(texts[3], runs[4].text))
    agree([Case(MODELS / name, model, runs), Case(MODELS / name, model, runs[:3], kernel=False)])


def test_every_choice_of_a_config_runs_in_8_16_and_32_bits(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    cases = []
    stores = (
        half_precision,
        eight_bits.packed,
        lambda state: {k: v.contiguous() for k, v in state.items()},
    )
    for number, (name, options) in enumerate(CONFIGS.items()):
        torch.manual_seed(number)
        sizes = {
            "d_model": 36,
            "d_ff": 52,
            "n_heads": 3,
            "n_encoder_layers": 2,
            "n_decoder_layers": 2,
        }
        config = TransformerConfig(vocab_size=tokenizer.vocab_size, **(sizes | options))
        state = Transformer(config).state_dict()
        save_checkpoint(
            path := tmp_path / name, config, state, tokenizer, stored=stores[number % 3]
        )
        model = load_translator(path, "cpu")
        cases.append(
            Case(path, model, [model.translate(text) for text in ("one two three", "nine")])
        )
    agree([*cases, *(replace(case, kernel=False) for case in cases[:2])])


CONTINUING: dict[str, dict[str, Any]] = {
    "as trained here": {},
    "learned, hyperbolic tangent": {"positions": "learned", "activation": "gelu_tanh"},
    "groups of heads, gated, RMS": {
        "n_heads": 6, "n_key_heads": 2, "norm_by": "rms", "gated": True, "activation": "silu",
        "biases": False, "tied_embeddings": False, "scaled_embeddings": False,
    },
    "normalised heads, biases of queries": {
        "n_key_heads": 1, "head_norm": True, "biases": False, "attention_biases": True,
        "norm_by": "rms", "head_width": 14,
    },
    "both from one stream, partly turned": {
        "parallel": True, "rotary_width": 4, "rotary_base": 500.0,
    },
    "linear": {"rotary_scaling": "linear", "rotary_factor": 4.0},
    "llama3": {
        "rotary_scaling": "llama3", "rotary_factor": 8.0, "rotary_trained_length": 64,
        "rotary_base": 5_000.0, "rotary_high": 4.0,
    },
    "alibi, post-norm": {"positions": "alibi", "norm": "post"},
}  # fmt: skip
GOES_ON = ("The old house", "", "She gave her brother a book about", "one")
DECODER_OFF = (("decoder", 0, 1), ("decoder", 3, 4))


def test_texts_are_continued_as_python_continues_them_with_heads_off_and_forced_too() -> None:
    path = MODELS / "language/lm-en"
    model = load_language_model(path, "cpu")
    runs = [model.generate(text) for text in GOES_ON]
    runs += [
        model.generate(GOES_ON[0], interventions=[ablate(*head)], max_length=30)
        for head in DECODER_OFF
    ]
    runs.append(model.force("Tom is in the garden.</s> He sings."))
    agree([Case(path, model, runs), Case(path, model, runs[:2], kernel=False)])


def test_every_choice_of_a_language_model_s_config_runs(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    cases = []
    for number, (name, options) in enumerate(CONTINUING.items()):
        torch.manual_seed(number)
        sizes = {"d_model": 36, "d_ff": 52, "n_heads": 3, "n_layers": 2}
        config = LanguageModelConfig(vocab_size=tokenizer.vocab_size, **(sizes | options))
        model = LanguageModel(config)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += 0.05 * torch.randn_like(parameter)
        path = tmp_path / name
        stored = (half_precision, eight_bits.packed)[number % 2]
        save_checkpoint(path, config, model.state_dict(), tokenizer, stored=stored)
        opened = load_language_model(path, "cpu")
        runs = [opened.generate(text, max_length=40) for text in ("one two three", "nine")]
        cases.append(Case(path, opened, runs))
    agree(cases)


@pytest.mark.parametrize("kind", KINDS)
def test_decoders_of_others_run_with_the_weights_that_the_page_carries(
    kind: str, tmp_path: Path
) -> None:
    write_decoder(tmp_path, kind)
    model = load_language_model(tmp_path, "cpu")
    before = model.force(TYPED).log_probs
    parts = carried(model, tmp_path)
    assert parts.rounded
    folder = tmp_path / "page"
    folder.mkdir()
    for name, content in parts.files.items():
        assert isinstance(content, bytes)
        (folder / name).write_bytes(content)
    runs = [model.generate(text, max_length=40) for text in (TYPED, "two dogs")]
    assert model.force(TYPED).log_probs != before  # the rounded weights are computed with
    runs.append(model.force(TYPED))
    agree([Case(folder, model, runs)])


def test_the_kernel_is_what_its_source_says(tmp_path: Path) -> None:
    content = (ENGINE / "kernel.wasm").read_bytes()
    digest = "5c6161ff29a4ee715fce7d8ba4cf133a55409373925fef7efd19e1c181f606e0"
    assert hashlib.sha256(content).hexdigest() == digest
    if shutil.which("asc") is None:
        pytest.skip("AssemblyScript's compiler is not here")
    built = tmp_path / "kernel.wasm"
    subprocess.run(["sh", str(ENGINE / "build.sh"), str(built)], check=True)
    assert built.read_bytes() == content


@pytest.mark.parametrize(
    ("name", "texts", "message"),
    [
        ("recurrent/additive", (), "is recurrent"),
        ("positions/none", ("two " * 140,), "at most 128 tokens"),
    ],
)
def test_what_cannot_run_in_a_browser_is_refused_in_a_sentence(name, texts, message):
    with pytest.raises((LiveError, ValueError), match=message):
        live(MODELS / name, *([list(texts)] if texts else []))


TYPED = "The old house\n\n  and the\ttwo dogs, 12 naïve 😀 cats. "
TYPED_TEXTS: list[str] = json.loads(
    (Path(__file__).parents[2] / "transformer/families/typed.json").read_text()
)


# --- the tokenizer -------------------------------------------------------------------------------

READS = """
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
    (
        "👩\u200d🚀😀👍🏽❤\ufe0f🇩🇪 \u00ad\u200b\u200d\u200c\u2060\ufeff\u034f\ufe0f\u202e "
        "\u3164\u2800\u115f"
    ),
    (
        "\x00\x01\t\n\r\x1c\x85\xa0\u2003\u2028\u3000 \x7f \ud800\udc00\udfff\ud83d "
        "\ude00\ufffd\U0010ffff\ue000"
    ),
)
TEXTS = (
    "",
    " ",
    " \t\n ",
    "▁",
    "▁▁ ▁",
    "a" * 3000,
    "l" * 32,
    "漢" * 300,
    "\ud83d\ude00",
    "`it`",
    "a `b` é",
)
SYMBOLS = {"user_defined_symbols": ["<sep>", "<b>", "ab", "①"]}
BPE = {"model_type": "bpe", **SYMBOLS}
AS_TYPED = {"normalization_rule_name": "identity", **SYMBOLS}
AS_TYPED |= {"remove_extra_whitespaces": False, "add_dummy_prefix": False}
IN_BYTES = {"byte_fallback": True, "unk_surface": "<?>", "pad_id": 3, **SYMBOLS}


def trained(options: dict[str, Any], unused: int = 0) -> bytes:
    """A small model; of its last pieces, every ``unused``-th is not used."""
    written = io.BytesIO()
    options = {
        "vocab_size": 700,
        "num_threads": 1,
        "minloglevel": 2,
        "model_writer": written,
        **options,
    }
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sample("en-de")[:2000]), **options
    )
    model = ModelProto.FromString(written.getvalue())
    for piece in model.pieces[300::unused] if unused else ():
        piece.type = piece.UNUSED
    return bytes(model.SerializeToString())


VOCABULARIES: dict[str, Callable[[], bytes]] = {
    "en-de": (MODELS / "en-de/tokenizer.model").read_bytes,
    "en-pt": (MODELS / "en-pt/tokenizer.model").read_bytes,
    "bpe": lambda: trained({**BPE, "byte_fallback": True}),
    "bpe, pieces that are not used": lambda: trained(BPE, unused=3),
    "identity": lambda: trained(AS_TYPED),
    "nmt_nfkc": lambda: trained(IN_BYTES, unused=4),
    "no first space": lambda: trained(
        {"add_dummy_prefix": False, "normalization_rule_name": "nfkc_cf"}
    ),
    "space behind": lambda: trained({"treat_whitespace_as_suffix": True, "bos_id": -1}),
}
Vocabulary = tuple[bytes, list[str], list[list[int]]]


def answers(cases: list[Vocabulary]) -> list[Any]:
    written = [
        {"model": base64.b64encode(model).decode(), "texts": t, "ids": ids}
        for model, t, ids in cases
    ]
    return list(
        json.loads(
            in_node(READS, {"folder": ENGINE.as_uri(), "tables": typing_tables(), "cases": written})
        )
    )


def read(tokenizer: Tokenizer, text: str) -> dict[str, Any]:
    pieced = tokenizer.cut(text)
    lists = {
        name: list(getattr(pieced, name))
        for name in ("ids", "pieces", "words", "unknown", "spelled")
    }
    groups = [
        {"start": group.start, "stop": group.stop, "text": group.text} for group in pieced.groups()
    ]
    tokens = [*pieced.pieces, EOS]
    view = {"chips": chips(tokens), "names": [captions.quote(piece) for piece in tokens]}
    return {
        "text": pieced.clean.text,
        "plain": list(pieced.clean.plain),
        "groups": groups,
        **lists,
        **view,
    }


def mixture(dice: random.Random) -> str:
    chosen = dice.sample(ALPHABETS, dice.randint(1, 3))
    parts = [
        dice.choice([*each, *each.split(" ")]) for each in chosen for _ in range(dice.randint(1, 9))
    ]
    dice.shuffle(parts)
    return "".join(part + " " * (dice.random() < 0.2) for part in parts)


def test_texts_are_read_written_and_joined_as_in_python() -> None:
    dice = random.Random(5)
    texts = [*TEXTS, *sample("en-de")[::60], *(mixture(dice) for _ in range(400))]
    cases, wanted = [], []
    for model in (make() for make in VOCABULARIES.values()):
        tokenizer = Tokenizer(model)
        ids = [
            dice.choices(range(most), k=9)
            for most in (260, tokenizer.vocab_size)
            for _ in range(100)
        ]
        ids += [list(tokenizer.cut(text).ids) for text in texts]
        cases.append((model, texts, ids))
        decoded = map(tokenizer.target.decode, ids)
        found = (read(tokenizer, text) for text in texts)
        wanted.append(
            {"special": tokenizer.special._asdict(), "read": [*found], "decoded": [*decoded]}
        )
    for name, answer, right in zip(VOCABULARIES, answers(cases), wanted, strict=True):
        assert answer["special"] == right["special"], name
        for key in ("read", "decoded"):
            pairs = zip(answer[key], right[key], strict=True)
            assert [(one, other) for one, other in pairs if one != other] == [], name


READS_BYTES = """
import { readFileSync } from "node:fs";
const { folder, tables, typing, texts, ids } = JSON.parse(readFileSync(0, "utf-8"));
const { ByteLevel } = await import(`${folder}/bytelevel.js`);
const { Writing } = await import(`${folder}/chips.js`);
const vocabulary = new ByteLevel(tables);
const writing = new Writing(typing);
const read = texts.map((text) => {
  const found = vocabulary.read(text);
  return { ...found, chips: writing.chips(found.pieces), names: found.pieces.map((piece) => writing.name(piece)) };
});
const decoded = ids.map((each) => vocabulary.decode(each));
process.stdout.write(JSON.stringify({ read, decoded }));
"""
RULES: dict[str, dict[str, Any]] = {
    "GPT-2's": {},
    "digits alone": {"single_digits": True},
    "composed, whole words first": {"composed": True, "whole_first": True},
}


def merges(words: list[str]) -> list[tuple[str, str]]:
    """Merges that join the letters of some words from the left."""
    return [(word[:end], word[end]) for word in words for end in range(1, len(word))]


@pytest.mark.parametrize("options", RULES.values(), ids=list(RULES))
def test_byte_level_texts_are_read_and_written_as_in_python(
    options: dict[str, Any], tmp_path: Path
) -> None:
    joins = merges(["the", "Ġthe", "Ġhouse", "in", "ing", "'s", "ĠĠĠ", "ÃĤ", "12", "ñĥ"])
    alphabet = [*pre_tokenizers.ByteLevel.alphabet()]
    pieces = list(dict.fromkeys([*alphabet, *("".join(join) for join in joins), "houses"]))
    special = ["<|end|>", "<|sep|>", "<|a-b|>", "[x/y]", "<&# ~>"]
    pieces += [*special, "of the"]
    rule = PreTokenizer(**options)
    added = ["of the"]
    whole = Whole.of_merges(tmp_path, pieces, joins, rule, special=special, added=added)
    vocabulary = TypedPieces(whole, len(pieces) + 3)  # the last have no name
    assert unknown_rule(whole) == ""
    dice = random.Random(7)
    texts = [
        *TEXTS,
        *TYPED_TEXTS,
        "a<|end|>b of the<|sep|>",
        " ".join(special),
        "12½ ²3 the's THE'S   x",
    ]
    texts += [mixture(dice) for _ in range(300)]
    ids = [dice.choices(range(len(pieces) + 3), k=9) for _ in range(200)]
    tables = json.loads(json.dumps(byte_level_tables(vocabulary)))
    typing = typing_tables(tuple(filter(is_special, vocabulary.pieces)))
    values: Json = {
        "folder": ENGINE.as_uri(),
        "tables": tables,
        "typing": typing,
        "texts": texts,
        "ids": ids,
    }
    answer = json.loads(in_node(READS_BYTES, values))
    for text, read in zip(texts, answer["read"], strict=True):
        cut = vocabulary.cut(text)
        assert (read["text"], read["ids"]) == (cut.clean.text, list(cut.ids)), text
        assert read["pieces"] == list(cut.pieces), text
        assert read["chips"] == chips(cut.pieces), text
        assert read["names"] == [captions.quote(piece) for piece in cut.pieces], text
    assert answer["decoded"] == [vocabulary.text(each) for each in ids]


UNKNOWN: dict[str, tuple[PreTokenizer, str]] = {
    "Llama 3's": (PRE_TOKENIZERS["llama-bpe"], "splits texts by the rule of GPT-2"),
    "Qwen's": (PRE_TOKENIZERS["qwen2"], "splits texts by the rule of GPT-2"),
}


@pytest.mark.parametrize(("rule", "words"), UNKNOWN.values(), ids=list(UNKNOWN))
def test_a_vocabulary_that_the_scripts_do_not_know_is_named(
    rule: PreTokenizer, words: str, tmp_path: Path
) -> None:
    pieces = [*pre_tokenizers.ByteLevel.alphabet()]
    whole = Whole.of_merges(tmp_path, pieces, [], rule, special=[], added=[])
    assert words in unknown_rule(whole)


def test_a_tokenizer_that_cannot_be_read_is_refused_in_a_sentence() -> None:
    damaged = "The tokenizer file is damaged or is not a sentencepiece model."
    words = "The tokenizer splits a text into words or characters, which this page cannot do."
    lacks = "The tokenizer has no </s> or no <unk>, which this page needs."
    refused = {b"": damaged, b"no model": damaged, VOCABULARIES["en-de"]()[:-3]: damaged}
    refused |= {trained({"model_type": "char"}): words, trained({"eos_id": -1}): lacks}
    assert answers([(model, [], []) for model in refused]) == list(refused.values())
    assert len(json.dumps(typing_tables())) < 12_000


# --- what the page says and draws ----------------------------------------------------------------

SAYS = """
import { readFileSync } from "node:fs";
const { folder, doubts, effects, texts } = JSON.parse(readFileSync(0, "utf-8"));
const { doubt, effect, together } = await import(`${folder}/says.js`);
const said = [doubts.map((each) => doubt(...each)), effects.map((each) => effect(...each))];
process.stdout.write(JSON.stringify([...said, texts.map(together)]));
"""


def test_a_doubt_an_effect_and_joined_sentences_are_said() -> None:
    doubts = [([-2.0, 0.0], -0.5), ([-0.4, -0.4], -0.5), ([-9.0], None), ([-0.5], -0.5)]
    effects = [("Ja.", "Ja.", "translation"), ("Ja.", "Nein.", "translation")]
    effects.append(("He came.", "He saw.", "text"))
    texts = [
        "He came.",
        "He came. She left.",
        "Is it so? Yes! No.",
        "At 3.5 km it ends.",
        "Mr. J. Tom",
    ]
    given = {
        "doubts": doubts,
        "effects": effects,
        "texts": texts,
        "folder": (scripts() / "live").as_uri(),
    }
    doubted, effected, joined = json.loads(in_node(SAYS, given))
    usual = labels.percent(math.exp(-0.5)).replace("\xa0", " ")
    first = f"This translation may be wrong: 37 % for a token, where over {usual} is usual."
    assert doubted == [first, "", "", ""]
    stays, changes = (
        "The translation stays the same.",
        "The translation changes; with every head it is “Ja.”.",
    )
    of_text = "The text changes; with every head it is “He came.”."
    assert effected == [stays, changes, of_text]
    runs = [
        f"These {count} sentences are one run here; the app makes a run of each."
        for count in (2, 3)
    ]
    assert joined == ["", *runs, "", ""]


DRAWS = """
import { readFileSync } from "node:fs";
const { folder, tables, pieces } = JSON.parse(readFileSync(0, "utf-8"));
const { BrowserRun } = await import(`${folder}/live/run.js`);
const { Writing } = await import(`${folder}/engine/chips.js`);
const shape = [pieces.length, pieces.length];
const numbers = () => Float32Array.from({ length: shape[0] ** 2 }, () => 1 / shape[0]);
const size = [1, 1];
const layers = [{ weights: numbers(), scores: numbers() }];
const figure = JSON.stringify({ data: [{}, {}], layout: { xaxis: {}, yaxis: {}, annotations: [] } });
const choice = { roles: [] };
const words = { title: "L1 H1", caption: "layer 1 · head 1", alt: "A map", sentences: [["Predicting "]] };
const shared = { ...words, choice, hover: {}, figure };
const kinds = ["encoder", "decoder", "cross"];
const all = (value) => Object.fromEntries(kinds.map((kind) => [kind, value]));
const run = Object.assign(Object.create(BrowserRun.prototype), {
  spec: { view: "v", trace: "t" }, badge: { text: "" }, offText: "", writing: new Writing(tables),
  tokens: { source: pieces, reads: pieces, predicts: pieces }, kinds: all({ shape, size }),
  found: { off: [], kinds: all({ shape, layers }) },
  stored: { place: { heads: all([0, 0]) }, kinds: all({ shared }) },
});
const drawn = kinds.map((kind) => {
  const { hover, figure: written } = run.map(kind, [0, 0]);
  const { xaxis, yaxis } = JSON.parse(written).layout;
  return [...hover.rows, ...hover.columns, ...xaxis.ticktext, ...yaxis.ticktext];
});
process.stdout.write(JSON.stringify(drawn));
"""


def test_no_token_is_markup_under_the_pointer_or_beside_an_axis() -> None:
    pieces = ["▁<b>x", "▁&amp;", "▁#000001", "</s>"]
    given = {"folder": scripts().as_uri(), "tables": typing_tables(), "pieces": pieces}
    for drawn in json.loads(in_node(DRAWS, given)):
        assert len(drawn) == 4 * len(pieces)
        assert [
            text for text in drawn if re.search(r"[<>]|&(?!amp;|lt;|gt;|#35;)|(?<!&)#", text)
        ] == []
        for name in ("&lt;b&gt;x", "&amp;amp;", "&#35;000001", "&lt;/s&gt;"):
            assert sum(name in text for text in drawn) == 4
