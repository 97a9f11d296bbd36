"""`python -m lab recurrent`: measures recurrent twins beside a Transformer, in one result file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated

from lab.cost.measuring import machine
from lab.measurement import Folder, Gold, Json, Pairs, measurement, one_thread
from lab.recurrent.aligning import alignment_errors
from lab.recurrent.speed import LENGTHS, measure_speed
from lab.study import Chart, Study, chart, curves, gap, interval
from lab.twins.loading import RESULTS_FILE, check_same_vocabulary, load_twins, read_test
from lab.twins.titles import title
from lab.twins.twins import Scored, Twins, by_length, score_pairs, source_lengths, summary
from transformer.commands.arguments import shown
from transformer.model.config import ModelConfig, RecurrentConfig
from transformer.model.network import count_parameters
from transformer.runs.translator import load_translator
from transformer.storage.description import WEIGHTS_FILE, model_digests
from transformer.text.links import read_gold
from transformer.text.numbers import number

_CAVEAT = (
    "One seed each: second seeds moved three positional twins by up to half a BLEU; no recurrent twin has a "
    "second seed. The recurrent twins were trained with bfloat16 products, the Transformer with float32; "
    "data, pieces, batches and steps are the same."
)
_ROWS = ("predicted", "read")


def long_sentences(found: Json) -> Study:
    """How the models do on short and on long sentences."""
    scores, groups = found["scores"], found["lengths"]["groups"]
    gaps = {
        each: cells["bleu"]["difference"] for each, cells in scores.items() if "difference" in cells["bleu"]
    }
    best = max(gaps, key=lambda each: float(gaps[each]["value"]))
    ends = groups[0], groups[-1]
    trend = {each: [group["models"][each]["loss"]["difference"] for group in ends] for each in gaps}
    behind = [_name(each, found) for each, (first, last) in trend.items() if last["low"] > first["high"]]
    gains = [_name(each, found) for each, (first, last) in trend.items() if last["high"] < first["low"]]
    return Study(
        topic="Recurrent networks",
        question="Does a recurrent decoder with attention fall behind on long sentences?",
        finding=f"By their loss, these lose ground to the Transformer from short sentences to long ones: "
        f"{_listed(behind) or 'none'}; these gain on it: {_listed(gains) or 'none'}. Over all sentences, "
        "BLEU "
        "differs by "
        + ", ".join(f"{number(cell['value'], '+.1f')} ({_name(each, found)})" for each, cell in gaps.items())
        + ".",
        parts=[
            "A recurrent decoder hands on one state from word to word. Before attention, this state carried "
            "the whole source too, and long sentences suffered. With attention, the "
            "decoder may look back at each source word; only what it has written is in the state alone.",
            f"On {found['sentences']:,} test sentences, the best recurrent twin, {_name(best, found)}, "
            f"differs from the Transformer by {gap(gaps[best])} BLEU. If an interval includes 0, nothing is "
            "claimed; and another seed may move BLEU by as much as the smaller differences. By length, a "
            "model gains or loses ground if its loss, less the Transformer's, has intervals in the first and "
            f"the last group that do not meet; the last group has {ends[-1]['sentences']} sentences only.",
            _dots(
                "BLEU",
                "BLEU of greedy translations",
                found,
                {n: c["bleu"]["value"] for n, c in scores.items()},
            ),
            _dots("BLEU, difference", "Difference in BLEU from the Transformer", found, gaps),
            *(
                curves(
                    f"{what}, by length of the sentence",
                    ("model", "tokens of the source, up to", quantity, "low", "high"),
                    {
                        _name(name, found): [
                            (group["last"], *interval(cells[measure][part]))
                            for group in groups
                            if part in (cells := group["models"].get(name, {measure: {}}))[measure]
                        ]
                        for name in scores
                    },
                )
                for measure, part, quantity, what in (
                    ("bleu", "value", "BLEU", "BLEU"),
                    ("loss", "difference", "nats a token", "Loss, difference from the Transformer"),
                )
            ),
            *_alignments(found),
        ],
        method=f"{_CAVEAT} 95 % intervals of the paired bootstrap over sentences.",
        sources="Bahdanau et al. 2015; Luong et al. 2015; Cho et al. 2014.",
    )


def speed_of_both(found: Json) -> Study:
    """Speed of training and of writing, by length."""
    speed, reference = found["speed"], found["reference"]
    lengths, machine = speed["lengths"], speed["machine"]
    others = {each: values for each, values in speed["training"].items() if each != reference}
    always = [each for each, values in others.items() if min(values["ratio"]) > 1]
    slowest = min(others, key=lambda each: float(others[each]["ratio"][-1]))
    ratios = sorted(ratio for each in always for ratio in others[each]["ratio"])
    sizes = {each: about["parameters"] for each, about in found["models"].items()}
    recurrent = [size for each, size in sizes.items() if each != reference]
    return Study(
        topic="Recurrent networks",
        question="Which is faster on one core, a recurrent network or a Transformer?",
        finding=f"On one core, these train {ratios[0]:.2f} to {ratios[-1]:.2f} times as fast as the "
        f"Transformer at every length: {_listed([_name(each, found) for each in always])}; at "
        f"{lengths[-1]} tokens “{_name(slowest, found)}” reaches {others[slowest]['ratio'][-1]:.2f} times "
        "its speed. No GPU was measured here."
        if always
        else "On one core, no recurrent twin trains faster than the Transformer at every length.",
        parts=[
            "In training, the whole target is known: attention computes all positions in one pass, a GRU one "
            "after another. One core does everything one after another anyway, so what counts is how much "
            "there is to multiply. A GPU multiplies thousands of rows at once; what would count there is how "
            "many steps must wait for an earlier one: in a GRU, one per token. The cost of all scores grows "
            "with the square of the length; additive ones pass every sum of query and key through a tanh. "
            "Writing is one by one in all. The models differ in size too, which counts for speed: the "
            f"recurrent ones have {min(recurrent):,} to {max(recurrent):,} parameters, the Transformer "
            f"{sizes[reference]:,}.",
            *(
                curves(
                    what,
                    ("model", "tokens in the sentence", unit, "low", "high"),
                    {
                        _name(each, found): [
                            (length, best, min(best, median), max(best, median))
                            for length, best, median in zip(
                                lengths, values["best"], values["median"], strict=True
                            )
                        ]
                        for each, values in speed[kind].items()
                    },
                )
                for kind, unit, what in (
                    ("training", "target tokens a second", "Training: forward and backward pass"),
                    ("writing", "milliseconds a token", "Writing: greedy decoding with a cache"),
                )
            ),
            *(
                curves(
                    f"{what}, against the Transformer",
                    ("model", "tokens in the sentence", "ratio"),
                    {
                        _name(each, found): zip(lengths, values["ratio"], strict=True)
                        for each, values in speed[kind].items()
                        if each != reference
                    },
                )
                for kind, what in (
                    ("training", "Tokens a second in training"),
                    ("writing", "Time of a token"),
                )
            ),
        ],
        method=f"{speed['positions']:,} target tokens a batch, sources as long as targets; best of "
        f"{speed['repeats']} runs, bars end at their median; processor time of one core, "
        f"{machine['processor']}, float32 products. {_CAVEAT}",
        sources="Vaswani et al. 2017, Table 1.",
    )


def _name(each: str, found: Json) -> str:
    return "Transformer" if each == found["reference"] else title(each)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _dots(quantity: str, caption: str, found: Json, cells: Json, factor: float = 1.0) -> Chart:
    ends = {_name(each, found): interval(cell, factor) for each, cell in cells.items()}
    return chart(
        "dots",
        caption,
        ("all", "model", quantity, "low", "high"),
        [("model", name, *each) for name, each in ends.items()],
    )


def _alignments(found: Json) -> list[str | Chart]:
    """Cross-attention as a word aligner, on each file of links made by hand."""
    parts: list[str | Chart] = []
    for file, measured in found.get("alignments", {}).items():
        cells = {
            each: min(
                (measured[row][each]["error"]["value"] for row in _ROWS),
                key=lambda cell: float(cell["value"]),
            )
            for each in measured["predicted"]
        }
        what = f"Alignment error against links made by hand, {measured['pairs']} pairs of {Path(file).name}"
        parts.append(_dots("alignment error, %", what, found, cells, 100))
    if parts:
        parts.insert(
            0,
            "**Attention as a word aligner.** Each model by the better of its two rows, the one that "
            "predicts the word or the one that reads it; the Transformer by the best of its heads, an "
            "advantage of choice.",
        )
    return parts


@measurement(
    RESULTS_FILE,
    parts=["scores", "lengths", "alignments", "speed"],
    studies={"recurrent-length": long_sentences, "recurrent-speed": speed_of_both},
)
def recurrent(
    models: Annotated[Folder, "folder of recurrent model directories"],
    reference: Annotated[Folder, "the Transformer to compare with"],
    data: Annotated[Pairs, "source<TAB>target lines to test on"],
    alignments: Annotated[tuple[Gold, ...], "source<TAB>target<TAB>links lines, for alignment errors"] = (),
    sentences: Annotated[int | None, "test on the first N pairs only"] = None,
    lengths: Annotated[tuple[int, ...], "lengths at which speed is timed"] = LENGTHS,
    repeats: Annotated[int, "runs of each timing"] = 5,
) -> Json:
    """Compares recurrent twins with a Transformer: translation by length, alignment, speed."""
    twins = _opened(models, reference)
    pairs, name = read_test(data, sentences), next(reversed(twins))

    @cache
    def scored() -> dict[str, Scored]:
        return {twin: score_pairs(found, pairs) for twin, found in twins.items()}

    @one_thread()
    def speed() -> Json:
        found = {"machine": machine(), **measure_speed(twins, name, sorted(set(lengths)), repeats)}
        _print_ratios(found)
        return found

    return {
        "version": 1,
        "reference": name,
        "models": {
            twin: {
                "recurrent": _is_recurrent(found.config),
                "parameters": count_parameters(found.model),
                "bytes": (folder / WEIGHTS_FILE).stat().st_size,
                "digests": model_digests(folder),
            }
            for twin, found in twins.items()
            for folder in [reference if twin == name else models / twin]
        },
        "sentences": len(pairs),
        "scores": lambda: summary(scored(), name),
        "lengths": lambda: by_length(scored(), source_lengths(twins[name], pairs), name),
        "alignments": lambda: {
            shown(path): alignment_errors(twins, read_gold(path), name) for path in alignments
        },
        "speed": speed,
    }


def _opened(models: Path, reference: Path) -> Twins:
    """The recurrent models of the folder by name, then the reference."""
    found = load_twins(models)
    if other := [name for name, twin in found.items() if not _is_recurrent(twin.config)]:
        raise ValueError(f"The model {other[0]} in {models} is not recurrent.")
    other_sort = load_translator(reference)
    if other_sort.name in found:
        raise ValueError(f"The reference is named {other_sort.name}, as one of the models is.")
    twins = found | {other_sort.name: other_sort}
    check_same_vocabulary(twins)
    return twins


def _is_recurrent(config: ModelConfig) -> bool:
    """True for the config of a recurrent twin."""
    return isinstance(config, RecurrentConfig)


def _print_ratios(speed: Json) -> None:
    """Prints each model's speed as a ratio to the reference's, by length."""
    _print_row("tokens in the sentence", [f"{n}" for n in speed["lengths"]])
    for name, what in (("training", "tokens/s in training"), ("writing", "ms per token written")):
        for model, found in speed[name].items():
            _print_row(f"{what}, {model}, ratio", [f"{ratio:.2f}" for ratio in found["ratio"]])


def _print_row(title: str, cells: Sequence[str]) -> None:
    print(f"{title:48}" + "".join(f"{cell:>8}" for cell in cells))
