"""Answers what `golden.jsonl` asks: `PYTHONPATH=. python tests/acceptance/make_golden.py`, on
97108b2d."""

import json
from pathlib import Path

from tests.acceptance import surface

FILE = Path(__file__).with_name("golden.jsonl")
lines = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
for line in lines:
    run = surface.translator(line["model"]).translate(line["text"], beam_size=line["beam"])
    line |= {"translation": run.text, "tokens": list(run.target_tokens)}
    line["log_probs"] = [round(log_prob, 4) for log_prob in run.log_probs]
    for kind, (layer, head, row, weights) in line.get("rows", {}).items():
        weights[:] = [
            round(float(each), 4) for each in run.attention.weights(kind, layer)[head, row]
        ]
written = (json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in lines)
FILE.write_text("\n".join(written) + "\n", encoding="utf-8")
