"""`python -m transformer translate`: translates texts, or the lines of a file."""

import sys
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from transformer.batches import translate_all
from transformer.beam import SearchTree
from transformer.commands.lines import (
    AT_ONCE,
    Answer,
    answer_lines,
    line_text,
    name_bad,
    warn_unread,
)
from transformer.commands.models import BeamOptions, Json, TranslatorOptions
from transformer.commands.program import OutputFile
from transformer.reader import InputError
from transformer.requests import LEFT_OUT, unread_limit
from transformer.text.kinds import at_least
from transformer.text.pairs import DataError, read_lines
from transformer.text.sentences import joined
from transformer.training.progress import bar, duration
from transformer.translator import TranslatedText, Translator


def translate(
    texts: tuple[str, ...] = (),
    *,
    model: TranslatorOptions,
    file: Path | None = None,
    output: OutputFile | None = None,
    beam: BeamOptions,
    n_best: int | None = None,
    no_split: bool = False,
) -> int:
    """Translate texts, or the lines of standard input.

    texts [TEXT]: text to translate; without one, each line of standard input
    file: translate the first column of each line (.gz too) in batches of like length, into --output
    output [FILE]: text<TAB>translation lines; a file that was begun is continued
    n_best: the N best translations of the beam: a line each, rank<TAB>score<TAB>text; implies
        --no-split
    no_split: translate a text at once; else its sentences alone, and joined to one line. With
        --json, tokens
        and log_probs are then those of all sentences, one after the other
    """
    if texts and file is not None:
        raise InputError("Give texts, or a file of them with --file, not both.")
    if (file is None) != (output is None):
        lacks = ("--output", "to be written") if output is None else ("--file", "with the texts")
        raise InputError(
            f"Add {lacks[0]} FILE, the file {lacks[1]}: --file and --output need each other."
        )
    if file is not None and output is not None and output.exists() and output.samefile(file):
        raise InputError(f"--output is the file of the texts, {file}; give another one.")
    if n_best is not None:
        if file is not None:
            raise InputError(
                "--n-best is written to standard output; give the texts on standard input."
            )
        at_least(1).check("--n-best", n_best, InputError)
        if n_best > beam.beam_size:
            raise InputError(
                f"--n-best is {n_best}, but the beam keeps {beam.beam_size}; give --beam-size "
                f"{n_best}."
            )
    translator = model.open(beam)
    if file is not None and output is not None:
        return _translate_file(translator, file, output, beam.beam_size, no_split)

    def answer(text: str) -> Answer:
        best: list[Json] = []
        parts: tuple[str, ...] = ()
        if text.strip():
            parts = (text,) if n_best or no_split else translator.sentences(text)
        search = partial(
            translator.translate, beam_size=beam.beam_size, capture=False, tree=bool(n_best)
        )
        translated = TranslatedText.of(map(search, parts))
        values: Json = {
            "text": translated.runs[0].text if len(parts) == 1 else translated.text,
            "source_tokens": [token for run in translated.runs for token in run.source_tokens],
            "target_tokens": [token for run in translated.runs for token in run.target_tokens],
            "log_probs": [round(value, 5) for run in translated.runs for value in run.log_probs],
        }
        if n_best is None:
            return values, values["text"], translated.notes
        if parts and (tree := translated.runs[0].tree) is not None:
            best = _best(translator, tree, n_best)
        lines = (
            f"{output['rank']}\t{output['score']:.5f}\t{' '.join(output['text'].split())}"
            for output in best
        )
        return values | {"n_best": best}, "\n".join(lines), translated.notes

    nothing = "There is nothing to translate; give texts as arguments or lines on standard input."
    return answer_lines(texts, answer, partial(model.write, translator), nothing)


