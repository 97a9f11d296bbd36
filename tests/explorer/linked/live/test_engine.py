"""The model of the page that translates, in Node, against Python: tokens, numbers, heads that are off."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from playwright._impl._driver import compute_driver_executable

from explorer.linked.live.page import LiveError, live
from explorer.linked.living.scripts import static
from transformer import Translation, Translator, load_translator
from transformer.config import TransformerConfig
from transformer.interventions import ablate
from transformer.model import Transformer
from transformer.requests import Request
from transformer.storage import eight_bits
from transformer.storage.directory import half_precision, save_checkpoint
from transformer.text.tokenizer import Tokenizer

ROOT = static().parent
ENGINE = static() / "engine-1"
BUNDLED = ROOT / "assets" / "models"
TWINS = ("none", "sinusoidal", "learned", "shaw", "t5", "rotary", "alibi", "postnorm")
KINDS = ("encoder", "decoder", "cross")
OFF = (("encoder", 0, 1), ("decoder", 1, 0), ("cross", 2, 3))
MARGIN = 1e-3
"""Where the two best tokens are nearer than this, rounding may choose."""
CONFIGS: dict[str, dict[str, Any]] = {
    "post-norm, GELU": {"activation": "gelu", "sine_layout": "halves", "first_position": 2},
    "pre-norm, gated, RMS": {"norm": "pre", "norm_by": "rms", "gated": True, "activation": "silu"},
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
SCRIPT = """
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
const { engine, cases } = JSON.parse(readFileSync(0, "utf-8"));
const of = (name) => import(pathToFileURL(`${engine}/${name}`));
const modules = ["tensors.js", "matrix.js", "model.js"].map(of);
const [{ tensorsOf }, { Memory }, { Model }] = await Promise.all(modules);
const packed = (numbers) => Buffer.from(numbers.buffer).toString("base64");
for (const { path, forbidden, kernel, runs } of cases) {
  const config = { ...JSON.parse(readFileSync(`${path}/config.json`)), forbidden };
  const tensors = tensorsOf(new Uint8Array(readFileSync(`${path}/model.safetensors`)));
  const memory = kernel ? await Memory.of(readFileSync(`${engine}/kernel.wasm`)) : null;
  const model = new Model(config, tensors, memory);
  const found = [];
  for (const run of runs) {
    const { steps, kinds } = await model.translate(run);
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

    def asked(self) -> dict[str, Any]:
        """What Node is asked."""
        runs = []
        for run in self.runs:
            off = [f"{each.kind}.{each.layer}.{each.head[0]}" for each in run.interventions]
            ids = [*self.model.ids(run.source_text), self.model.config.eos_id]
            given = run.target_ids if run.method == "forced" else None
            runs.append(
                {"ids": ids, "limit": Request(self.model, run.source_text).limit, "off": off, "given": given}
            )
        barred = [token for (token,) in self.model.rules.forbidden]
        return {"path": str(self.path), "forbidden": barred, "kernel": self.kernel, "runs": runs}


def agree(cases: list[Case]) -> None:
    """Compares every run with that of the engine; what differs most is printed."""
    asked = {"engine": str(ENGINE), "cases": [case.asked() for case in cases]}
    node, _ = compute_driver_executable()
    command = [node, "--input-type=module", "--eval", SCRIPT]
    done = subprocess.run(
        command, input=json.dumps(asked), capture_output=True, text=True, check=True, timeout=300
    )
    for case, line in zip(cases, done.stdout.splitlines(), strict=True):
        apart, passed_over = {"log p": 0.0, "weights": 0.0, "scores": 0.0}, 0
        for run, found in zip(case.runs, json.loads(line), strict=True):
            if [*run.target_ids] != found["ids"]:
                first = next(
                    i for i, (a, b) in enumerate(zip(run.target_ids, found["ids"], strict=False)) if a != b
                )
                one, other = run.steps[first].alternatives[:2]
                assert one.log_prob - other.log_prob < MARGIN, (case.path, run.source_text)
                passed_over += 1
                continue
            logs = [step.log_prob for step in run.steps]
            apart["log p"] = max(apart["log p"], np.abs(np.subtract(logs, found["logs"])).max())
            for kind, layers in found["kinds"].items():
                for layer, packed in enumerate(layers):
                    numbers = [np.frombuffer(base64.b64decode(each), np.float32) for each in packed]
                    maps = [run.map(kind, layer, head) for head in range(run.config.n_heads)]
                    for what, own in zip(("weights", "scores"), numbers, strict=True):
                        true = np.stack([getattr(each, what) for each in maps]).ravel()
                        apart[what] = max(apart[what], float(np.abs(true - own).max()))
        print(case.path.name, "kernel" if case.kernel else "plain", apart)
        assert passed_over <= len(case.runs) // 20, (case.path, passed_over)  # two tokens as good as alike
        assert apart["weights"] < 1e-4, case.path
        assert apart["log p"] < 1e-3, case.path
        assert apart["scores"] < 2e-3, case.path


def sample(name: str, count: int) -> list[str]:
    lines = (
        gzip.decompress((ROOT / f"assets/sample/tatoeba-{name}.tsv.gz").read_bytes()).decode().splitlines()
    )
    return [line.split("\t")[0] for line in lines[:: len(lines) // count][:count]]


@pytest.mark.parametrize("name", ["en-de", "en-pt"])
def test_forty_sentences_are_translated_as_python_translates_them(name: str) -> None:
    model = load_translator(BUNDLED / name, "cpu")
    texts = sample(name, 40)
    runs = [model.translate(text) for text in texts]
    runs += [model.translate(texts[5], interventions=[ablate(*head)]) for head in OFF]
    runs.append(model.translate(texts[7], interventions=[ablate(*head) for head in OFF]))
    runs.append(model.force(texts[3], runs[4].text))
    agree([Case(BUNDLED / name, model, runs), Case(BUNDLED / name, model, runs[:3], kernel=False)])


def test_the_twins_of_every_encoding_run() -> None:
    cases = []
    for name in TWINS:
        model = load_translator(path := BUNDLED / "positions" / name, "cpu")
        cases.append(Case(path, model, [model.translate(text) for text in sample("en-de", 4)]))
    agree(cases)


def test_every_choice_of_a_config_runs_in_8_16_and_32_bits(tokenizer: Tokenizer, tmp_path: Path) -> None:
    cases = []
    stores = (half_precision, eight_bits.packed, lambda state: {k: v.contiguous() for k, v in state.items()})
    for number, (name, options) in enumerate(CONFIGS.items()):
        torch.manual_seed(number)
        sizes = {"d_model": 36, "d_ff": 52, "n_heads": 3, "n_encoder_layers": 2, "n_decoder_layers": 2}
        config = TransformerConfig(vocab_size=tokenizer.vocab_size, **(sizes | options))
        state = Transformer(config).state_dict()
        save_checkpoint(path := tmp_path / name, config, state, tokenizer, stored=stores[number % 3])
        model = load_translator(path, "cpu")
        texts = ("one two three", "nine")
        cases.append(Case(path, model, [model.translate(text, max_length=None) for text in texts]))
    agree(cases)
    agree([replace(case, kernel=False) for case in cases[:2]])


def test_the_kernel_is_what_its_source_says(tmp_path: Path) -> None:
    content = (ENGINE / "kernel.wasm").read_bytes()
    assert (
        hashlib.sha256(content).hexdigest()
        == "5c6161ff29a4ee715fce7d8ba4cf133a55409373925fef7efd19e1c181f606e0"
    )
    if shutil.which("asc") is None:
        pytest.skip("AssemblyScript's compiler is not here")
    built = tmp_path / "kernel.wasm"
    subprocess.run(["sh", str(ENGINE / "build.sh"), str(built)], check=True)
    assert built.read_bytes() == content


@pytest.mark.parametrize(
    ("name", "says"), [("recurrent/additive", "is recurrent"), ("language/lm-en", "cannot translate")]
)
def test_what_cannot_run_in_a_browser_is_refused_in_a_sentence(name: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        live(BUNDLED / name)


def test_no_text_to_start_from_is_short_enough() -> None:
    with pytest.raises(LiveError, match="at most 128 tokens"):
        live(BUNDLED / "positions/none", [" ".join(["two"] * 140)])
