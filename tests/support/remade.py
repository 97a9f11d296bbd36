"""A model in a folder like the app's, with small corpora, so that everything about it can be remade."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

from closed_form import CASES
from corpus import number_pairs, write_pairs

CASE = CASES["copy"]


def write_app(folder: Path, model: Path) -> Path:
    """An app whose first model is a copy of `model`, with one example; returns the copy."""
    directory = folder / "assets" / "models" / "first"
    shutil.copytree(model, directory)
    source, target = CASE.source_tokens[1].removeprefix("▁"), CASE.target_tokens[1].removeprefix("▁")
    claim = {"text": "…", "target": target, "source": source, "least": 0.5}
    claim |= {"layer": 0, "head": 1, "weight": 0}
    example = {"label": "a", "text": CASE.sentence, "claim": claim}
    example["gloss"] = dict.fromkeys(CASE.translation.split(), "number")
    (directory / "examples.json").write_text(
        json.dumps({"digests": {}, "examples": [example]}, ensure_ascii=False), encoding="utf-8"
    )
    return directory


def write_sample(folder: Path) -> Path:
    """A folder of samples: pairs, and one pair with links."""
    folder.mkdir(parents=True)
    write_pairs(folder / "tatoeba-en-de.tsv.gz", [(CASE.sentence, CASE.translation), *number_pairs(3)])
    (folder / "alignments.tsv").write_text("one two\teins zwei\t0-0 1-1\n", encoding="utf-8")
    return folder


def write_corpora(folder: Path) -> Path:
    """A folder of corpora with everything that `remake` reads, each file of a few lines."""
    for name in ("tatoeba-en-de", "extra-train", "extra-tests", "alignments"):
        (folder / name).mkdir(parents=True)
    for seed, name in enumerate(("train", "valid", "test")):
        write_pairs(folder / f"tatoeba-en-de/{name}.tsv.gz", number_pairs(6, seed=seed))
    unlike = [("猫 " * 3, "eins"), ("犬 " * 4, "zwei"), ("鳥 " * 5, "drei")]
    for name in ("extra-train/news", "extra-tests/newstest2014"):
        good = [(CASES["copy"].sentence, CASES["copy"].translation)] * 2  # what the model of this case writes
        write_pairs(folder / f"{name}.en-de.tsv.gz", [*unlike, *good])
    for name in ("flores200-devtest", "pud"):
        write_pairs(folder / f"extra-tests/{name}.en-de.tsv.gz", number_pairs(4, seed=7))
    (folder / "alignments/europarl-en-de.tsv.gz").write_bytes(
        gzip.compress(b"one two three\teins zwei drei\t0-0 1-1 2-2\n")
    )
    return folder


def write_log(path: Path) -> Path:
    """The log of a short run."""
    lines = [
        {"step": step, "loss": 9 / step, "learning_rate": step / 10, "gradient_norm": 1.0, "tokens": step}
        for step in range(1, 6)
    ]
    lines[-1] |= {"valid_loss": 2.0, "bleu": 30.0, "bleu_sentences": 4}
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path
