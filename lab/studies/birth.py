"""`python -m lab birth`: when the heads of a run with snapshots appear."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from lab.birth.appearing import LATER, PREVIOUS, Born, runs_of
from lab.birth.statistics import SNAPSHOTS, hashes, run_statistics
from lab.measurement import Folder, Gold, Json, Model, Pairs, measurement, report
from lab.study import Chart, Study, chart, curves
from transformer.commands.arguments import shown
from transformer.storage.description import BIRTH_FILE, WEIGHTS_FILE, weights_hash
from transformer.storage.eight_bits import stored_as
from transformer.text.links import GoldPair, read_gold
from transformer.text.pairs import SentencePair, read_pairs
from transformer.training.runs.snapshots import snapshot_steps


def told(found: Json) -> Study:
    """When heads appear in a run, and in the same run with other seeds."""
    runs = runs_of(found)
    own, steps = runs[0], list(runs[0].steps)
    first = [
        (what, f"{run.name}{f', seed {i + 1}' if i else ''}", step)
        for what, of in _APPEAR.items()
        for i, run in enumerate(runs)
        if (step := of(run)) is not None
    ]
    appeared = "; ".join(
        f"{what} appears at step {step:,}" for what, of in _APPEAR.items() if (step := of(own)) is not None
    )
    lacking = [what for what, of in _APPEAR.items() if of(own) is None]
    missing = f"by step {steps[-1]:,} there is not yet {', nor '.join(lacking)}" if lacking else ""
    best = {kind: own.previous_best(kind) for kind in ("encoder", "decoder")}
    aligner, later = own.aligner_best(), own.later_mean("decoder")
    return Study(
        topic="Heads",
        question=f"When do the heads of the run “{found['model']}” appear in training?",
        finding="; ".join(filter(None, (appeared, missing))).capitalize() + ".",
        parts=[
            f"The run kept its weights at {len(steps)} steps; {len(runs)} runs differ in their seed alone. "
            "For the best head of each snapshot, the first chart shows the share of rows whose largest "
            "weight is on the token before: "
            + ", ".join(
                f"in the {kind} {100 * float(each[0]):.0f} % before training and "
                f"{100 * float(each[-1]):.0f} % after it"
                for kind, each in best.items()
            )
            + f". Above {100 * PREVIOUS:.0f} % a head counts as one.",
            _curves(
                "rows, %",
                "Previous-token head: the best head of each snapshot",
                runs,
                {kind: (lambda run, kind=kind: 100 * run.previous_best(kind)) for kind in best},  # type: ignore[misc]
            ),
            _curves(
                "alignment error, %",
                "Word aligner: the best head of cross-attention at each snapshot",
                runs,
                {
                    "cross": lambda run: 100 * run.aligner_best(),
                    "diagonal": lambda run: [100 * run.diagonal] * len(steps),
                },
            ),
            f"As a word aligner against links made by hand, the best head has an error of "
            f"{100 * float(aligner[0]):.0f} % at first and {100 * float(aligner[-1]):.0f} % at the end; "
            f"links by place alone have {100 * own.diagonal:.0f} %. Only below that has a head learned more "
            "than word order. There are few pairs with links, so some per cent are chance.",
            "How much of a row's weight would lie on later tokens if no mask hid any: the encoder has no "
            "mask, so its line is real; the decoder's is the softmax of its real scores without the causal "
            "mask. The mask gives these scores no gradient, so nothing in training asks for this line to "
            f"fall; it goes from {100 * float(later[0]):.0f} % to {100 * float(later[-1]):.0f} %.",
            _curves(
                "weight on later tokens, %",
                "Weight on later tokens without a mask, mean over heads",
                runs,
                {kind: (lambda run, kind=kind: 100 * run.later_mean(kind)) for kind in best},  # type: ignore[misc]
            ),
            _curves("nats a token", "Loss of the given translations", runs, {"loss": lambda run: run.loss}),
            chart(
                "bars",
                "Step from which on every later snapshot has "
                f"{', or '.join(dict.fromkeys(row[0] for row in first))}",
                ("what", "run", "step"),
                first,
            ),
        ],
        method=f"{found['data']}. A previous-token head: over {100 * PREVIOUS:.0f} % of rows. Looks back: "
        f"later tokens would get less than {100 * LATER:.0f} % of what even weight gives them.",
    )


_APPEAR: dict[str, Callable[[Born], int | None]] = {
    "a head that aligns words better than the diagonal": Born.aligner_from,
    "a previous-token head of the encoder": lambda run: run.previous_from("encoder"),
    "a previous-token head of the decoder": lambda run: run.previous_from("decoder"),
    "a decoder that looks back without its mask": lambda run: run.later_from("decoder"),
}


def _curves(
    quantity: str, caption: str, runs: Sequence[Born], values: Mapping[str, Callable[[Born], Iterable[float]]]
) -> Chart:
    """A line of each seed; steps stand at their logarithm, the first, 0, at a half."""
    found = {
        f"{name}, seed {i}" if len(runs) > 1 and name != "diagonal" else name: [
            (max(step, 0.5), float(value)) for step, value in zip(run.steps, of(run), strict=True)
        ]
        for name, of in values.items()
        for i, run in enumerate(runs[:1] if name == "diagonal" else runs, start=1)
    }
    return curves(caption, ("run", "step of training", quantity), found, "x")


@measurement(BIRTH_FILE, studies={"emergence": told})
def birth(
    model: Model,
    data: Pairs,
    alignments: Gold,
    seeds: Annotated[tuple[Folder, ...], "the same run with other seeds"] = (),
    sentences: Annotated[int, "use the first N pairs of --data"] = 200,
) -> Json:
    """Measures all snapshots of a run and of its seeds: when heads appear."""
    check_steps(model, seeds)
    pairs, gold = read_pairs(data)[:sentences], read_gold(alignments)
    if not pairs or not gold:
        raise ValueError("The statistics need at least one pair of --data and one of --alignments.")
    return {
        "data": f"{len(pairs)} pairs of {shown(data)}, given targets forced; aer: {len(gold)} pairs of "
        f"{shown(alignments)}",
        SNAPSHOTS: hashes(model),
        "runs": [_run(each, pairs, gold) for each in (model, *seeds)],
    }


def check_steps(directory: Path, seeds: Sequence[Path]) -> None:
    """Raises ValueError unless all directories have snapshots, and of the same steps."""
    steps = snapshot_steps(directory)
    for each in (directory, *seeds):
        found = snapshot_steps(each)
        if not found:
            raise ValueError(f"{each} has no snapshots; train with --snapshots.")
        if found != steps:
            raise ValueError(
                f"{each} has snapshots of other steps than {directory}; the runs cannot be compared."
            )


def _run(directory: Path, pairs: Sequence[SentencePair], gold: Sequence[GoldPair]) -> Json:
    report(f"measuring {directory}")
    found = run_statistics(directory, pairs, gold)
    stored = stored_as(directory / WEIGHTS_FILE)
    return {"name": directory.name, "weights": weights_hash(directory), "stored": stored} | found
