"""`python -m lab heads`, `survey` and `means`: measurements of every head."""

from __future__ import annotations

from typing import Annotated

from lab.heads.first_heads import kind_totals, measure_heads
from lab.heads.shipped import write_survey
from lab.heads.statistics import Totals
from lab.heads.survey import Line, Surveyor
from lab.measurement import Gold, Json, Pairs, Subject, about, command, measurement
from lenses.what_if.averages import Averager
from lenses.words.gold_links import align_gold
from transformer.commands.arguments import shown
from transformer.model.sites import AttentionKind
from transformer.storage.description import HEADS_FILE, MEANS_FILE, SURVEY_FILE, model_digests
from transformer.storage.means import write_means
from transformer.text.links import read_gold
from transformer.text.pairs import SentencePair, read_pairs
from transformer.trace.heads import output_projections


@measurement(HEADS_FILE)
def heads(
    model: Subject,
    data: Pairs,
    alignments: Annotated[Gold | None, "source<TAB>target<TAB>links lines, for alignment errors"] = None,
    sentences: Annotated[int, "use the first N pairs of --data"] = 500,
) -> Json:
    """Measures where every head looks, and which to open first."""
    pairs = read_pairs(data)[:sentences]
    gold = read_gold(alignments) if alignments else []
    projections = output_projections(model.translator.model)

    def totals(pair: SentencePair) -> dict[AttentionKind, Totals]:
        return kind_totals(model.translator.force(pair.source, pair.target), projections)

    aligned = align_gold(model.translator, gold, model.workers)
    told = f"patterns: {len(pairs)} pairs of {shown(data)}, given targets forced"
    told += f"; aer: {len(gold)} pairs of {shown(alignments)}" if alignments and gold else ""
    return {"data": told} | measure_heads(model.workers.each(totals, pairs), aligned)


@command()
def survey(
    model: Subject,
    data: Pairs,
    alignments: Gold,
    brief: Annotated[bool, "leave out tokens and sentences, for a small file"] = False,
) -> None:
    """Reads sentences as the page Heads does when asked, so that it shows the result at once."""
    lines = [Line(pair.source, pair.target) for pair in read_pairs(data)]
    gold = read_gold(alignments)
    surveyor = Surveyor(model.translator, lines, gold)
    for _ in surveyor.run():
        pass
    head = about("survey", model=model.directory, data=data, alignments=alignments, brief=brief)
    digests = {"digests": model_digests(model.directory)}
    write_survey(model.directory, surveyor.survey(), lines, gold, head | digests, brief)
    print(f"Wrote {model.directory / SURVEY_FILE}.", flush=True)


@command()
def means(model: Subject, data: Pairs) -> None:
    """Measures every head's mean output, for ablations, and writes `means.safetensors`."""
    averager = Averager(model.translator, [(pair.source, pair.target) for pair in read_pairs(data)])
    for _ in averager.run():
        pass
    notes = {
        "data": f"{averager.read} pairs of {shown(data)}, given targets forced",
        **about("means", model=model.directory, data=data),
    }
    write_means(model.directory, averager.means(notes))
    print(f"Wrote {model.directory / MEANS_FILE}.", flush=True)
