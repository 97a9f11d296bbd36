"""A run as one HTML file: the linked view with all heads, without server, network or model."""

from __future__ import annotations

import base64
import datetime
import hashlib
import html
import re
from collections.abc import Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack, overload
from urllib.parse import parse_qsl

import transformer
from explorer.figures.base import captions
from explorer.lenses.words.alignment import Aligner
from explorer.lenses.words.masked import fills_of
from explorer.linked.living import packed, scripts
from explorer.linked.living.beside import in_words, told_apart, unchanged
from explorer.linked.living.kinds import MOST, SCORED, WHOLE, AttentionMaps
from explorer.linked.living.known import Known, why_not
from explorer.linked.view.home import HOME, fills_feed, home, next_feed, stops
from explorer.linked.view.strips import claim_step, glossed, meant, strips_feed, tell
from explorer.linked.view.wire import Feed, RaceFeed
from transformer.config import Head
from transformer.exports.array_numbers import Weights
from transformer.exports.array_run import run_of
from transformer.exports.array_tokens import Marks, Tokens
from transformer.run import NotCapturedError, Translation
from transformer.view import AuditReport

if TYPE_CHECKING:
    from transformer.translator import Translator

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: "
    "blob:; base-uri 'none'; form-action 'none'"
)
_NEEDS_MODEL = (
    "Another sentence, another token, or a head switched off needs the model, and is done in the "
    "app."
)


class PageError(ValueError):
    """A run cannot become a page."""


class RunOptions(TypedDict, total=False):
    """What ``page`` takes with a run."""

    directory: str | Path | None
    place: str
    heads: str
    measures: Sequence[str]
    why: Sequence[int]
    beside: Translation | None
    beside_model: Translator | None
    beside_directory: str | Path | None


class WeightsOptions(TypedDict, total=False):
    """What ``page`` takes with weights."""

    tokens: Tokens | None
    kinds: str | Mapping[str, str]
    special: Marks | None
    name: str
    place: str
    heads: str


@overload
def page(
    run: Translation, model: Translator | None = None, **options: Unpack[RunOptions]
) -> str: ...
@overload
def page(run: Weights, model: Tokens | None = None, **options: Unpack[WeightsOptions]) -> str: ...
def page(
    run: Translation | Weights,
    model: Translator | Tokens | None = None,
    *,
    tokens: Tokens | None = None,
    kinds: str | Mapping[str, str] = "",
    special: Marks | None = None,
    name: str = "",
    directory: str | Path | None = None,
    place: str = "",
    heads: str = "",
    measures: Sequence[str] = (),
    why: Sequence[int] = (),
    beside: Translation | None = None,
    beside_model: Translator | None = None,
    beside_directory: str | Path | None = None,
) -> str:
    """One HTML file with the linked view of a run: every head of every layer, without a server.

    With its model, the page bears the hash of its weights, glosses and best heads, and a changed
    run stands beside itself without changes; `directory` gives roles. `place` and `heads` are
    addresses counted from 1 (``step=7&cross=3.5``): where it opens, and which heads are whole
    beyond 256 tokens. `measures`: "carried", "effect"; `why`: steps, from 1, that are explained.
    NotCapturedError or PageError if the page cannot have what it is asked for.

    In the place of a run and its model, weights of one's own and their tokens, with a `name`, and
    `kinds`: "encoder", "decoder", "cross", or a word of one's own, as
    ``transformer.exports.arrays.own_arrays`` takes them, as it does `special`: 1 for each token
    that stands for no text. WeightsError if they do not fit together.
    """
    if tokens is not None:
        model = tokens
    if not isinstance(run, Translation):
        of_runs = {
            "directory": directory,
            "measures": measures,
            "why": why,
            "beside": beside,
            "beside_model": beside_model,
            "beside_directory": beside_directory,
        }
        _check_left_out(of_runs, "belongs to the run of a model; weights are shown without one")
        run = run_of(run, tokens_in(model), kinds=kinds, name=name, special=special)
        return written(run, Known(), place, heads)
    of_weights = {"kinds": kinds, "name": name, "special": special}
    _check_left_out(of_weights, "belongs to weights; a run has its own")
    model = model_in(model)
    known = Known.of(model, directory)
    pair: tuple[Translation, Known] | None
    if beside is not None:
        same = beside_model is None and beside.model == run.model
        of_beside = known if same else Known.of(beside_model, beside_directory)
        pair = (beside, of_beside)
    elif run.interventions and model is not None:
        pair = (unchanged(run, model), known)
    else:
        pair = None
    return written(run, known, place, heads, beside=pair, measures=measures, why=why)


