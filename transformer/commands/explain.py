"""`python -m transformer explain`: why a token was written, by one of the measures beside the weight."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from typing import Any

from transformer.commands.arguments import add_beam, model_command, open_model
from transformer.lenses.measures.alti import alti
from transformer.lenses.measures.attribution import attribution
from transformer.lenses.measures.carried import carried
from transformer.lenses.measures.effect import WAYS, effect
from transformer.lenses.measures.gradients import saliency
from transformer.model.sites import AttentionKind
from transformer.runs.translation import Translation
from transformer.runs.translator import Translator
from transformer.text.words import readable
from transformer.trace.recorder import Capture
from transformer.trace.report import AuditReport

Found = tuple[Sequence[str], Sequence[float], AuditReport | None]
"""Names, values, and the checks if there are some."""


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    parser = model_command(commands, "explain", explain, "print why a token was written, by one measure")
    parser.add_argument("text", metavar="TEXT")
    parser.add_argument("--target", required=True, metavar="TOKEN", help="the token, as it is written")
    parser.add_argument("--against", metavar="TOKEN", help="the token that it is compared with")
    parser.add_argument(
        "--measure",
        default="attribution",
        choices=list(_MEASURES),
        help="attribution: parts of the logit; gradients, alti: by token; for one head, by key: "
        "weight, carried, effect (default: %(default)s)",
    )
    parser.add_argument("--kind", default="cross", choices=["decoder", "cross"], help="of the head")
    parser.add_argument("--layer", type=int, default=1, help="layer of the head, counted from 1")
    parser.add_argument("--head", type=int, default=1, help="the head, counted from 1")
    parser.add_argument("--way", default="hidden", choices=WAYS, help="how `effect` takes a key away")
    add_beam(parser)


def explain(arguments: argparse.Namespace) -> int:
    """`explain`: prints the values of one measure; ValueError if there is no such token, head or measure."""
    translator = open_model(arguments)
    run = translator.translate(arguments.text, beam_size=arguments.beam_size, capture=Capture(residual=True))
    step = _step(run, arguments.target)
    against = None if arguments.against is None else _rival(translator, arguments.against)
    sites, heads = translator.config.sites, translator.config.n_heads
    if (kind := AttentionKind(arguments.kind)) not in sites:
        raise ValueError(f"This model has no attention of the kind {kind}.")
    if not 1 <= arguments.layer <= sites[kind].n_layers or not 1 <= arguments.head <= heads:
        raise ValueError(f"There is no head {arguments.layer}.{arguments.head} of the kind {kind}.")
    names, values, audit = _MEASURES[arguments.measure](translator, run, step, against, arguments)
    if arguments.json:
        pairs = [{"name": name, "value": value} for name, value in zip(names, values, strict=True)]
        token, measure = run.target_tokens[step], arguments.measure
        written = {"text": run.text, "step": step + 1, "token": token, "measure": measure}
        passed = None if audit is None else audit.passed
        print(json.dumps({**written, "values": pairs, "audit_passed": passed}, ensure_ascii=False))
        return 0
    print(f"{run.source_text} → {run.text}")
    print(f"{arguments.measure} of “{readable(run.target_tokens[step])}”, step {step + 1}")
    width = max(map(len, names))
    print("\n".join(f"{name:<{width}} {value:+9.3f}" for name, value in zip(names, values, strict=True)))
    if audit is not None and audit.checks:
        print(f"audit: {'passed' if audit.passed else 'FAILED'}")
    return 0


def _step(run: Translation, token: str) -> int:
    tokens = [readable(each) for each in run.target_tokens]
    if token not in tokens:
        raise ValueError(f"The translation “{run.text}” has no token {token!r}; it has {', '.join(tokens)}.")
    return tokens.index(token)


def _rival(translator: Translator, token: str) -> int:
    ids = translator.target_ids(token)
    if len(ids) != 1:
        pieces = ", ".join(map(readable, translator.pieces(ids)))
        raise ValueError(f"{token!r} is not one token of this model, but {pieces}; name one of them.")
    return ids[0]


def _attribution(
    translator: Translator, run: Translation, step: int, against: int | None, _arguments: argparse.Namespace
) -> Found:
    found = attribution(translator.model, run, step, run.steps[step].token_id, against)
    order = sorted(range(len(found.values)), key=lambda at: -abs(float(found.values[at])))
    return [str(found.writers[at]) for at in order], [float(found.values[at]) for at in order], found.audit


def _gradients(
    translator: Translator, run: Translation, step: int, against: int | None, _arguments: argparse.Namespace
) -> Found:
    found = saliency(translator, run, step, run.steps[step].token_id, against)
    read = [f"read {readable(each)}" for each in run.decoder_input_tokens[: step + 1]]
    names = [*map(readable, run.source_tokens), *read]
    return names, [*map(float, found.source), *map(float, found.prefix)], found.audit


def _sources(
    translator: Translator, run: Translation, step: int, _against: int | None, _arguments: argparse.Namespace
) -> Found:
    found = alti(translator.model, run)
    read = [f"read {readable(each)}" for each in run.decoder_input_tokens[: step + 1]]
    names = [*map(readable, run.source_tokens), *read]
    return names, [*map(float, found.source[step]), *map(float, found.prefix[step, : step + 1])], found.audit


def _of_head(measure: str) -> Callable[..., Found]:
    def measured(
        translator: Translator,
        run: Translation,
        step: int,
        _against: int | None,
        arguments: argparse.Namespace,
    ) -> Found:
        head = arguments.kind, arguments.layer - 1, arguments.head - 1
        keys, audit = [*map(readable, run.labels(arguments.kind).keys)], None
        if measure == "effect":
            values = effect(translator, run, *head, arguments.way, rows=[step])
        elif measure == "carried":
            found = carried(translator.model, run, *head)
            values, audit = found.norms, found.audit
        else:
            values = run.weights(*head)
        return keys, [*map(float, values[step])], audit

    return measured


_MEASURES: dict[str, Callable[..., Found]] = {
    "attribution": _attribution,
    "gradients": _gradients,
    "alti": _sources,
    **{name: _of_head(name) for name in ("weight", "carried", "effect")},
}
