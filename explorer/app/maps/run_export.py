"""The export button of a linked view: its figures, and the run as NPZ and living page."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
import streamlit as st

import transformer
from explorer.app.address import State, session
from explorer.app.address.kinds import AS_ONE, BEAM, SAMPLE
from explorer.app.controls import Picture, part
from explorer.app.controls.export import file_name, offer, popover
from explorer.app.maps.explorer import Scene
from explorer.app.maps.living import living_page, living_pages
from explorer.app.maps.looking import HeadSelection, Looks, audited, looks_of
from explorer.app.server import examples, models, runs
from explorer.app.server.source import Source
from explorer.app.server.view import View
from explorer.app.shell import menu, waiting
from explorer.figures import next_token, strongest
from explorer.figures.base import captions, labels
from explorer.figures.base.plot import Spec
from explorer.figures.maps.export import marked
from explorer.lenses.words.reading import ReadView
from explorer.lenses.words.together import as_one
from explorer.linked.living.kinds import MOST, WHOLE
from explorer.linked.view.feeds import fades
from explorer.linked.view.strips import positions_of
from transformer.exports.array_files import save_arrays
from transformer.interventions import write_text
from transformer.run import Translation

if TYPE_CHECKING:
    from transformer.model import Network

KEY = "export.run"
_SEEN, PAPER = "the view as seen", "a figure for a paper"


@part()
def run_export(
    scene: Scene,  # the linked view
    # returns Plotly forms of figures that the linked view draws itself, by their visible names
    more: Callable[[State, Looks], dict[str, Picture]] | None = None,
) -> None:
    """Draws the button; files are made only after the visitor opens it."""
    with popover(KEY, 480) as opened:
        if opened:
            with waiting.while_loading():
                scene = replace(scene, opened=scene.opened.traced())
            now = session.current()
            looks = looks_of(scene.opened, now)
            ways = (_SEEN, PAPER)
            way = st.segmented_control(
                "What to save", ways, default=_SEEN, required=True, key=f"{KEY}.way"
            )
            if way == PAPER:
                from explorer.app.maps import paper  # matplotlib comes with it

                paper.offer(scene.kinds, looks, now)
            else:
                pictures = {} if more is None else more(now, looks)
                plots = scene.laid_out(
                    now, looks
                ).plots  # the kind that the page is about comes first
                maps = {
                    kind: _map(scene, looks[kind]) for kind in scene.kinds[::-1] if kind in plots
                }
                bars = {
                    name: _bar(next(iter(looks.values())), feed)
                    for name, feed in scene.extra(now, looks).items()
                    if "figure" in feed or feed["draw"] == "race"
                }
                joined = {
                    name: picture
                    for kind in maps
                    for name, picture in _together(looks[kind]).items()
                }
                offer("run", {**pictures, **maps, **joined, **bars}, now)
            _run(scene.opened, now)
            if scene.opened.source.has_model:  # a file names no model to load
                st.caption("The same in Python:")
                st.code(calls(looks[scene.kinds[-1]]), language=None, wrap_lines=True)


def _map(scene: Scene, look: HeadSelection) -> Picture:
    view = look.read()
    (row, column) = look.cell
    rows = look.rows_together(view)
    key = column if look.kind == "cross" and not rows else None
    later = scene.fade and fades(look.opened.translation, look.kind)
    return Picture(
        lambda: marked(view, row, key, later, scale=look.scale, together=rows),
        caption_of(view, look, look.scale),
        view.audit,
        view.derived,
        f"{view.kind} {labels.head_name(view.layer, view.head)}",
    )


def _together(look: HeadSelection) -> dict[str, Picture]:
    """The row that several are looked at as, with its strongest keys; nothing if there is none."""
    view = look.read()
    rows = look.rows_together(view)
    if not rows:
        return {}
    how = look.cursor.chosen.together
    name = captions.together_name(view, rows, how)
    one = as_one(view, rows, how)
    title = f"{caption_of(view, look, None)} · {name}, the strongest keys"
    label = f"{how} of {len(rows)} rows, {view.kind}"
    return {label: Picture(lambda: strongest(one, 0), title, one.audit, one.derived)}


def caption_of(view: ReadView, look: HeadSelection, scale: str | None) -> str:
    """The caption of a map, with the step of the cursor; `scale` as in `captions.caption`."""
    step = "" if view.kind == "encoder" else f" · {_position(look)}"
    return captions.caption(view, scale, look.lengths).replace("{step}", step)


def _position(look: HeadSelection) -> str:
    """Where the cursor stands that walks over the run, such as "step 3 of 9"."""
    run = look.opened.translation
    names = positions_of(run)
    if run.config.cursor_side == "encoder":
        position = labels.count(look.cursor.source or 0)
        return f"{names['source']} {position} of {len(run.source_tokens)}"
    return f"{names['step']} {labels.count(look.cursor.step)} of {len(run.target_tokens)}"


def _bar(look: HeadSelection, feed: Mapping[str, Any]) -> Picture:
    """Another figure of the linked view, at the frame of the cursor's source token or step."""
    run = look.opened.translation

    def drawn() -> go.Figure:
        if feed["draw"] == "race":
            return next_token(run.steps, look.cursor.step)
        spec = json.loads(feed["figure"])
        data = spec["data"]
        frames = spec["frames"]
        frame = Spec()
        if feed.get("follows"):
            position = look.cell[0] if feed["follows"] == "source" else look.cursor.step
            spans = feed.get("spans") or [(i, i + 1) for i in range(len(frames))]
            near = (i for i, (start, stop) in enumerate(spans) if start <= position < stop)
            frame = next((frames[i] for i in near), {})
        data[0] |= frame.get("data", [{}])[0]
        return go.Figure(data, spec["layout"]).update_layout(frame.get("layout", {}))

    model = captions.model_name(run.model, run.config.placement)
    caption = " · ".join((feed["title"], feed["caption"], _position(look), model))
    if feed["draw"] == "tiles":
        return Picture(drawn, caption, audited(look.opened, feed["picks"]), derived=True)
    return Picture(drawn, caption)


