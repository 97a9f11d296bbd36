"""`python -m transformer translate`: translates texts, or the lines of a file."""

import sys
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

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
        if n_best > (kept := beam.beam_size):
            raise InputError(
                f"--n-best is {n_best}, but the beam keeps {kept}; give --beam-size {n_best}."
            )
    translator = model.open(beam)
    if file is not None and output is not None:
        return _translate_file(translator, file, output, beam.beam_size, no_split)

    def answer(text: str) -> Answer:
        best: list[Json] = []
        parts = (
            ()
            if not text.strip()
            else (text,)
            if n_best or no_split
            else translator.sentences(text)
        )
        search = partial(
            translator.translate, beam_size=beam.beam_size, capture=False, tree=bool(n_best)
        )
        whole = TranslatedText.of(map(search, parts))
        values: Json = {
            "text": whole.runs[0].text if len(parts) == 1 else whole.text,
            "source_tokens": [token for run in whole.runs for token in run.source_tokens],
            "target_tokens": [token for run in whole.runs for token in run.target_tokens],
            "log_probs": [round(value, 5) for run in whole.runs for value in run.log_probs],
        }
        if n_best is None:
            return values, values["text"], whole.notes
        if parts and (tree := whole.runs[0].tree) is not None:
            best = _best(translator, tree, n_best)
        lines = (
            f"{each['rank']}\t{each['score']:.5f}\t{' '.join(each['text'].split())}"
            for each in best
        )
        return values | {"n_best": best}, "\n".join(lines), whole.notes

    nothing = "There is nothing to translate; give texts as arguments or lines on standard input."
    return answer_lines(texts, answer, partial(model.write, translator), nothing)


def _best(translator: Translator, tree: SearchTree, count: int) -> list[Json]:
    """The best finished translations of a beam, best first, each with the score that ranks it.

    Fewer than ``count`` if the model's rules let fewer end.
    """
    best = []
    for rank, node in enumerate(tree.hypotheses[: min(count, tree.beam_size)], start=1):
        path = [tree.nodes[each] for each in tree.path(node)]
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
        part = texts[done : done + AT_ONCE]
        good = dict[int, tuple[str, ...]]()
        for place, text in enumerate(part):
            try:
                if line_text(text).strip():
                    parts = (text,) if no_split else translator.sentences(text)
                    missing.update(
                        {note for each in parts for note in translator.cut(each).notes()}
                    )
                    good[place] = parts
            except ValueError as error:
                bad.append(f"{file}:{done + place + 1}: {error}")
        sentences = [each for parts in good.values() for each in parts]
        outputs = iter(translate_all(translator, sentences, beam_size))
        written = dict[int, str]()
        for place, parts in good.items():
            translations = [next(outputs) for _ in parts]
            written[place] = joined(translations)
            counts = [
                len(translator.tokenizer.target.encode(translation)) for translation in translations
            ]
            lengths = zip([len(translator.ids(each)) for each in parts], counts, strict=True)
            if any(unread_limit(*length) == 0.0 for length in lengths):  # all that a batch knows
                missing[LEFT_OUT] += 1
        lines = [f"{text}\t{written.get(i, '')}\n" for i, text in enumerate(part)]
        with output.open("a", encoding="utf-8", errors="surrogateescape") as opened:
            opened.writelines(lines)
        done += len(part)
        speed = (done - begun) / max(time.monotonic() - started, 1e-9)
        left = duration((len(texts) - done) / speed)
        progress = f"{done:,}/{len(texts):,} · {speed:.0f} lines/s · {left} left"
        print(f"{bar(done, len(texts))} {progress}", file=sys.stderr, flush=True)
    warn_unread(missing)
    return name_bad(bad)


def _translated(output: Path, texts: Sequence[str]) -> int:
    """Number of texts in an output, without a last line that was cut off.

    DataError if it has other texts, or cannot be read: a device may have no end.
    """
    if not output.exists():
        return 0
    if not output.is_file():
        raise DataError(f"{output} is no file, so it cannot be continued; give another --output.")
    whole, end, cut = output.read_bytes().rpartition(b"\n")
    if cut:
        with output.open("rb+") as file:
            file.truncate(len(whole) + len(end))
    lines = (whole + end).decode("utf-8", "surrogateescape").split("\n")[:-1]
    done = [line.partition("\t")[0] for line in lines]
    if done != list(texts[: len(done)]):
        raise DataError(f"{output} has translations of other texts; give another --output.")
    return len(done)
