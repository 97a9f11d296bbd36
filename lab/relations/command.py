"""`python -m lab probes`: which relations heads follow."""

from __future__ import annotations

from typing import Annotated

from lab.measurement import File, Folder, Json, Subject, measurement
from lab.relations.meanings import ANTONYMS, meanings
from lab.relations.relations import dependencies, pronouns
from lab.relations.treebanks import read_pronouns, read_trees
from transformer.commands.arguments import shown
from transformer.model.sites import AttentionKind
from transformer.storage.description import PROBES_FILE
from transformer.text.pairs import read_pairs


@measurement(PROBES_FILE, parts=["encoder", "decoder", "pronouns", "meanings"])
def probes(
    model: Subject,
    probes: Annotated[Folder, "holds pud-en.conllu.gz, winomt-en.tsv.gz and the trees"],
    trees: Annotated[
        str, "file of that folder with trees of the target language; the decoder is left out without"
    ] = "",
    texts: Annotated[File | None, "pairs whose sources with antonyms are read too"] = None,
) -> Json:
    """Measures which dependencies, antecedents and meanings heads follow."""
    of, workers = model.translator, model.workers
    english, target = read_trees(probes / "pud-en.conllu.gz"), read_trees(probes / trees) if trees else []
    cases, left_out = read_pronouns(probes / "winomt-en.tsv.gz")
    sources = [] if texts is None else [pair.source for pair in read_pairs(texts)]
    words = f"{len(english):,} English sentences of PUD"
    if texts is not None and sources:
        words += f"; antonyms: {len(ANTONYMS)} pairs of words in {shown(texts)}"
    return {
        "data": f"encoder: {len(english):,} English sentences of PUD; decoder: "
        + (f"those of {trees}, forced as translations of the English ones" if trees else "no trees were read")
        + f"; pronouns: {len(cases) + left_out:,} sentences of WinoMT",
        "encoder": lambda: dependencies(of, english, AttentionKind.ENCODER, workers),
        "decoder": lambda: dependencies(of, target, AttentionKind.DECODER, workers) if trees else {},
        "pronouns": lambda: pronouns(of, cases, left_out, workers),
        "meanings": lambda: {"data": words} | meanings(of, english, sources, workers),
    }