def _does_in_a_browser(source: Source) -> str:
    """What a model does in a page by itself, such as "translates"; empty if no browser can run
    it."""
    if source.path is None or not source.has_model:
        return ""
    from explorer.linked.live.carried import why_not  # PyTorch is there, as the model is
    from explorer.linked.live.page import CONTINUES, TRANSLATES

    model = source.load()
    if why_not(model, source.path):
        return ""
    return CONTINUES.does if model.continues else TRANSLATES.does


def live_file(source: Source) -> bytes:
    """The page in which a model runs by itself."""
    from explorer.linked.live.page import live  # PyTorch is there, as the model is

    assert source.path is not None
    return live(source.path).encode()


def _run(opened: View, now: State) -> None:
    """The whole run as files."""
    run = opened.translation
    name = file_name(opened.run_key.text, opened.translation.model)
    files: dict[str, tuple[str, str, Callable[[], bytes]]] = {}
    source = opened.source
    network = source.load().model if source.has_model else None
    files["NPZ"] = "npz", "application/octet-stream", lambda: trace_file(run, network)
    files["Living page"] = "html", "text/html", lambda: living_page(opened, now)
    sentences = examples.passage(source, now).sentences[: examples.MOST_SENTENCES]
    if len(sentences) > 1 and now.sentence != AS_ONE:
        every = partial(living_pages, opened, now, sentences)
        files[f"All {len(sentences)} sentences"] = "zip", "application/zip", every
    does = _does_in_a_browser(source)
    if does:
        files[f"A page that {does}"] = "live.html", "text/html", lambda: live_file(source)
    longest = max(len(run.source_tokens), len(run.target_tokens))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown("This run")
        for label, (suffix, kind, make) in files.items():
            off = suffix == "html" and longest > MOST
            place = f"{KEY}.file.{suffix}"
            st.download_button(
                label, make, f"{name}.{suffix}", kind, key=place, on_click="ignore", disabled=off
            )
    page = (
        "The living page is this view with all heads as one HTML file, without a server or a model"
    )
    if longest > MOST:
        page += f"; it holds runs of at most {MOST:,} tokens a side."
    else:
        page += (
            "; in a run as long as this, only the heads shown here are whole."
            if longest > WHOLE
            else "."
        )
    if does:
        page += f" In a page that {does}, the model itself runs in its reader's browser."
    if "zip" in {suffix for suffix, *_ in files.values()}:
        page += " The ZIP file has a living page of each sentence, and an index of them."
    npz = "The NPZ file holds the weights and the tokens, and opens again here and in Python."
    if source.has_vectors:
        npz = (
            "The NPZ file holds the whole trace and opens again here and in Python, even without "
            "the model."
        )
    st.caption(f"{npz} {page}")
    menu.link("open_file", icon=":material/folder_open:", width="content")


def trace_file(run: Translation, model: Network | None) -> bytes:
    """A run as an NPZ file: with its trace, or with the weights of which it is made."""
    file = io.BytesIO()
    if run.holds == "maps":
        save_arrays(run, file)
    else:
        transformer.save_trace(run, file, model)
    return file.getvalue()


def calls(look: HeadSelection) -> str:
    """A few lines that make the same run and give the same head."""
    from transformer.translator import OPENERS  # PyTorch is there, as the model is

    run_key, (layer, head) = look.opened.run_key, look.head
    opener = OPENERS[run_key.source.task]
    call = opener.call
    names = [opener.load]
    arguments = [repr(run_key.text)]
    if run_key.chat:
        arguments = [f'chat=[{{"role": "user", "content": {run_key.text!r}}}]']
    if run_key.target is None:
        most = runs.longest(run_key.source.load(), run_key)
        arguments += [f"{name}={value}" for name, value in most.items()]
    if run_key.target is not None:
        call = "force"
        if not run_key.source.continues:
            arguments.append(repr(run_key.target))
    if run_key.decode.startswith(BEAM):
        arguments.append(f"beam_size={run_key.decode.removeprefix(BEAM)}")
    if run_key.decode.startswith(SAMPLE):
        names.insert(0, "Sampling")
        arguments.append(
            f"sample={run_key.drawing.sampling(int(run_key.decode.removeprefix(SAMPLE)))}"
        )
    read = ""
    if run_key.changes:
        read = "from transformer.interventions import read_text\n"
        arguments.append(f"interventions=read_text({write_text(run_key.changes)!r})")
    path = run_key.source.path
    if path is not None and path.is_relative_to(models.ROOT):
        path = path.relative_to(models.ROOT)
    place = run_key.model if path is None else str(path)
    return (
        f"from transformer import {', '.join(names)}\n{read}\n"
        f"t = {opener.load}({place!r}).{call}({', '.join(arguments)})\n"
        f'view = t.head("{look.kind}", layer={layer}, head={head})  # both from 0\n'
        "print(t.text, view.weights, view.audit.passed)"
    )
