"""`python -m lab language`: what a language model has learned, as `language.json`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

import torch

from lab.language import inducing, words
from lab.language.agreement import CASES, agreement, drawn, read_agreement
from lab.language.embeddings import unit_rows
from lab.measurement import File, Folder, Json, Model, measurement, one_thread
from transformer.commands.arguments import shown
from transformer.lenses.scores.bootstrap import Floats
from transformer.lenses.scores.kneser_ney import KneserNey, train
from transformer.lenses.scores.perplexity import per_piece, per_word, perplexities
from transformer.runs.language.corpus import log_probs
from transformer.runs.language.generator import TextGenerator, load_language_model
from transformer.storage.description import LANGUAGE_FILE
from transformer.storage.eight_bits import stored_as
from transformer.text.pairs import DataError, read_texts
from transformer.training.runs.snapshots import load_snapshot, snapshot_file, snapshot_steps

MODEL, NGRAM = "language model", "n-gram"
LONGER = "longer n-gram"
ORDER, LONGER_ORDER = 5, 7
"""Of the n-gram model that all parts use, and of one that knows longer contexts, for perplexity alone."""
ABLATED_ON = 500
SAME = 0.95
"""Mean cosine of the embeddings of a model and of the last snapshot of its run, at least."""
PARTS = {
    "perplexity": ("text", "heldout"),
    "induction": ("heldout",),
    "circuit": (),
    "agreement": ("text", "agreement"),
    "words": ("text", "snapshots"),
}
"""The parts of the file, in the order of measuring, and the options whose files each reads."""


@measurement(LANGUAGE_FILE, parts=PARTS, dated=True)
def language(
    model: Model,
    snapshots: Annotated[Folder | None, "directory of its training run"] = None,
    text: Annotated[tuple[File, ...], "texts on which the n-gram model and co-occurrences are counted"] = (),
    heldout: Annotated[tuple[File, ...], "texts to score"] = (),
    agreement: Annotated[File | None, "pairs of CLAMS"] = None,
    pairs: Annotated[int, "most pairs of a case"] = 2_000,
    least: Annotated[int, "how often a word must occur to be on the map"] = words.LEAST,
    only: Sequence[str] = (),
) -> Json:
    """Measures what a language model has learned: perplexity, induction, agreement, words."""
    names = only or list(PARTS)
    files = {"text": text, "heldout": heldout, "agreement": agreement, "snapshots": snapshots}
    opened = dict.fromkeys(option for name in names for option in PARTS[name])
    if missing := [f"--{option}" for option in opened if not files[option]]:
        raise DataError(f"Give {', '.join(missing)} too: {', '.join(names)} cannot be measured without.")
    study = _Study(load_language_model(model), text, heldout)
    generator = study.generator
    parts: dict[str, Callable[[], Json]] = {
        "perplexity": study.perplexity,
        "induction": lambda: inducing.measure_induction(
            generator, next(iter(study.heldout.values()))[:ABLATED_ON]
        ),
        "circuit": lambda: inducing.measure_circuit(generator),
        "agreement": lambda: study.agreement(Path(agreement or ""), pairs),
        "words": lambda: _words(generator, Path(snapshots or ""), study.counted, least),
    }
    return {name: one_thread()(parts[name]) for name in PARTS}


@dataclass(frozen=True)
class _Study:
    """A language model beside an n-gram model of the same pieces."""

    generator: TextGenerator  # the model
    text: Sequence[Path]  # files of the texts that are counted
    held: Sequence[Path]  # files of the texts to score

    @cached_property
    def counted(self) -> list[tuple[int, ...]]:
        """Ids of the texts that are counted."""
        return [self.generator.ids(text) for path in self.text for text in read_texts(path)]

    @cached_property
    def ngram(self) -> KneserNey:
        """The n-gram model."""
        return train(self.counted, self.generator.config.vocab_size, ORDER)

    @cached_property
    def heldout(self) -> dict[str, list[str]]:
        """The texts to score, by file."""
        found = {shown(path): list(read_texts(path)) for path in self.held}
        if empty := [path for path, texts in found.items() if not texts]:
            raise DataError(f"{empty[0]}: there is no text in this file.")
        return found

    def of_ngram(self, texts: Sequence[str]) -> Floats:
        """Log-probabilities by the n-gram model."""
        return self.ngram.log_probs([self.generator.ids(text) for text in texts])

    def perplexity(self) -> Json:
        """Perplexity of the models on each held-out file."""
        sizes = {"sentences": len(self.counted), "pieces": sum(map(len, self.counted))}
        longer = train(self.counted, self.generator.config.vocab_size, LONGER_ORDER)
        files = {path: self._scores(longer, texts) for path, texts in self.heldout.items()}
        return {"order": ORDER, "longer_order": LONGER_ORDER, "counted": sizes, "files": files}

    def _scores(self, longer: KneserNey, texts: Sequence[str]) -> Json:
        ids = [self.generator.ids(text) for text in texts]
        pieces = list(map(len, ids))
        logs = {MODEL: log_probs(self.generator, texts), NGRAM: self.ngram.log_probs(ids)}
        logs[LONGER] = longer.log_probs(ids)
        return {
            "texts": len(texts),
            "words": sum(len(text.split()) for text in texts),
            "pieces": sum(pieces),
            "per_word": perplexities({name: per_word(found, texts) for name, found in logs.items()}, NGRAM),
            "per_piece": perplexities(
                {name: per_piece(found, pieces) for name, found in logs.items()}, NGRAM
            ),
        }

    def agreement(self, path: Path, most: int) -> Json:
        """Accuracy on minimal pairs, by case."""
        pairs = drawn(read_agreement(path), most)
        found = {
            MODEL: agreement(pairs, lambda texts: log_probs(self.generator, texts)),
            NGRAM: agreement(pairs, self.of_ngram),
        }
        first = {case: next(pair for pair in pairs if pair.case == case) for case in found[MODEL]}
        told = {case: CASES.get(case, case) for case in first}
        examples = {case: [pair.right, pair.wrong] for case, pair in first.items()}
        return {"models": found, "told": told, "examples": examples}


def _words(generator: TextGenerator, run: Path, counted: Sequence[Sequence[int]], least: int) -> Json:
    """The map of words over a run."""
    found = words.measure_words(generator.tokenizer, _tables(generator, run), counted, least)
    return found | {"stored": stored_as(snapshot_file(run, snapshot_steps(run)[-1]))}


def _tables(generator: TextGenerator, directory: Path) -> list[tuple[int, Floats]]:
    """Steps and embeddings of a run; the model's own stand for the last: its weights may be averages."""
    steps = snapshot_steps(directory)
    if not steps:
        raise DataError(f"{directory} has no snapshots; train with --snapshots.")
    tables = [(step, _table(load_snapshot(directory, step).model)) for step in steps]
    own, (step, last) = _table(generator.model), tables[-1]
    if own.shape != last.shape or (unit_rows(own) * unit_rows(last)).sum(1).mean() < SAME:
        raise DataError(f"The last snapshot of {directory}, of step {step:,}, is not this model.")
    return [*tables[:-1], (step, own)]


def _table(model: torch.nn.Module) -> Floats:
    """(vocabulary, d_model) embeddings."""
    found: Floats = model.get_parameter("embedding.weight").detach().double().numpy()
    return found
