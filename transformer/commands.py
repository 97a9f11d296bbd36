"""The commands that use a model: translate, evaluate, attention, align, heads, probes."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from .alignment import GoldPair, diagonal, read_gold, score
from .capture import AttentionKind, HeadView
from .checkpoint import HEADS_FILE, PROBES_FILE, write_atomically, write_json
from .data import DataError, SentencePair, encode_pairs, read_pairs
from .heads import CrossAlignments, measure_heads
from .patterns import output_projections
from .probe_data import read_pronouns, read_trees
from .probes import dependencies, pronouns
from .tokenizer import Tokenizer
from .train_command import choose_device
from .training import evaluate_loss
from .translation import Translation
from .translator import TYPES, InputError, Translator, load_translator
from .words import readable

Json = dict[str, Any]
BATCH_POSITIONS = 4096
CELL_WIDTH = 8


def add_commands(commands: Any) -> None:
    """Declares the commands on an argparse sub-parser collection."""
    translate = _command(
        commands, "translate", translate_texts, "translate texts, or the lines of standard input"
    )
    translate.add_argument(
        "texts", nargs="*", metavar="TEXT", help="without one, each line of standard input"
    )
    _beam(translate)
    evaluate = _command(commands, "evaluate", evaluate_file, "score translations of a file with sacreBLEU")
    evaluate.add_argument("--data", required=True, metavar="FILE", help="source<TAB>target lines (.gz too)")
    _beam(evaluate)
    attention = _command(commands, "attention", show_attention, "print or save one head's attention")
    attention.add_argument("text", metavar="TEXT")
    attention.add_argument("--kind", default="cross", choices=[kind.value for kind in AttentionKind])
    attention.add_argument("--layer", type=int, default=1, help="from 1")
    attention.add_argument("--head", type=int, default=1, help="from 1")
    attention.add_argument("--target", metavar="TEXT", help="force this translation")
    attention.add_argument("--output", type=Path, metavar="FILE", help="save as .npz or .json")
    _beam(attention)
    align = _command(commands, "align", align_file, "score every cross-attention head as a word aligner")
    align.add_argument("--data", required=True, metavar="FILE", help="source<TAB>target<TAB>links lines")
    heads = _command(commands, "heads", write_heads, "measure all heads and write the model's heads.json")
    heads.add_argument(
        "--data", required=True, metavar="FILE", help="source<TAB>target lines, for the patterns"
    )
    heads.add_argument(
        "--alignments", metavar="FILE", help="source<TAB>target<TAB>links lines, for the errors"
    )
    heads.add_argument("--sentences", type=int, default=500, help="use the first N pairs of --data")
    probes = _command(
        commands,
        "probes",
        write_probes,
        "measure which relations heads follow and write the model's probes.json",
    )
    probes.add_argument(
        "--probes",
        required=True,
        metavar="DIR",
        help="folder with pud-en.conllu.gz, pud-de.conllu.gz, winomt-en.tsv.gz",
    )


def _command(commands: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.add_argument("--model", required=True, metavar="DIR", help="directory, or owner/model on the Hub")
    parser.add_argument("--revision", metavar="NAME", help="branch, tag or commit of a model on the Hub")
    parser.add_argument("--device", default="cpu", help="auto, cpu or cuda")
    parser.add_argument("--dtype", default="float32", choices=TYPES, help="type to compute in")
    parser.add_argument("--json", action="store_true", help="write lines of JSON")
    parser.set_defaults(run=run)
    return parser


def _beam(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--beam-size", type=int, default=1, metavar="N", help="1 is greedy")


def _load(arguments: argparse.Namespace) -> Translator:
    if getattr(arguments, "beam_size", 1) < 1:
        raise ValueError(f"The beam size is {arguments.beam_size}; it must be at least 1.")
    device, revision = choose_device(arguments.device), arguments.revision
    return load_translator(arguments.model, device, arguments.dtype, revision)


def _write(arguments: argparse.Namespace, values: Json, text: str) -> None:
    print(json.dumps(values, ensure_ascii=False) if arguments.json else text, flush=True)


def translate_texts(arguments: argparse.Namespace) -> int:
    """`translate`: one translation a line."""
    translator = _load(arguments)
    place = 0
    for place, text in enumerate(arguments.texts or _input_lines(), start=1):
        try:
            translation = translator.translate(text, beam_size=arguments.beam_size, capture=False)
        except InputError as error:
            raise InputError(f"Text {place}: {error}") from error
        values = {
            "text": translation.text,
            "source_tokens": translation.source_tokens,
            "target_tokens": translation.target_tokens,
            "log_probs": [round(value, 5) for value in translation.log_probs],
        }
        _write(arguments, values, translation.text)
        for note in translation.notes:
            print(f"Text {place}: {note}", file=sys.stderr)
    if place == 0:
        raise InputError("There is nothing to translate; give texts, or lines on standard input.")
    return 0


def _input_lines() -> Iterator[str]:
    for number, raw in enumerate(sys.stdin.buffer, start=1):
        try:
            yield raw.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise DataError(f"Standard input, line {number}: this line is not UTF-8 text.") from error


def evaluate_file(arguments: argparse.Namespace) -> int:
    """`evaluate`: BLEU, chrF, loss and speed on a file."""
    pairs = read_pairs(arguments.data)
    translator = _load(arguments)
    _check_lengths(translator, pairs, arguments.data)
    started = time.perf_counter()
    outputs = translate_batched(translator, [pair.source for pair in pairs], arguments.beam_size)
    seconds = time.perf_counter() - started
    tokens = sum(len(translator.tokenizer.encode_target(output)) + 1 for output in outputs)
    loss = _loss(translator, pairs)
    values = corpus_scores(outputs, pairs) | {
        "loss": None if loss is None else round(loss, 4),
        "tokens_per_second": round(tokens / seconds, 1),
        "sentences": len(pairs),
        "beam_size": arguments.beam_size,
    }
    text = (
        f"BLEU {values['bleu']:.2f}   {values['signature']}\nchrF {values['chrf']:.2f}   "
        f"{values['chrf_signature']}\n"
        f"{'' if loss is None else f'loss {loss:.3f} nats per token' + chr(10)}"
        f"{values['tokens_per_second']:,.0f} target tokens/s, {len(pairs):,} sentences"
    )
    _write(arguments, values, text)
    return 0


def _loss(translator: Translator, pairs: Sequence[SentencePair]) -> float | None:
    """Nats per token on the pairs; None for models whose vocabulary is not of this package."""
    if not isinstance(translator.tokenizer, Tokenizer):
        return None
    return evaluate_loss(translator.model, encode_pairs(pairs, translator.tokenizer), BATCH_POSITIONS)


def _check_lengths(translator: Translator, pairs: Sequence[SentencePair], path: str) -> None:
    for number, pair in enumerate(pairs, start=1):
        try:
            translator.ids(pair.source)
            translator.target_ids(pair.target)
        except InputError as error:
            raise DataError(f"{path}:{number}: {error}") from error


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


def translate_batched(translator: Translator, texts: Sequence[str], beam_size: int) -> list[str]:
    """Translations in the order of the texts, computed in padded batches of similar length."""
    lengths = [len(translator.ids(text)) + 1 for text in texts]
    outputs = [""] * len(texts)
    batch: list[int] = []
    for place in sorted(range(len(texts)), key=lambda place: -lengths[place]):
        if batch and (len(batch) + 1) * lengths[batch[0]] * beam_size > BATCH_POSITIONS:
            _translate_into(outputs, translator, texts, batch, beam_size)
            batch = []
        batch.append(place)
    _translate_into(outputs, translator, texts, batch, beam_size)
    return outputs


def _translate_into(
    outputs: list[str], translator: Translator, texts: Sequence[str], places: Sequence[int], beam_size: int
) -> None:
    translated = translator.translate_all([texts[place] for place in places], beam_size=beam_size)
    for place, text in zip(places, translated, strict=True):
        outputs[place] = text


def show_attention(arguments: argparse.Namespace) -> int:
    """`attention`: one head as a table or a file."""
    if arguments.output is not None and arguments.output.suffix not in (".npz", ".json"):
        raise ValueError(f"The output {arguments.output} must end in .npz or .json.")
    translator = _load(arguments)
    _check_place(translator, arguments)
    if arguments.target is None:
        translation = translator.translate(arguments.text, beam_size=arguments.beam_size)
    else:
        translation = translator.force(arguments.text, arguments.target)
    view = translation.head(arguments.kind, arguments.layer - 1, arguments.head - 1)
    if arguments.output is not None:
        _save_view(arguments.output, view)
        print(f"Wrote {arguments.output}.", file=sys.stderr)
    elif arguments.json:
        print(json.dumps(_view_values(view), ensure_ascii=False))
    else:
        print(_table(translation, view))
    return 0


def _check_place(translator: Translator, arguments: argparse.Namespace) -> None:
    config = translator.config
    n_layers = config.n_encoder_layers if arguments.kind == "encoder" else config.n_decoder_layers
    for name, value, most in (("layer", arguments.layer, n_layers), ("head", arguments.head, config.n_heads)):
        if not 1 <= value <= most:
            raise ValueError(
                f"There is no {arguments.kind} {name} {value}; this model has {name}s 1 to {most}."
            )


def _view_values(view: HeadView) -> Json:
    return {
        "kind": view.kind.value,
        "layer": view.layer,
        "head": view.head,
        "query_tokens": view.query_tokens,
        "predicted_tokens": view.predicted_tokens,
        "key_tokens": view.key_tokens,
        "scores": np.round(view.scores.astype(float), 6).tolist(),
        "mask": view.mask.tolist(),
        "weights": np.round(view.weights.astype(float), 6).tolist(),
        "audit_passed": view.audit.passed,
    }


def _save_view(path: Path, view: HeadView) -> None:
    values = _view_values(view)
    if path.suffix == ".json":
        write_atomically(path, json.dumps(values, ensure_ascii=False).encode())
        return
    texts = {name: values[name] or () for name in ("query_tokens", "predicted_tokens", "key_tokens")}
    np.savez(
        path,
        allow_pickle=False,
        scores=view.scores,
        mask=view.mask,
        weights=view.weights,
        kind=np.array(view.kind.value),
        layer=np.array(view.layer),
        head=np.array(view.head),
        query_tokens=np.array(texts["query_tokens"], dtype=str),
        predicted_tokens=np.array(texts["predicted_tokens"], dtype=str),
        key_tokens=np.array(texts["key_tokens"], dtype=str),
    )


def _table(translation: Translation, view: HeadView) -> str:
    rows = view.query_tokens
    lines = [
        f"{translation.source_text} → {translation.text}",
        f"{view.kind.value} attention, layer {view.layer + 1}, head {view.head + 1}: weights; "
        "rows are queries" + ("" if view.predicted_tokens is None else " (token read → token predicted)"),
    ]
    if view.predicted_tokens is None:
        labels = [_short(row) for row in rows]
    else:
        labels = [f"{_short(r)} → {_short(p)}" for r, p in zip(rows, view.predicted_tokens, strict=True)]
    width = max(map(len, labels))
    lines.append(" " * width + "".join(f" {_short(key):>{CELL_WIDTH}}" for key in view.key_tokens))
    for label, weights, mask in zip(labels, view.weights, view.mask, strict=True):
        cells = (f"{weight:.2f}" if seen else "-" for weight, seen in zip(weights, mask, strict=True))
        lines.append(f"{label:<{width}}" + "".join(f" {cell:>{CELL_WIDTH}}" for cell in cells))
    lines.append(f"audit: {'passed' if view.audit.passed else 'FAILED'}")
    return "\n".join(lines)


def _short(piece: str) -> str:
    text = readable(piece)
    return text if len(text) <= CELL_WIDTH else text[: CELL_WIDTH - 1] + "…"


def align_file(arguments: argparse.Namespace) -> int:
    """`align`: alignment error of every cross-attention head, gold targets forced."""
    gold = read_gold(arguments.data)
    translator = _load(arguments)
    collected = CrossAlignments(translator.config.n_decoder_layers, translator.config.n_heads)
    for translation, pair in force_gold(translator, gold):
        collected.add(translation, pair)
    predicting, reading = collected.scores(reading=False), collected.scores(reading=True)
    baseline = score(map(diagonal, gold), gold)
    if not arguments.json:
        print(f"{len(gold)} pairs; diagonal baseline: AER {baseline.aer:.1%}")
        print("layer head    AER  precision  recall   AER of the row that reads the word")
    for layer, heads in enumerate(predicting):
        for head, found in enumerate(heads):
            read = reading[layer][head]
            values = {"layer": layer, "head": head, "aer": found.aer, "precision": found.precision}
            values |= {"recall": found.recall, "aer_read": read.aer, "aer_diagonal": baseline.aer}
            place = f"{layer + 1:5} {head + 1:4}"
            rates = f"{found.aer:5.1%}  {found.precision:9.1%}  {found.recall:6.1%}   {read.aer:5.1%}"
            _write(arguments, values, f"{place}  {rates}")
    return 0


def force_gold(translator: Translator, gold: Sequence[GoldPair]) -> Iterator[tuple[Translation, GoldPair]]:
    """Every gold target run through the model."""
    for pair in gold:
        yield translator.force(" ".join(pair.source), " ".join(pair.target)), pair


def _check_directory(arguments: argparse.Namespace) -> None:
    if not Path(arguments.model).is_dir():
        raise ValueError(f"There is no directory {arguments.model} to write into; see `pull --output`.")


def write_heads(arguments: argparse.Namespace) -> int:
    """`heads`: measures all heads and writes `heads.json` into the model directory."""
    _check_directory(arguments)
    pairs = read_pairs(arguments.data)[: arguments.sentences]
    gold = read_gold(arguments.alignments) if arguments.alignments else []
    translator = _load(arguments)
    translations = (translator.force(pair.source, pair.target) for pair in pairs)
    projections = output_projections(translator.model)
    found = measure_heads(translator.config, translations, force_gold(translator, gold), projections)
    data = f"patterns: {len(pairs)} pairs of {_shown(arguments.data)}, given targets forced"
    if gold:
        data += f"; aer: {len(gold)} pairs of {_shown(arguments.alignments)}"
    command = "python -m transformer heads " + " ".join(
        f"--{name} {value}"
        for name, value in (
            ("model", arguments.model),
            ("data", arguments.data),
            ("alignments", arguments.alignments),
            ("sentences", arguments.sentences),
        )
        if value is not None
    )
    values = {
        "model": translator.name,
        "data": data,
        "command": command,
        "date": date.today().isoformat(),
    } | found
    write_json(Path(arguments.model) / HEADS_FILE, values)
    _write(arguments, values["default"], f"Wrote {Path(arguments.model) / HEADS_FILE}.")
    return 0


def write_probes(arguments: argparse.Namespace) -> int:
    """`probes`: arcs and antecedents that heads follow, as `probes.json` in the model directory."""
    _check_directory(arguments)
    folder = Path(arguments.probes)
    english, german = (read_trees(folder / f"pud-{language}.conllu.gz") for language in ("en", "de"))
    cases, left_out = read_pronouns(folder / "winomt-en.tsv.gz")
    translator = _load(arguments)
    found = {
        "encoder": dependencies(translator, english, AttentionKind.ENCODER),
        "decoder": dependencies(translator, german, AttentionKind.DECODER),
        "pronouns": pronouns(translator, cases, left_out),
    }
    values = {
        "model": translator.name,
        "data": f"encoder: {len(english):,} English sentences of PUD; decoder: the German ones, forced as "
        f"translations of the English ones; pronouns: {len(cases) + left_out:,} sentences of WinoMT",
        "command": f"python -m transformer probes --model {arguments.model} --probes {arguments.probes}",
        "date": date.today().isoformat(),
    } | found
    write_json(Path(arguments.model) / PROBES_FILE, values)
    _write(arguments, values, f"Wrote {Path(arguments.model) / PROBES_FILE}.")
    return 0


def _shown(path: str) -> str:
    return "/".join(Path(path).parts[-2:])
