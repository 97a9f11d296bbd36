"""Files with which the app opens a model: its examples with their claims, and its first picture."""

from __future__ import annotations

import json
from collections.abc import Sequence

import torch

from lab.measurement import Json, Model, command
from lenses.words.claims import heads_that_show, shared_heads
from transformer.exports.maps import save_maps
from transformer.runs.translation import Translation
from transformer.runs.translator import load_translator
from transformer.storage.description import EXAMPLES_FILE, model_digests
from transformer.storage.files import read_json, write_atomically
from transformer.text.words import reading_groups

FIRST_FILE = "first.npz"


@command()
def claims(model: Model) -> int:
    """Writes the heads that show what the model's examples claim, and names the claims that none shows."""
    path = model / EXAMPLES_FILE
    values, translator = read_json(path), load_translator(model)
    runs = [translator.translate(each["text"], beam_size=1) for each in values["examples"]]
    mended, missing = with_heads(values["examples"], runs)
    values = {"digests": model_digests(model), "examples": mended}
    write_atomically(path, (json.dumps(values, indent=1, ensure_ascii=False) + "\n").encode())
    for sentence in missing:
        print(sentence, flush=True)
    print(f"Wrote {path}.", flush=True)
    return 1 if missing else 0


def with_heads(examples: Sequence[Json], runs: Sequence[Translation]) -> tuple[list[Json], list[str]]:
    """The examples with the heads that show their claims, and sentences on what the runs do not show."""
    claimed = [each["claim"] for each in examples]
    found = [
        heads_that_show(run, claim["target"], claim["source"], claim["least"])
        for run, claim in zip(runs, claimed, strict=True)
    ]
    mended, missing = [], []
    for example, run, shown in zip(examples, runs, shared_heads(found), strict=True):
        if shown is None:
            claim = example["claim"]
            missing.append(
                f"No head shows that “{claim['target']}” looks at “{claim['source']}” in “{run.text}”: "
                f"correct the example “{example['label']}”."
            )
            mended.append(example)
        else:
            place = {"layer": shown.layer, "head": shown.head, "weight": round(shown.weight, 2)}
            mended.append({**example, "claim": example["claim"] | place})
        if unknown := _without_gloss(example, run):
            missing.append(f"The example “{example['label']}” has no gloss for {', '.join(unknown)}.")
    return mended, missing


def _without_gloss(example: Json, run: Translation) -> list[str]:
    words = [each.text for each in reading_groups(run.target_tokens[:-1])]
    return [word for word in words if word[0].isalnum() and word not in example["gloss"]]


@command()
def first(model: Model) -> None:
    """Writes the first picture of a model, which is drawn before the model is loaded."""
    path = model / EXAMPLES_FILE
    text = read_json(path)["examples"][0]["text"]
    torch.set_num_threads(1)  # as the app computes, so that the model changes nothing when it is loaded
    run = load_translator(model).translate(text, beam_size=1)
    if run.attention is None or not run.audit().passed:
        raise ValueError("The checks of the first run fail, so it is not written.")
    save_maps(run, model, path.with_name(FIRST_FILE))
    print(f"Wrote {path.with_name(FIRST_FILE)}: “{run.source_text}” → “{run.text}”.", flush=True)
