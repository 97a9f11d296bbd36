"""`python -m lenses explain`: why a token was written, by one of the measures beside the weight."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lenses.measures.alti import alti
from lenses.measures.attribution import attribution
from lenses.measures.carried import carried
from lenses.measures.effect import WAYS, Way, effect
from lenses.measures.gradients import saliency
from transformer.commands.arguments import add_beam, model_command, open_model, warn, write
from transformer.model.sites import AttentionKind, PlacedHead
from transformer.runs.translation import Translation
from transformer.runs.translator import Translator
from transformer.text.words import readable
from transformer.trace.recorder import Capture
from transformer.trace.report import AuditReport
from transformer.trace.view import Array

Found = tuple[Sequence[str], Sequence[float], AuditReport | None]
"""Names, values, and the checks if there are some."""


@dataclass(frozen=True)
class ExplainedToken:
    """A token of a run that is explained."""

    translator: Translator  # the model
    run: Translation  # with its residual stream
    step: int  # the step that wrote the token, from 0
    against: int | None  # id of the token that it is compared with
    head: PlacedHead  # for measures of one head
    way: Way  # how `effect` takes a key away

    @property
    def tokens(self) -> list[str]:
        """Names of the tokens that the step sees: the source, and what the decoder read so far."""
        read = self.run.decoder_input_tokens[: self.step + 1]
        return [*map(readable, self.run.source_tokens), *(f"read {readable(each)}" for each in read)]

    def by_key(self, values: Array, audit: AuditReport | None = None) -> Found:
        """The row of the step, of (queries, keys) values of the head."""
        keys = [*map(readable, self.run.labels(self.head[0]).keys)]
        return keys, [*map(float, values[self.step])], audit


def add_command(commands: Any) -> None:
    """Declares the command on an argparse sub-parser collection."""
    parser = model_command(commands, "explain", explain, "print why a token was written, by one measure")
    parser.add_argument("text", metavar="TEXT")
    parser.add_argument("--target", required=True, metavar="TOKEN", help="the token, as it is written")
    parser.add_argument("--against", metavar="TOKEN", help="the token that it is compared with")
    text = "attribution: parts of the logit; gradients, alti: by token; for one head, by key: "
    text += "weight, carried, effect (default: %(default)s)"
    parser.add_argument("--measure", default="attribution", choices=list(_MEASURES), help=text)
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
    head = kind, arguments.layer - 1, arguments.head - 1
    explained = ExplainedToken(translator, run, step, against, head, arguments.way)
    names, values, audit = _MEASURES[arguments.measure](explained)
    warn(run.notes)
    if arguments.json:
        pairs = [{"name": name, "value": value} for name, value in zip(names, values, strict=True)]
        token, measure = run.target_tokens[step], arguments.measure
        written = {"text": run.text, "step": step + 1, "token": token, "measure": measure}
        passed = None if audit is None else audit.passed
        write(arguments, {**written, "values": pairs, "audit_passed": passed}, "")
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


def _attribution(explained: ExplainedToken) -> Found:
    run, step, against = explained.run, explained.step, explained.against
    found = attribution(explained.translator.model, run, step, run.steps[step].token_id, against)
    order = sorted(range(len(found.values)), key=lambda at: -abs(float(found.values[at])))
    return [str(found.writers[at]) for at in order], [float(found.values[at]) for at in order], found.audit


def _gradients(explained: ExplainedToken) -> Found:
    run, step = explained.run, explained.step
    found = saliency(explained.translator, run, step, run.steps[step].token_id, explained.against)
    return explained.tokens, [*map(float, found.source), *map(float, found.prefix)], found.audit


def _sources(explained: ExplainedToken) -> Found:
    step, found = explained.step, alti(explained.translator.model, explained.run)
    values = [*map(float, found.source[step]), *map(float, found.prefix[step, : step + 1])]
    return explained.tokens, values, found.audit


def _weight(explained: ExplainedToken) -> Found:
    return explained.by_key(explained.run.weights(*explained.head))


def _carried(explained: ExplainedToken) -> Found:
    found = carried(explained.translator.model, explained.run, *explained.head)
    return explained.by_key(found.norms, found.audit)


def _effect(explained: ExplainedToken) -> Found:
    translator, run, rows = explained.translator, explained.run, [explained.step]
    return explained.by_key(effect(translator, run, *explained.head, explained.way, rows=rows))


_MEASURES: dict[str, Callable[[ExplainedToken], Found]] = {
    "attribution": _attribution,
    "gradients": _gradients,
    "alti": _sources,
    "weight": _weight,
    "carried": _carried,
    "effect": _effect,
}
