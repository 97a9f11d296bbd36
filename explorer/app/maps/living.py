"""The visitor's run as a living page, which opens where the visitor is."""

import io
import zipfile
from collections.abc import Sequence
from dataclasses import replace

from explorer.app.address import State
from explorer.app.maps.looking import lacking
from explorer.app.server import examples, runs
from explorer.app.server.run_key import RunKey
from explorer.app.server.view import View
from explorer.linked.living.index import index
from explorer.linked.living.known import Known, Measuring
from explorer.linked.living.page import written


def living_page(
    opened: View,  # the sentence, with its whole trace
    now: State,  # whose heads and cursor the page opens at
) -> bytes:
    """The content of the HTML file; raises as `explorer.page`."""
    run, source = opened.translation, opened.source
    known = Known(
        opens=source.default_heads,
        aligner=source.aligner if "cross" in opened.kinds else None,
        roles=source.roles,
        glosses=opened.opening.glosses,
        languages=getattr(source, "languages", ""),
    )
    if source.has_model:
        from explorer.app.maps.measures import IN_PLACE
        from transformer.exports.npz import model_digest  # PyTorch is there, as the model is

        known = replace(
            known,
            sha256=model_digest(source.load().model),
            measure=lambda _run, measure, view: IN_PLACE[measure](opened, view),
            why=Measuring(source.load()).why,
        )
    beside = None
    if opened.run_key.changes and source.has_model:
        run_key = replace(opened.run_key, changes=())
        beside = runs.translate(run_key, whole=True), known
    at = place(opened.kinds, now)
    measures = () if now.measure == "weight" or lacking(opened, now.measure) else (now.measure,)
    explained = now.view == "why" and "decoder" in opened.kinds and not opened.run_key.changes
    why = [(now.step or 0) + 1] if explained else []
    return written(run, known, at, beside=beside, measures=measures, why=why).encode()


def living_pages(
    opened: View,  # the sentence that is shown
    now: State,
    sentences: Sequence[str],  # of the text, it among them
) -> bytes:
    """A ZIP file with a living page of each sentence, and an index of them."""
    file = io.BytesIO()
    listed = dict[int, tuple[str, str]]()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as folder:
        for number, text in enumerate(sentences, start=1):
            view, each = now, opened
            if number != (now.sentence or 0) + 1:
                view = replace(now, target=None, changes=(), source=None)
                run_key = RunKey.of(view, opened.source, text)
                run = runs.translate(run_key, whole=True)
                each = View(run_key, run, examples.example_of(opened.source, text))
                view = replace(view, step=each.opening.step, source=each.opening.source)
            folder.writestr(f"{number}.html", living_page(each, view))
            listed[number] = text, each.translation.text
        folder.writestr("index.html", index(listed))
    return file.getvalue()


def place(kinds: tuple[str, ...], now: State) -> str:
    """The heads and the cursor of a state as the address of a page says them, counted from 1."""
    at = {
        name: position + 1
        for name, position in (("step", now.step), ("source", now.source))
        if position is not None
    }
    heads = {
        kind: "{}.{}".format(*(part_of_head + 1 for part_of_head in getattr(now, kind)))
        for kind in kinds
    }
    return "&".join(f"{name}={value}" for name, value in {**at, **heads}.items())
