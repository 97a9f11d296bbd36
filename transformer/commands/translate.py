"""`python -m transformer translate` and `evaluate`: translates texts and scores translations."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from transformer.batches import BATCH_POSITIONS, translate_all
from transformer.beam import SearchTree
from transformer.commands.arguments import (
    Json,
    add_beam,
    line_text,
    model_command,
    open_model,
    option,
    output_file,
    shared_model,
    standard_input,
    told,
    warn,
    write,
)
from transformer.commands.lines import unread, warn_unread
from transformer.requests import LEFT_OUT, leaves_out
from transformer.text.kinds import at_least
from transformer.text.pairs import DataError, SentencePair, read_lines, read_pairs
from transformer.text.sentences import joined
from transformer.text.tokenizer import Tokenizer
from transformer.text_model import InputError
from transformer.training.data import encode_pairs
from transformer.training.distributed import ALONE, Workers
from transformer.training.loss import evaluate_loss
from transformer.training.progress import bar, duration
from transformer.translator import TranslatedText, Translator

AT_ONCE = 1000
"""Lines of a file that are translated before they are written."""


def add_commands(commands: Any) -> None:
    """Declares the commands on an argparse sub-parser collection."""
    text = "translate texts, or the lines of standard input"
    translate = model_command(commands, "translate", translate_texts, text)
    text = "text to translate; without one, each line of standard input"
    translate.add_argument("texts", nargs="*", metavar="TEXT", help=text)
    text = "translate the first column of each line (.gz too) in batches of like length, into --output"
    option(translate, "--file", Path, "FILE", text)
    text = "text<TAB>translation lines; a file that was begun is continued"
    option(translate, "--output", output_file, "FILE", text)
    add_beam(translate)
    text = "the N best translations of the beam: a line each, rank<TAB>score<TAB>text; implies --no-split"
    option(translate, "--n-best", int, "N", text)
    text = "translate a text at once; else its sentences alone, and joined to one line. With "
    text += "--json, tokens and log_probs are then those of all sentences, one after the other"
    translate.add_argument("--no-split", action="store_true", help=text)
    text = "translate a file and score it with sacreBLEU"
    evaluate = model_command(commands, "evaluate", evaluate_file, text)
    evaluate.add_argument("--data", required=True, metavar="FILE", help="source<TAB>target lines (.gz too)")
    add_beam(evaluate)


def translate_texts(arguments: argparse.Namespace) -> int:
    """`translate`: prints one translation per line, or writes those of a file."""
    if (arguments.file is None) != (arguments.output is None) or (arguments.file and arguments.texts):
        if arguments.texts and arguments.file is not None:
            raise InputError("Give texts, or a file of them with --file, not both.")
        lacks = ("--output", "to be written") if arguments.output is None else ("--file", "with the texts")
        raise InputError(f"Add {lacks[0]} FILE, the file {lacks[1]}: --file and --output need each other.")
    if arguments.file is not None and arguments.output.exists() and arguments.output.samefile(arguments.file):
        raise InputError(f"--output is the file of the texts, {arguments.file}; give another one.")
    _check_n_best(arguments)
    translator = open_model(arguments)
    if arguments.file is not None:
        return _translate_file(arguments, translator)
    place, bad = 0, []
    for place, given in enumerate(arguments.texts or standard_input(), start=1):
        try:
            found = _translated_text(translator, line_text(given), arguments)
        except ValueError as error:
            bad.append(f"Text {place}: {error}")
            found = {"text": "", "error": str(error)}
        notes, ranked = found.pop("notes", ()), found.get("n_best", ())
        lines = [f"{each['rank']}\t{each['score']:.5f}\t{' '.join(each['text'].split())}" for each in ranked]
        write(arguments, found, "\n".join(lines) if arguments.n_best else found["text"])
        warn(notes, f"Text {place}: ")
    if place == 0:
        raise InputError("There is nothing to translate; give texts as arguments or lines on standard input.")
    return told(bad)


def _check_n_best(arguments: argparse.Namespace) -> None:
    """Raises InputError if the beam does not keep as many translations, or they have no place."""
    count, beam_size = arguments.n_best, arguments.beam_size
    if count is None:
        return
    if arguments.file is not None:
        raise InputError("--n-best is written to standard output; give the texts on standard input.")
    at_least(1).check("--n-best", count, InputError)
    if count > beam_size:
        raise InputError(f"--n-best is {count}, but the beam keeps {beam_size}; give --beam-size {count}.")


def _translated_text(translator: Translator, text: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """What is written of one text; blank for a blank one."""
    several = arguments.n_best is not None
    if not text.strip():
        blank: dict[str, Any] = {"text": "", "source_tokens": [], "target_tokens": [], "log_probs": []}
        return blank | ({"n_best": []} if several else {})
    parts = (text,) if several or arguments.no_split else translator.sentences(text)
    options = {"beam_size": arguments.beam_size, "capture": False, "tree": several}
    whole = TranslatedText(tuple(translator.translate(each, **options) for each in parts))
    tree = whole.runs[0].tree
    return {
        "text": whole.text if len(parts) > 1 else whole.runs[0].text,
        "source_tokens": [token for run in whole.runs for token in run.source_tokens],
        "target_tokens": [token for run in whole.runs for token in run.target_tokens],
        "log_probs": [round(value, 5) for run in whole.runs for value in run.log_probs],
        "notes": whole.notes,
    } | ({} if tree is None else {"n_best": n_best(translator, tree, arguments.n_best)})


def n_best(translator: Translator, tree: SearchTree, count: int) -> list[Json]:
    """The best finished translations of a beam, best first, each with the score that ranks it.

    Fewer than ``count`` if the model's rules let fewer end.
    """
    found = []
    for rank, node in enumerate(tree.hypotheses[: min(count, tree.beam_size)], start=1):
        path = [tree.nodes[each] for each in tree.path(node)]
        each: Json = {"rank": rank, "score": round(path[-1].score, 5)}
        each["text"] = translator.text(step.token_id for step in path)
        each["target_tokens"] = [step.token for step in path]
        found.append(each | {"log_probs": [round(step.log_prob, 5) for step in path]})
    return found


def _translate_file(arguments: argparse.Namespace, translator: Translator) -> int:
    """Translates the lines of a file that its output lacks; each part is written as soon as it is done."""
    numbered = read_lines(arguments.file, errors="surrogateescape")
    texts = [line.partition("\t")[0] for _, line in numbered]
    done = _translated(arguments.output, texts)
    started, begun, bad = time.monotonic(), done, list[str]()
    missing = Counter[str]()
    while done < len(texts):
        part = texts[done : done + AT_ONCE]
        good = dict[int, tuple[str, ...]]()
        for place, text in enumerate(part):
            try:
                if line_text(text).strip():
                    parts = (text,) if arguments.no_split else translator.sentences(text)
                    missing.update({note for each in parts for note in translator.cut(each).notes()})
                    good[place] = parts
            except ValueError as error:
                bad.append(f"{arguments.file}:{done + place + 1}: {error}")
        sentences = [each for parts in good.values() for each in parts]
        outputs = iter(translate_all(translator, sentences, arguments.beam_size))
        written = dict[int, str]()
        for place, parts in good.items():
            found = [next(outputs) for _ in parts]
            written[place] = joined(found)
            if any(map(partial(_is_short, translator), parts, found)):
                missing[LEFT_OUT] += 1
        lines = [f"{text}\t{written.get(i, '')}\n" for i, text in enumerate(part)]
        with arguments.output.open("a", encoding="utf-8", errors="surrogateescape") as file:
            file.writelines(lines)
        done += len(part)
        speed = (done - begun) / max(time.monotonic() - started, 1e-9)
        said = f"{done:,}/{len(texts):,} · {speed:.0f} lines/s · {duration((len(texts) - done) / speed)} left"
        print(f"{bar(done, len(texts))} {said}", file=sys.stderr, flush=True)
    warn_unread(missing)
    return told(bad)


def _is_short(translator: Translator, text: str, found: str) -> bool:
    """Whether a translation is far too short: nothing else is known of one that was made in a batch."""
    written = len(translator.tokenizer.encode_target(found))
    return leaves_out(len(translator.ids(text)), written, lambda _: None)


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


def evaluate_file(arguments: argparse.Namespace) -> int:
    """`evaluate`: prints BLEU, chrF, loss and speed on a file."""
    pairs = read_pairs(arguments.data)
    with shared_model(arguments) as (translator, workers):
        check_lengths(translator, pairs, arguments.data)
        if workers.first:
            notes = (unread(translator, pair.source, pair.target) for pair in pairs)
            warn_unread(Counter(note for each in notes for note in each))
        started = time.perf_counter()
        sources = [pair.source for pair in pairs]
        outputs = translate_all(translator, sources, arguments.beam_size, workers=workers)
        seconds = time.perf_counter() - started
        tokens = sum(len(translator.tokenizer.encode_target(output)) + 1 for output in outputs)
        loss = loss_on(translator, pairs, workers)
        if not workers.first:
            return 0
    values = corpus_scores(outputs, pairs) | {"loss": loss, "tokens_per_second": round(tokens / seconds, 1)}
    values |= {"sentences": len(pairs), "beam_size": arguments.beam_size}
    lines = [
        f"BLEU {values['bleu']:.2f}   {values['signature']}",
        f"chrF {values['chrf']:.2f}   {values['chrf_signature']}",
        *([] if loss is None else [f"loss {loss:.3f} nats per token"]),
        f"{values['tokens_per_second']:,.0f} target tokens/s, {len(pairs):,} sentences",
    ]
    write(arguments, values, "\n".join(lines))
    return 0


def corpus_scores(outputs: Sequence[str], pairs: Sequence[SentencePair]) -> Json:
    """sacreBLEU's BLEU and chrF with their signatures."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    bleu, chrf = BLEU(), CHRF()
    references = [[pair.target for pair in pairs]]
    values = {
        "bleu": round(bleu.corpus_score(list(outputs), references).score, 2),
        "chrf": round(chrf.corpus_score(list(outputs), references).score, 2),
    }
    return values | {"signature": str(bleu.get_signature()), "chrf_signature": str(chrf.get_signature())}


def loss_on(translator: Translator, pairs: Sequence[SentencePair], workers: Workers = ALONE) -> float | None:
    """Loss on the pairs in nats per token; None if the vocabulary is not one of this package."""
    if not isinstance(translator.tokenizer, Tokenizer):
        return None
    data = encode_pairs(pairs, translator.tokenizer)
    return round(evaluate_loss(translator.model, data, BATCH_POSITIONS, workers=workers), 4)


def check_lengths(translator: Translator, pairs: Sequence[SentencePair], path: str) -> None:
    """Raises DataError with the line of the first pair that is empty or too long for the model."""
    for pair in pairs:
        try:
            translator.ids(pair.source)
            translator.cut(pair.target, "target")
        except InputError as error:
            raise DataError(f"{path}:{pair.line}: {error}") from error
