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
    probes: Annotated[Folder, "holds pud-en.conllu.gz, pud-de.conllu.gz, winomt-en.tsv.gz"],
    texts: Annotated[File | None, "pairs whose sources with antonyms are read too"] = None,
) -> Json:
    """Measures which dependencies, antecedents and meanings heads follow."""
    of, workers = model.translator, model.workers
    english, german = (read_trees(probes / f"pud-{language}.conllu.gz") for language in ("en", "de"))
    cases, left_out = read_pronouns(probes / "winomt-en.tsv.gz")
    sources = [] if texts is None else [pair.source for pair in read_pairs(texts)]
    words = f"{len(english):,} English sentences of PUD"
    if texts is not None and sources:
        words += f"; antonyms: {len(ANTONYMS)} pairs of words in {shown(texts)}"
    return {
        "data": f"encoder: {len(english):,} English sentences of PUD; decoder: the German ones, forced as "
        f"translations of the English ones; pronouns: {len(cases) + left_out:,} sentences of WinoMT",
        "encoder": lambda: dependencies(of, english, AttentionKind.ENCODER, workers),
        "decoder": lambda: dependencies(of, german, AttentionKind.DECODER, workers),
        "pronouns": lambda: pronouns(of, cases, left_out, workers),
        "meanings": lambda: {"data": words} | meanings(of, english, sources, workers),
    }
