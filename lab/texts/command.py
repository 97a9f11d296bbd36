"""`python -m lab text`: plain text for a language model, from the source side of sentence pairs."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from lab.measurement import Folder, Pairs, about, command
from lab.texts.joined import joined
from lab.texts.plain_text import distinct, parts, shuffled
from transformer.commands.arguments import shown
from transformer.storage.files import write_atomically, write_json
from transformer.text.pairs import read_pairs

REPORT_FILE = "text.json"


@command()
def text(
    data: Annotated[tuple[Pairs, ...], "source<TAB>target lines (.gz too)"],
    output: Annotated[Folder, "directory to write"],
    test: Annotated[tuple[Pairs, ...], "pairs whose sources are held out as well"] = (),
    held_out: Annotated[int, "sentences of each part"] = 2000,
    join: Annotated[bool, "write joined.txt.gz too: every second sentence joined to others"] = False,
) -> None:
    """Writes the source sentences of pairs as plain text for a language model, with held-out parts.

    The parts are `train`, `valid`, `heldout` and `test` (all `.txt.gz`); their sizes stand in a JSON file.
    """
    read = {shown(path): [pair.source for pair in read_pairs(path)] for path in data}
    sources = distinct(read)
    held = shuffled(distinct({"": [pair.source for path in test for pair in read_pairs(path)]})[""])
    found = parts(sources, held_out, held)
    output.mkdir(parents=True, exist_ok=True)
    written = {"train": found.train, "valid": found.valid, "heldout": found.heldout, "test": tuple(held)}
    if join:
        written["joined"] = tuple(joined(found.train))
    sizes = {
        name: {"sentences": len(texts), "words": sum(len(text.split()) for text in texts)}
        for name, texts in written.items()
    }
    for name, texts in written.items():
        write_lines(output / f"{name}.txt.gz", texts)
        print(f"{name}: {len(texts):,} sentences, {sizes[name]['words']:,} words.")
    print(f"Left out as near duplicates of held-out sentences: {sum(found.near.values()):,}.")
    rows = {
        name: {"lines": len(read[name]), "distinct": len(sources[name]), "near_held_out": found.near[name]}
        for name in sources
    }
    made = about("text", data=data, test=test, output=output, held_out=held_out, join=join)
    write_json(output / REPORT_FILE, {"command": made["command"], "sources": rows, "parts": sizes})


def write_lines(path: Path, texts: Sequence[str]) -> None:
    """Writes packed lines; the same lines give the same bytes."""
    write_atomically(path, gzip.compress("".join(f"{text}\n" for text in texts).encode(), 6, mtime=0))