def _best(translator: Translator, tree: SearchTree, count: int) -> list[Json]:
    """The best finished translations of a beam, best first, each with the score that ranks it.

    Fewer than ``count`` if the model's rules let fewer end.
    """
    best = []
    for rank, node in enumerate(tree.hypotheses[: min(count, tree.beam_size)], start=1):
        path = [tree.nodes[number] for number in tree.path(node)]
        values: Json = {"rank": rank, "score": round(path[-1].score, 5)}
        values["text"] = translator.text(step.token_id for step in path)
        values["target_tokens"] = [step.token for step in path]
        best.append(values | {"log_probs": [round(step.log_prob, 5) for step in path]})
    return best


def _translate_file(
    translator: Translator, file: Path, output: Path, beam_size: int, no_split: bool
) -> int:
    """Translates the lines of a file that its output lacks; each part is written as soon as it is
    done."""
    texts = [line.partition("\t")[0] for _, line in read_lines(file, errors="surrogateescape")]
    done = begun = _translated(output, texts)
    started = time.monotonic()
    bad = list[str]()
    missing = Counter[str]()
    while done < len(texts):
        batch = texts[done : done + AT_ONCE]
        translated = _translate_lines(translator, batch, beam_size, no_split)
        missing.update(translated.notes)
        bad += [f"{file}:{done + place + 1}: {why}" for place, why in translated.refused.items()]
        with output.open("a", encoding="utf-8", errors="surrogateescape") as opened:
            opened.writelines(
                f"{text}\t{translated.outputs.get(place, '')}\n" for place, text in enumerate(batch)
            )
        done += len(batch)
        speed = (done - begun) / max(time.monotonic() - started, 1e-9)
        left = duration((len(texts) - done) / speed)
        progress = f"{done:,}/{len(texts):,} · {speed:.0f} lines/s · {left} left"
        print(f"{bar(done, len(texts))} {progress}", file=sys.stderr, flush=True)
    warn_unread(missing)
    return name_bad(bad)


class _Lines(NamedTuple):
    """Translations of some lines, by their places, from 0."""

    outputs: dict[int, str]  # without blank lines
    notes: Counter[str]  # on what a model cannot read or may have left out, with the lines
    refused: dict[int, ValueError]


def _translate_lines(
    translator: Translator, texts: Sequence[str], beam_size: int, no_split: bool
) -> _Lines:
    """Translates lines together, in batches of like length."""
    sentences = dict[int, tuple[str, ...]]()
    notes = Counter[str]()
    refused = dict[int, ValueError]()
    for place, text in enumerate(texts):
        try:
            if line_text(text).strip():
                sources = (text,) if no_split else translator.sentences(text)
                notes.update(
                    {note for source in sources for note in translator.cut(source).notes()}
                )
                sentences[place] = sources
        except ValueError as error:
            refused[place] = error
    every = list(chain.from_iterable(sentences.values()))
    translations = iter(translate_all(translator, every, beam_size))
    outputs = dict[int, str]()
    for place, sources in sentences.items():
        targets = [next(translations) for _ in sources]
        outputs[place] = joined(targets)
        if any(map(partial(_is_short, translator), sources, targets)):
            notes[LEFT_OUT] += 1
    return _Lines(outputs=outputs, notes=notes, refused=refused)


def _is_short(translator: Translator, source: str, target: str) -> bool:
    """Whether a translation is far too short for its source, which is all that a batch knows."""
    length = len(translator.tokenizer.target.encode(target))
    return unread_limit(len(translator.ids(source)), length) == 0.0


def _translated(output: Path, texts: Sequence[str]) -> int:
    """Number of texts in an output, without a last line that was cut off.

    DataError if it has other texts, or cannot be read: a device may have no end.
    """
    if not output.exists():
        return 0
    if not output.is_file():
        raise DataError(f"{output} is no file, so it cannot be continued; give another --output.")
    complete, end, cut = output.read_bytes().rpartition(b"\n")
    if cut:
        with output.open("rb+") as file:
            file.truncate(len(complete) + len(end))
    lines = (complete + end).decode("utf-8", "surrogateescape").split("\n")[:-1]
    done = [line.partition("\t")[0] for line in lines]
    if done != list(texts[: len(done)]):
        raise DataError(f"{output} has translations of other texts; give another --output.")
    return len(done)
