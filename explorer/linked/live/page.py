"""A model as one HTML file in which it translates, or continues texts: the reader's browser runs
it, without a server."""

import base64
import html
import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import starmap
from pathlib import Path
from typing import Self

from explorer.linked import served
from explorer.linked.live.carried import (
    WEIGHTS,
    Carried,
    browser_config,
    carried,
    content_of,
    why_not,
)
from explorer.linked.living import scripts
from explorer.linked.living.known import Known
from explorer.linked.living.page import POLICY, safe, side, version
from explorer.linked.view.strips import Example, read_examples
from transformer import Translation, Translator, load_language_model, load_translator
from transformer.config import LanguageModelConfig
from transformer.families.registry import config_in
from transformer.storage.description import EXAMPLES_FILE, read_card, read_header
from transformer.storage.files import CheckpointError
from transformer.text import typed, words
from transformer.training.stated import stated
from transformer.training.toys import toy_data

MOST = 128
"""Most tokens a side of what the page translates."""
REFERENCES = 8
"""Runs of the Python package that the page repeats."""
ENTRY, ENGINE = "live/live.js", "engine/engine.js"
INDEX = "index.html"
_CARD = '<details class="live-card"><summary>The card of the model</summary><pre>{}</pre></details>'
_OFF = ", {name} is off: its output is 0, so these weights reach nothing."


class LiveError(ValueError):
    """A model cannot run in a browser."""


@dataclass(frozen=True, kw_only=True)
class Doing:
    """What a model does in its page, in words."""

    does: str  # "translates"
    writes: str  # what it writes: "translation"
    form: str  # for a text
    output_form: str  # for an output of the reader's, if it takes one
    usual: tuple[str, ...]  # texts to start from


TRANSLATES = Doing(
    does="translates",
    writes="translation",
    form="""<input name="text" aria-label="Sentence to translate" maxlength="2000"
 autocomplete="off" dir="auto">
<button>Translate</button>""",
    output_form="""
<details class="live-own"><summary>Use your own translation</summary>
<form id="own" class="live-ask">
<input name="target" aria-label="Your own translation" maxlength="2000" autocomplete="off"
 dir="auto">
<button>Use it</button>
</form></details>""",
    usual=(
        "He lives in a big white house.",
        "The woman who wrote the book is my sister.",
        "I have never seen such a beautiful garden.",
        "Where did you buy these shoes?",
        "The old house is not for sale.",
        "We will meet at the station tomorrow.",
        "She gave her brother a book about birds.",
        "Nobody knows why the train was late.",
    ),
)
CONTINUES = Doing(
    does="continues texts",
    writes="text",
    form="""<input name="text" aria-label="Text to continue" maxlength="2000"
 autocomplete="off" dir="auto">
<button>Continue</button>""",
    output_form="",
    usual=(
        "The old house",
        "She gave her brother a book",
        "I have never seen",
        "Where did you",
        "We will meet at the station",
        "Tom has a dog and Mary has",
        "Nobody knows why",
        "If you want to learn",
    ),
)


def live(directory: str | Path, texts: Sequence[str] = (), *, folder: bool = False) -> str:
    """One HTML file in which a model translates what its reader types, or continues it; `folder`:
    its files stay beside it.

    The first text opens, and Python's runs of eight are compared. LiveError if the model cannot run
    in a browser, or no text is short enough; CheckpointError if there is no model.
    """
    return content_of(live_files(directory, texts, folder=folder)[INDEX]).decode()


def live_files(
    directory: str | Path,  # of a model, or its GGUF file
    texts: Sequence[str] = (),
    *,
    folder: bool = False,
) -> dict[str, bytes | Path]:
    """The page by its name, and in a `folder` the model's files beside it; as ``live``."""
    path = Path(directory)
    opened = _Opened.at(path)
    model = opened.model
    if why := why_not(model, path, folder=folder):
        raise LiveError(why)
    parts = carried(model, path)
    labels = _examples(path, texts, opened.doing.usual)
    runs = {text: run for text in labels if (run := _short(model, text)) is not None}
    if not runs:
        raise LiveError(f"No text to start from has at most {MOST} tokens a side.")
    examples = [{"label": labels[text], "text": text} for text in runs]
    settings = _settings(opened, parts, list(runs.values()))
    settings |= {"first": next(iter(runs)), "examples": examples}
    page = _page(opened, parts, next(iter(runs.values())), settings, folder=folder)
    beside = parts.files if folder else {}
    return {INDEX: page.encode(), **beside}