def _check_left_out(values: Mapping[str, object], reason: str) -> None:
    """PageError if something was given that has no meaning here."""
    for name, value in values.items():
        is_empty = isinstance(value, Sized) and len(value) == 0
        if value is not None and not is_empty:
            raise PageError(f"`{name}` {reason}.")


def tokens_in(model: Translator | Tokens | None) -> Tokens | None:
    """Tokens, which weights need; PageError if a model stands in their place."""
    if model is None or isinstance(model, Iterable):
        return model
    raise PageError("Weights are shown with tokens, a list of texts; a model belongs to a run.")


def model_in(model: Translator | Tokens | None) -> Translator | None:
    """The model of a run; PageError if tokens stand in its place."""
    if isinstance(model, Iterable):
        raise PageError("Tokens are given with weights; a run has its own.")
    return model


def written(
    run: Translation,
    known: Known,
    place: str = "",
    heads: str = "",
    beside: tuple[Translation, Known] | None = None,
    measures: Sequence[str] = (),
    why: Sequence[int] = (),
) -> str:
    """``page`` of a run, or of two, with what is known of their models."""
    runs = [run]
    if beside is None:
        sides = [side(run, known, place=place, heads=heads, measures=measures, why=why)]
    else:
        runs.append(beside[0])
        pair = {"paired": True, "steps": max(len(one.target_tokens) for one in runs)}
        names = told_apart(*runs)
        if why_not(beside[0], measures, beside[1].measure is not None):
            measured: Sequence[str] = ()  # the run beside may be one that cannot be measured
        else:
            measured = measures
        sides = [
            side(
                run,
                known,
                place=place,
                heads=heads,
                name=names[0],
                measures=measures,
                why=why,
                pair=pair,
            ),
            side(
                beside[0],
                replace(beside[1], glosses=None),
                place=place,
                name=names[1],
                ends=_SECOND,
                measures=measured,
                pair=pair,
            ),
        ]
    title = safe(" | ".join(" → ".join(_texts(one))[: 120 // len(runs)] for one in runs))
    content = "\n".join(text for text, _ in sides)
    return _FRAME.format(
        policy=html.escape(POLICY),
        title=title,
        style=scripts.style(),
        pair=" living-pair" if beside else "",
        sides=content,
        runs="\n".join(
            _script(f"run{ends}", data, place, title, content)
            for ends, (_, data) in zip(("", _SECOND), sides, strict=False)
        ),
        script=scripts.script(),
    )


_SECOND = "-2"
"""The end of the ids of the run beside another."""


def _script(name: str, data: str, place: str, title: str, content: str) -> str:
    """The data of a run, with the hash of all that is shown: title, place, the texts of the page,
    numbers."""
    hashed = "\n".join((_one_space(title), place, _one_space(content), data))
    digest = hashlib.sha256(hashed.encode()).hexdigest()
    attributes = f'id="{name}" data-sha256="{digest}" data-place="{safe(place)}"'
    return f'<script type="text/plain" {attributes}>{data}</script>'


def _one_space(source: str) -> str:
    """The text of a piece of HTML as `living.js` reads it, with single spaces."""
    return re.sub("[\t\n\f\r ]+", " ", html.unescape(re.sub("<[^>]*>", "", source))).strip(" ")


def _texts(run: Translation) -> list[str]:
    texts = [run.source_text, run.text] if run.source_tokens else [run.text]
    return [text for text in texts if text]


def side(
    run: Translation,
    known: Known,
    *,
    place: str = "",  # where it opens
    heads: str = "",  # those that are whole in a long run
    name: str = "",  # what tells the run from the one beside it
    ends: str = "",  # end of its ids
    measures: Sequence[str] = (),
    why: Sequence[int] = (),  # the steps that are explained, from 1
    pair: Mapping[str, object] | None = None,  # what its view is told of the one beside it
) -> tuple[str, str]:
    """The HTML of a run, and its data."""
    kinds = _maps(run, known, place, heads, measures)
    audit = AuditReport(())
    for maps in kinds.values():
        audit = audit.joined(maps.audit)
    texts = {
        "about": [_about(run, known, audit)],
        "texts": _texts(run),
        "proof": _proof(run, known, kinds, audit),
    }
    if run.interventions:
        texts["changes"] = [
            f"Changed: {in_words(intervention, run)}." for intervention in run.interventions
        ]
    values = {
        **_content(run, known, kinds, {"view": f"{HOME.view}{ends}", **(pair or {})}),
        "said": texts,
        "kinds": {name: kind.values for name, kind in kinds.items()},
    }
    arrays = [array for kind in kinds.values() for array in kind.arrays]
    data = base64.b64encode(packed.packed(values, arrays)).decode()
    lines = {
        paragraphs: "\n".join(
            f'<p dir="auto">{safe(text)}</p>' for text in texts.get(paragraphs, ())
        )
        for paragraphs in ("about", "texts", "changes", "proof")
    }
    head = ""
    if name:
        end = f'<span id="end{ends}" role="status"></span>'
        head = f'<h2 class="living-name">{safe(name)}{end}</h2>\n'
    reasons = "\n".join(_reason(run, known, step) for step in why)
    return _SIDE.format(n=ends, head=head, why=reasons, unchecked=_UNCHECKED, **lines), data


def _maps(
    run: Translation, known: Known, place: str, heads: str, measures: Sequence[str]
) -> dict[str, AttentionMaps]:
    """The maps of a run by kind; NotCapturedError or PageError if a page cannot have them."""
    if not run.has_maps:
        raise NotCapturedError("Attention was not recorded; translate with capture=True.")
    longest = max(len(run.source_tokens), len(run.target_tokens))
    if longest > MOST:
        raise PageError(
            f"A page holds runs of at most {MOST:,} tokens a side; this one has {longest:,}."
        )
    if measures and (reason := why_not(run, measures, known.measure is not None)):
        raise PageError(reason)
    requested = _named(heads, run.config.sizes)
    opened = _named(place, run.config.sizes, strict=False)
    return {
        kind: AttentionMaps(
            run,
            kind,
            known,
            chosen=requested[kind] or opened[kind],
            longest=longest,
            measures=measures,
        )
        for kind in map(str, run.config.sites)
    }


def _about(run: Translation, known: Known, audit: AuditReport) -> str:
    """What the page is, in the line at its top."""
    if audit.unchecked:
        return (
            f"Attention weights, {run.model}, not checked: every head, in one file of Attention "
            "explorer, which needs no network."
        )
    sort = "A text"
    written = "written by"
    if len(run.config.stacks) > 1:
        sort = "A translation"
    if run.method == "forced":
        written = "forced on"
    if not run.steps:
        sort = sort.replace("A translation", "Two texts")
        written = "read by"
    languages = f" ({known.languages})" if known.languages else ""
    return (
        f"{sort} {written} the model {run.model}{languages}, with every "
        "attention head: one file of Attention explorer, which needs no network."
    )


def _reason(run: Translation, known: Known, step: int) -> str:
    """Why the token of a step, from 1, was written."""
    if not run.steps:
        raise PageError("Why a token was written is asked of an output, which this run has not.")
    if known.why is None:
        raise PageError(
            "Why a token was written is found with the model, which this page was not given."
        )
    if not run.source_tokens:
        raise PageError(
            "Why a token was written is asked of source words; a language model reads none."
        )
    if not 1 <= step <= len(run.steps):
        raise PageError(f"There is no step {step}; this run has {len(run.steps)}.")
    try:
        return known.why(run, step - 1)
    except ValueError as error:  # a recurrent decoder, or a changed run
        raise PageError(str(error)) from error


def safe(text: str) -> str:
    """A text as HTML; what UTF-8 cannot write becomes a question mark, and zeros are left out."""
    return html.escape(text.encode("utf-8", "replace").decode().replace("\0", ""))


def _named(text: str, sizes: Mapping[str, Head], strict: bool = True) -> dict[str, list[Head]]:
    """The heads that an address names, from 0, by kind; what it says wrongly is left out unless
    `strict`."""
    heads: dict[str, list[Head]] = {kind: [] for kind in sizes}
    for kind, value in parse_qsl(text, keep_blank_values=True):
        head = _head(value, sizes.get(kind, (0, 0)))
        if head is not None:
            heads[kind].append(head)
        elif strict:
            raise PageError(f"This run has no head {kind}={value}; heads are named like cross=3.5.")
    return heads


def _head(text: str, size: Head) -> Head | None:
    """A head as `3.5`, from 0; None if there is none of this name in a model of this size."""
    if not re.fullmatch(r"[0-9]{1,4}\.[0-9]{1,4}", text):
        return None
    layer, head = (int(number) - 1 for number in text.split("."))
    if 0 <= layer < size[0] and 0 <= head < size[1]:
        return layer, head
    return None


def _candidates(run: Translation) -> RaceFeed:
    """The candidates for the next token of each step; without steps, for each word if masked."""
    if run.steps:
        return next_feed(run.model, run)
    return fills_feed(run.model, run, fills_of(run))


def _content(
    run: Translation, known: Known, kinds: Mapping[str, AttentionMaps], spec: Mapping[str, object]
) -> dict[str, object]:
    """The view's content, the feeds that are no maps, and the place where it opens."""
    layout = home(run)
    opens = kinds[layout.focus].opens
    glosses = {}
    if "cross" in kinds and known.aligner is None:
        telling = tell(run, Aligner(((0, 0),), "predicted"), (0, 0))
    else:
        telling = tell(run, known.aligner, opens)
    if known.aligner is not None and "cross" in kinds:
        if known.glosses is None:
            glosses = glossed(telling.glosses, known.aligner)
        else:
            glosses = dict(known.glosses)
    heads = {name: kind.opens for name, kind in kinds.items()}
    step = telling.step
    if (example := known.example(run)) is not None and "cross" in kinds:
        glosses |= meant(run, example)
        claimed = claim_step(example, run.target_tokens)
        head = (example.claim.layer, example.claim.head)
        if claimed is not None:
            step = claimed
        if head in kinds["cross"].whole:
            heads["cross"] = head
    position = step
    if telling.source is not None:
        position = telling.source
    strips = strips_feed(run.model, run, glosses=glosses, tour=stops(run, position))
    feeds: dict[str, Feed] = {"strips": strips}
    if "next" in layout.plots:
        feeds["next"] = _candidates(run)
    return {
        "spec": {
            **spec,
            "layout": layout.style,
            "strips": layout.strips,
            "plots": layout.plots,
            "focus": layout.focus,
            "cursor": layout.cursor,
            "alone": len(kinds) == 1 and "paired" not in spec,
            "trace": run.model,
            "awaited": False,
        },
        "shown": feeds,
        "place": {"step": step, "source": telling.source, "heads": heads},
    }


def _proof(
    run: Translation, known: Known, kinds: Mapping[str, AttentionMaps], audit: AuditReport
) -> list[str]:
    """Provenance, one line each: model and way of decoding, audit, changes, what this page cannot
    do."""
    badge = captions.badge(audit)
    sha256 = known.sha256 or run.model_sha256
    origin = "the hash of its weights was not given"
    if sha256:
        origin = f"weights SHA-256 {sha256}"
    facts = [run.model]
    if not audit.unchecked:
        facts.append(origin)
    if run.steps:
        facts.append(f"decoding: {run.method}")
    exactness = f"Weights are written {_written(kinds.values())}."
    if not audit.unchecked:
        exactness += f" {_NEEDS_MODEL}"
    return [
        " · ".join((*facts, _lengths(run), version())),
        f"{badge['text']}: every head of every layer. {badge['title']}",
        *run.notes,
        exactness,
    ]


def _lengths(run: Translation) -> str:
    """How many tokens each side has, in words."""
    if not run.target_tokens:
        return f"{len(run.source_tokens)} tokens"
    target = f"{len(run.target_tokens)} target tokens"
    if not run.source_tokens:
        return target
    return f"{len(run.source_tokens)} source and {target}"


def version() -> str:
    """What wrote a page, and when."""
    return (
        f"attention-explorer {transformer.__version__} · "
        f"{datetime.datetime.now(datetime.UTC).date()}"
    )


def _written(kinds: Collection[AttentionMaps]) -> str:
    """How exactly, and of which heads."""
    if all(kind.values["scored"] for kind in kinds):
        return "with three decimals, scores before the mask with two"
    exactness = "in the steps of the colours, 1/254"
    if all(kind.values["fine"] for kind in kinds):
        exactness = "with three decimals"
    if any(kind.values["raw"] for kind in kinds):
        exactness = "as they are, as 32-bit numbers, where they are not from 0 to 1"
    words = [exactness]
    if any(kind.has_scores for kind in kinds):
        words.append(f"scores before the mask are in pages of up to {SCORED} tokens a side")
    if any("whole" in kind.values for kind in kinds):
        words.append(
            f"all heads are whole in pages of up to {WHOLE} tokens a side: here each is a pooled "
            "tile, and few are whole"
        )
    return "; ".join(words)


_UNCHECKED = "Not checked: scripts are blocked here, so only these texts are shown."
_SIDE = """<div class="living-side">
{head}<div id="about{n}" class="living-about">
{about}
</div>
<div id="texts{n}" class="living-texts">
{texts}
</div>
<div id="changes{n}" class="living-changes">
{changes}
</div>
<div id="view{n}"></div>
<section id="heads{n}" class="living-heads" aria-label="All heads"></section>
{why}
<footer class="living-proof">
<div id="proof{n}">
{proof}
</div>
<p id="digest{n}" role="status">{unchecked}</p>
</footer>
</div>"""
_FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
<main class="stMain"><div class="stVerticalBlock{pair}">
{sides}
</div></main>
{runs}
<script type="module">
{script}
</script>
</body>
</html>
"""
