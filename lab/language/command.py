"""`python -m lab language`: what a language model has learned, as `language.json`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from lab.cost import local, writing
from lab.cost.measuring import machine
from lab.language import inducing, words
from lab.language.agreement import CASES, AgreementPair, agreement, drawn, read_agreement
from lab.language.embeddings import unit_rows
from transformer.commands.arguments import command_line, shown
from transformer.lenses.scores.bootstrap import Floats
from transformer.lenses.scores.kneser_ney import KneserNey, train
from transformer.lenses.scores.perplexity import per_piece, per_word, perplexities
from transformer.runs.language.corpus import log_probs
from transformer.runs.language.generator import TextGenerator, load_language_model
from transformer.storage.description import LANGUAGE_FILE, model_digests
from transformer.storage.files import write_json
from transformer.storage.marks import measured
from transformer.text.pairs import DataError, read_texts
from transformer.training.runs.snapshots import load_snapshot, snapshot_steps

MODEL, NGRAM = "language model", "n-gram"
LONGER = "longer n-gram"
ORDER, LONGER_ORDER = 5, 7
"""Of the n-gram model that all parts use, and of one that knows longer contexts, for perplexity alone."""
PAIRS = 2_000
ABLATED_ON = 500
REPEATS = 5
SAME = 0.95
"""Mean cosine of the embeddings of a model and of the last snapshot of its run, at least."""
MOST_BYTES = 10**6
Json = dict[str, Any]


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    text = "measure what a language model has learned: perplexity, induction, agreement, words, cost"
    parser: argparse.ArgumentParser = commands.add_parser("language", help=text, description=text)
    parser.add_argument("--model", required=True, type=Path, metavar="DIR", help="directory of the model")
    parser.add_argument("--snapshots", type=Path, metavar="DIR", help="directory of its training run")
    parser.add_argument(
        "--text",
        nargs="+",
        metavar="FILE",
        help="texts on which the n-gram model and co-occurrences are counted",
    )
    parser.add_argument("--heldout", nargs="+", metavar="FILE", help="texts to score")
    parser.add_argument("--agreement", type=Path, metavar="FILE", help="pairs of CLAMS")
    parser.add_argument(
        "--pairs", type=int, default=PAIRS, metavar="N", help="most pairs of a case (default: %(default)s)"
    )
    parser.add_argument(
        "--least",
        type=int,
        default=words.LEAST,
        metavar="N",
        help="how often a word must occur to be on the map (default: %(default)s)",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=list(PARTS),
        help="measure these again and keep the rest of the file; files that they do not read may be left out",
    )
    parser.set_defaults(run=run)


@dataclass(frozen=True)
class _Study:
    """What all parts read."""

    arguments: argparse.Namespace  # the command's arguments
    generator: TextGenerator  # the model

    @cached_property
    def counted(self) -> list[tuple[int, ...]]:
        """Ids of the texts that are counted."""
        return [self.generator.ids(text) for path in self.arguments.text for text in read_texts(path)]

    @cached_property
    def ngram(self) -> KneserNey:
        """The n-gram model of the same pieces."""
        return train(self.counted, self.generator.config.vocab_size, ORDER)

    @cached_property
    def heldout(self) -> dict[str, list[str]]:
        """The texts to score, by file."""
        found = {shown(path): list(read_texts(path)) for path in self.arguments.heldout}
        if empty := [path for path, texts in found.items() if not texts]:
            raise DataError(f"{empty[0]}: there is no text in this file.")
        return found

    def of_model(self, texts: Sequence[str]) -> Floats:
        """Log-probabilities by the model."""
        return log_probs(self.generator, texts)

    def of_ngram(self, texts: Sequence[str]) -> Floats:
        """Log-probabilities by the n-gram model."""
        return self.ngram.log_probs([self.generator.ids(text) for text in texts])


def run(arguments: argparse.Namespace) -> int:
    """`language`: measures, and writes the file beside the model.

    Raises:
        ValueError: A file is missing or cannot be used, or there are no snapshots of this model.
    """
    names = arguments.only or list(PARTS)
    opened = dict.fromkeys(option for name in names for option in PARTS[name].opens)
    if missing := [f"--{option}" for option in opened if not getattr(arguments, option)]:
        raise DataError(f"Give {', '.join(missing)} too: {', '.join(names)} cannot be measured without.")
    directory, started = arguments.model, time.perf_counter()
    study = _Study(arguments, load_language_model(directory))
    values = measured(directory, LANGUAGE_FILE) if arguments.only else None
    values = {"model": study.generator.name, "digests": model_digests(directory), **(values or {})}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for name in names:
            made = {"command": command_line("lab"), "date": date.today().isoformat()}
            values[name] = made | PARTS[name].measure(study)
            write_json(directory / LANGUAGE_FILE, values)
            print(f"{time.perf_counter() - started:,.0f} s: {name}", file=sys.stderr, flush=True)
    finally:
        torch.set_num_threads(threads)
    if (size := (directory / LANGUAGE_FILE).stat().st_size) > MOST_BYTES:
        raise ValueError(f"{directory / LANGUAGE_FILE} has {size:,} bytes, more than {MOST_BYTES:,}.")
    return 0


def _perplexity(study: _Study) -> Json:
    """Perplexity of the model and of the n-gram model on each held-out file."""
    sizes = {"sentences": len(study.counted), "pieces": sum(map(len, study.counted))}
    longer = train(study.counted, study.generator.config.vocab_size, LONGER_ORDER)
    files = {path: _scores(study, longer, texts) for path, texts in study.heldout.items()}
    return {"order": ORDER, "longer_order": LONGER_ORDER, "counted": sizes, "files": files}


def _scores(study: _Study, longer: KneserNey, texts: Sequence[str]) -> Json:
    logs = {MODEL: study.of_model(texts), NGRAM: study.of_ngram(texts)}
    logs[LONGER] = longer.log_probs([study.generator.ids(text) for text in texts])
    pieces = [len(study.generator.ids(text)) for text in texts]
    sizes = {"texts": len(texts), "words": sum(len(text.split()) for text in texts), "pieces": sum(pieces)}
    return {
        **sizes,
        "per_word": perplexities({name: per_word(found, texts) for name, found in logs.items()}, NGRAM),
        "per_piece": perplexities({name: per_piece(found, pieces) for name, found in logs.items()}, NGRAM),
    }


def _induction(study: _Study) -> Json:
    """Scores of all heads, and what switching the best ones off costs."""
    texts = next(iter(study.heldout.values()))[:ABLATED_ON]
    return inducing.measure_induction(study.generator, texts)


def _circuit(study: _Study) -> Json:
    """What the best induction head loses without the head that it reads from; no text is read."""
    return inducing.measure_circuit(study.generator)


def _agreement(study: _Study) -> Json:
    """Accuracy on minimal pairs, by case."""
    pairs: list[AgreementPair] = drawn(read_agreement(study.arguments.agreement), study.arguments.pairs)
    found = {MODEL: agreement(pairs, study.of_model), NGRAM: agreement(pairs, study.of_ngram)}
    first = {case: next(pair for pair in pairs if pair.case == case) for case in found[MODEL]}
    told = {case: CASES.get(case, case) for case in found[MODEL]}
    examples = {case: [pair.right, pair.wrong] for case, pair in first.items()}
    return {"models": found, "told": told, "examples": examples}


def _words(study: _Study) -> Json:
    """The map of embeddings over training, and neighbours beside those by co-occurrence."""
    directory = study.arguments.snapshots
    steps = snapshot_steps(directory)
    if not steps:
        raise DataError(f"{directory} has no snapshots; train with --snapshots.")
    tables = [(step, _table(load_snapshot(directory, step).model)) for step in steps]
    tables[-1] = (steps[-1], _own(study, *tables[-1]))
    return words.measure_words(study.generator.tokenizer, tables, study.counted, study.arguments.least)


def _own(study: _Study, step: int, last: Floats) -> Floats:
    """The model's own table, which stands for the last snapshot: its weights may be averages of last steps.

    Raises:
        DataError: It is not near the last snapshot, so the run is not that of the model.
    """
    own = _table(study.generator.model)
    if own.shape != last.shape or (unit_rows(own) * unit_rows(last)).sum(1).mean() < SAME:
        raise DataError(
            f"The last snapshot of {study.arguments.snapshots}, of step {step:,}, is not this model."
        )
    return own


def _table(model: torch.nn.Module) -> Floats:
    """(vocabulary, d_model) embeddings."""
    found: Floats = model.get_parameter("embedding.weight").detach().double().numpy()
    return found


def _cost(study: _Study) -> Json:
    """Times on this machine, with one thread."""
    config = study.generator.config
    heads, d_head = config.n_heads, config.d_model // config.n_heads
    return {
        "machine": machine(),
        "repeats": REPEATS,
        "attention": local.measure_attention(local.LENGTHS, heads, d_head, REPEATS),
        "writing": writing.measure_writing(study.generator.model, writing.LENGTHS, REPEATS),
    }


@dataclass(frozen=True)
class _Part:
    """One part of the file."""

    measure: Callable[[_Study], Json]
    opens: tuple[str, ...] = ()  # the options whose files it reads


PARTS = {
    "perplexity": _Part(_perplexity, ("text", "heldout")),
    "induction": _Part(_induction, ("heldout",)),
    "circuit": _Part(_circuit),
    "agreement": _Part(_agreement, ("text", "agreement")),
    "words": _Part(_words, ("text", "snapshots")),
    "cost": _Part(_cost),
}
"""The parts of the file, in the order of measuring."""