@dataclass(frozen=True)
class _Opened:
    """A model, where it lies, and what it does."""

    path: Path
    model: Translator
    doing: Doing

    @classmethod
    def at(cls, path: Path) -> Self:
        if isinstance(config_in(path), LanguageModelConfig):
            return cls(path, load_language_model(path, "cpu"), CONTINUES)
        return cls(path, load_translator(path, "cpu", task=None), TRANSLATES)


def _settings(opened: _Opened, parts: Carried, runs: Sequence[Translation]) -> dict[str, object]:
    """What the scripts of a page are told, besides the texts to start from."""
    model = opened.model
    more = (_short(model, text) for text in opened.doing.usual[: REFERENCES - len(runs)])
    references = [*runs, *filter(None, more)][:REFERENCES]
    kernel = (served.scripts() / "engine/kernel.wasm").read_bytes()
    (_, pieces) = parts.files
    return {
        "config": browser_config(model),
        "tables": typing_tables(tuple(filter(words.is_special, model.tokenizer.target.pieces))),
        "kernel": base64.b64encode(kernel).decode(),
        "pieces": pieces,
        "writes": opened.doing.writes,
        "references": [_reference(model, run) for run in references],
        "off": _OFF,
        "usual": (model.heads or {}).get("unsure_below"),
    }


def _page(
    opened: _Opened,
    parts: Carried,
    first: Translation,
    settings: Mapping[str, object],
    *,
    folder: bool,
) -> str:
    """The HTML that opens with a run; in a folder, without the model's files."""
    path = opened.path
    model = opened.model
    doing = opened.doing
    known = Known.of(model, path)
    _, data = side(first, known)
    card = read_card(path)
    page = json.dumps(settings, ensure_ascii=False, separators=(",", ":"))
    lines = (f'<p dir="auto">{safe(text)}</p>' for text in filter(None, _texts_of(first)))
    return _FRAME.format(
        policy=html.escape(_policy(folder)),
        title=safe(f"{model.name} {doing.does} in this page"),
        ask=doing.form,
        own=doing.output_form,
        style="\n".join((scripts.style(), (served.scripts() / "live/live.css").read_text("utf-8"))),
        about=safe(_about(model, known, path, parts)),
        texts="\n".join(lines),
        card=_CARD.format(safe(card)) if card else "",
        proof=safe(f"{model.name} · weights SHA-256 {known.sha256} · {version()}"),
        data=data,
        page=page.replace("<", "\\u003c"),
        files="" if folder else "\n".join(starmap(_inside, parts.files.items())),
        engine=_script(ENGINE),
        script=_script(ENTRY),
    )


def _texts_of(run: Translation) -> tuple[str, str]:
    """The source, which a language model has none of, and what was written."""
    return run.source_text, run.text


def _policy(folder: bool) -> str:
    """What the page may do: run the engine in a worker, and fetch files only if they stay beside
    it."""
    policy = POLICY.replace(
        "script-src 'unsafe-inline'", "script-src 'unsafe-inline' 'wasm-unsafe-eval'"
    )
    if folder:
        return f"connect-src 'self'; worker-src blob:; {policy}"
    return f"worker-src blob:; {policy}"


def _inside(name: str, file: bytes | Path) -> str:
    """A file as a part of the page that no browser shows."""
    zipped = base64.b64encode(zlib.compress(content_of(file), 9)).decode()
    return f'<script type="text/plain" id="{name}">{zipped}</script>'


def _examples(directory: Path, texts: Sequence[str], usual: Sequence[str]) -> dict[str, str]:
    """Sentences to start from, with their labels."""
    if not texts:
        examples: Sequence[Example] = ()
        with suppress(CheckpointError):
            examples = read_examples(directory / EXAMPLES_FILE)
        if examples:
            return {example.text: example.label for example in examples}
        task = stated(read_card(directory)).toy
        texts = usual
        if task is not None:
            texts = [pair.source for pair in toy_data(*task).valid[:REFERENCES]]
    return {text: text if len(text) < 24 else f"{text[:22]}…" for text in texts}


def _short(model: Translator, text: str) -> Translation | None:
    if len(model.ids(text)) >= MOST:
        return None
    run = model.generate(text) if model.continues else model.translate(text)
    return run if len(run.target_tokens) <= MOST else None


def _reference(model: Translator, run: Translation) -> dict[str, object]:
    """What the page compares itself with: ids, log-probabilities, and a row of weights of each
    kind."""
    rows = []
    for kind, (layers, heads) in run.config.sizes.items():
        weights = run.weights(kind, layers - 1, heads - 1)
        row = len(weights) // 2
        rows.append(
            (kind, layers - 1, heads - 1, row, [round(float(weight), 7) for weight in weights[row]])
        )
    if run.source_tokens:
        text = run.source_text
        read = [*model.ids(text), model.config.eos_id]
    else:
        text = run.prompt or ""
        read = [*model.ids(text)]
    return {
        "text": text,
        "source": read,
        "ids": run.target_ids,
        "logs": [round(step.log_prob, 6) for step in run.steps],
        "rows": rows,
    }


def _about(model: Translator, known: Known, directory: Path, parts: Carried) -> str:
    card = read_header(directory)
    name = card.license_name or card.license
    licence = f" Licence of the weights: {name}." if name else ""
    weights = parts.files[WEIGHTS]
    n_bytes = len(weights) if isinstance(weights, bytes) else weights.stat().st_size
    size = n_bytes / 1e6
    rounded = " They are rounded to 8 bits, and computed with as such." if parts.rounded else ""
    languages = f" ({known.languages})" if known.languages else ""
    return (
        f"The model {model.name}{languages} runs in this page: {size:.1f} MB of weights, no "
        f"network.{rounded}{licence}"
    )


@cache
def _script(entry: str) -> str:
    return scripts.joined(served.scripts(), entry, scripts.REPLACED)


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
<main class="stMain"><div class="stVerticalBlock"><div class="living-side">
<div id="about" class="living-about"><p>{about}</p></div>
<form id="ask" class="live-ask">
{ask}
</form>
<div class="live-line"><span>Try:</span><span id="examples" class="live-line"></span>{own}</div>
<p id="status" role="status">The model is loading.</p>
<div id="texts" class="living-texts">
{texts}
</div>
<div id="changes" class="living-changes"></div>
<div id="view"></div>
<div id="doubt" role="status"></div>
<section id="heads" class="living-heads" aria-label="All heads"></section>
<footer class="living-proof">
<div id="proof"><p>{proof}</p></div>
<p id="digest" role="status">Not yet compared with the Python package.</p>
{card}
</footer>
</div></div></main>
<script type="text/plain" id="run" data-place="">{data}</script>
<script type="application/json" id="page">{page}</script>
{files}
<script type="text/plain" id="engine">{engine}</script>
<script type="module">
{script}
</script>
</body>
</html>
"""


_SURROGATES = range(0xD800, 0xE000)
_SIGNS = re.compile(r"[\\^$.*+?()\[\]{}|/]")


@cache
def typing_tables(
    special: tuple[str, ...] = (words.PAD, words.BOS, words.EOS, words.UNK),
) -> dict[str, object]:
    """Tables of the scripts in `engine`, for JSON; a set of characters is lengths left out, and in
    it, in turns.

    `special`: the vocabulary's special pieces, whose names no other piece of it has.
    """
    return {
        "spaces": _lengths(str.isspace),
        "blank": _lengths(typed.is_blank),
        "hidden": _lengths(typed.draws_nothing),
        "shaping": _lengths(typed.shapes),
        "digits": _lengths(str.isdigit),
        # the scripts read it as a pattern in which only signs of patterns may have a backslash
        "special": "|".join(_SIGNS.sub(r"\\\g<0>", name) for name in (*special, words.NO_PIECE)),
        "joiners": typed.JOINERS,
        "plain": typed.PLAIN,
    }


def _lengths(contains: Callable[[str], bool]) -> list[int]:
    lengths = [0]
    inside = False
    for code in range(0x110000):
        if (code not in _SURROGATES and contains(chr(code))) != inside:
            inside = not inside
            lengths.append(0)
        lengths[-1] += 1
    return lengths if inside else lengths[:-1]
