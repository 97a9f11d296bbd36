"""Open a file: a run saved from this app as a whole trace, or weights of one's own; shown without
a model."""

from explorer.app.shell.waiting import for_pytorch

with for_pytorch("open_file"):
    import streamlit as st

    from explorer.app.address import State, session
    from explorer.app.address.kinds import Moves
    from explorer.app.address.parameters import as_params
    from explorer.app.controls import part, plain
    from explorer.app.maps.run_export import trace_file
    from explorer.app.server import examples, models, runs
    from explorer.app.server.models import Imported, OpenFile
    from explorer.app.server.run_key import RunKey
    from explorer.app.server.source import FILE
    from explorer.app.shell import frame, menu
    from explorer.app.shell.model_picker import pick_model
    from explorer.figures.base import captions, labels
    from explorer.figures.base.captions import badge
    from transformer.exports.array_files import FORMATS
    from transformer.exports.npz import model_digest
    from transformer.view import AS_RECORDED

_NOWHERE = dict.fromkeys(("step", "source", *models.KINDS))
_GIVEN = (
    "The model here reads the sentence and is given the translation of the file, so every picture "
    "is computed and verified here. What the file merely records, such as log-probabilities, "
    "plays no part."
)
_INTRODUCTION = (
    "Here you open runs that you saved as NPZ under “Export”, even if their model is not "
    "available. Such a file opens with all its views. The app repeats all checks that need no "
    "model. Weights of your own open too, from any program, and nobody checks them: NPZ, npy, "
    "safetensors or JSON with `weights`, or `encoder_attentions`, `decoder_attentions` and "
    "`cross_attentions`, and `tokens`. A file stays open for this visit only."
)


def show() -> None:
    now = frame.open_page("open_file")
    frame.heading("open_file", now)
    frame.end("open_file", now)
    if models.available() or session.visit().files:
        pick_model(now)
    else:
        with st.sidebar:
            menu.draw()
    st.markdown(_INTRODUCTION)
    _upload()
    if not session.visit().files and models.available():
        st.button("Open a sample", icon=":material/draft:", on_click=_open_sample)
    now = session.current()
    frame.show_notices(now)
    for name in reversed(list(session.visit().files)):
        with st.container(border=True):
            _opened(models.opened(name))


def _open_sample() -> None:
    """Opens the first example of a model as it would be if somebody had saved it."""
    session.keep()
    source = next(iter(models.available().values()))
    run_key = RunKey.of(State(), source, examples.text_on(source, None))
    file = trace_file(runs.translate(run_key), source.load().model)
    models.open_file("sample.npz", file)


@part()
def _upload() -> None:
    key = session.control("upload", tuple(session.visit().files))["key"]
    file = st.file_uploader("File of a run or of weights", type=list(FORMATS), key=key)
    if file is None:
        return
    opened = models.open_file(file.name, file.getvalue())
    session.rerun(model=opened.name, changes=(), off=(), **_NOWHERE, **opened.selection)


def _opened(file: OpenFile) -> None:
    """One open file: what it holds, what is known of its numbers, and what can be done with it."""
    run = file.translation
    texts = (text if len(text) <= 300 else f"{text[:300]}…" for text in (run.source_text, run.text))
    st.markdown(f"**{plain(file.name.removeprefix(FILE))}**")
    st.markdown(" → ".join(plain(text) for text in texts if text))
    if isinstance(file, Imported):
        _checks(file)
    else:
        _weights(file)
    with st.container(horizontal=True, vertical_alignment="center"):
        known = as_params(State(model=file.name, **Moves(file.selection)))
        st.page_link("app.py", label="Show it", icon=":material/visibility:", query_params=known)
        if isinstance(file, Imported):
            _again(file)
        st.button(
            "Close", key=f"close.{file.name}", on_click=_close, args=(file.name,), type="tertiary"
        )


def _weights(file: OpenFile) -> None:
    """The sizes of weights, and what is odd about them."""
    run = file.translation
    sizes = [
        f"{captions.kind_name(kind, site.title)}: {labels.counted(site.n_layers, 'layer')} of "
        f"{labels.counted(run.config.sizes[kind][1], 'head')}, {len(run.tokens(site.query_side))} "
        f"× {len(run.tokens(site.key_side))} tokens"
        for kind, site in run.config.sites.items()
    ]
    st.caption(plain(" · ".join(sizes)))
    verdict = badge(run.audit())
    room = f"{run.nbytes / 2**20:.1f} MiB in memory"
    st.markdown(plain(f"{verdict['text']} · {room}"), help=plain(str(verdict["title"])))
    for note in run.audit().remarks:
        st.caption(plain(note))


def _checks(file: Imported) -> None:
    """The sizes of a run, and the checks of its trace."""
    run = file.translation
    trace = run.trace
    size = f"{len(run.source_tokens)} → {len(run.target_tokens)} tokens"
    model = captions.model_name(run.model, run.config.placement)
    st.caption(plain(f"{size} · {run.method} · model {model}"))
    with st.spinner("Checking every head of the file"):
        report = trace.audit()
    verdict = badge(report)
    room = f"{trace.nbytes / 2**20:.1f} MiB in memory"
    st.markdown(f"{verdict['text']} · {room}", help=plain(str(verdict["title"])))
    rows = [
        f"| {plain(check.name.removesuffix(AS_RECORDED))} | {labels.scientific(check.value)} | "
        f"{labels.scientific(check.limit)} | "
        f"{'as recorded' if check.name.endswith(AS_RECORDED) else 'computed again'} | "
        f"{'✓' if check.passed else '✗'} |"
        for check in report.checks
    ]
    with st.expander("Checks"):
        st.markdown(
            "\n".join(["| check | worst | limit | how | |", "|---|---|---|---|---|", *rows])
        )


def _close(name: str) -> None:
    session.visit().files.pop(name, None)
    if session.current().model == name:
        session.change(model=None, text=None, target=None, decode="greedy", **_NOWHERE)


def _again(file: Imported) -> None:
    run = file.translation
    if run.model not in models.available():
        st.caption(
            plain(f"This run cannot be run again: its model, {run.model}, is not available here.")
        )
        return
    note = ""
    digest = run.model_sha256
    if digest is not None and digest != model_digest(models.find(run.model).load().model):
        note = "A model of that name is available, but its weights differ from those of the file."
    ways: dict[str, tuple[dict[str, str | None], str]] = {"Run it again": (file.selection, note)}
    if run.method != "forced":
        selection = file.selection | {"decode": "greedy", "target": run.text}
        pieces = models.find(run.model).load().cut(run.text, "target").ids
        warning = " It splits this translation into other tokens than the file does."
        split = warning if pieces != tuple(run.target_ids) else ""
        ways["Compute its pictures"] = selection, f"{_GIVEN}{split} {note}".strip()
    for label, (wanted, about) in ways.items():
        st.page_link(
            "app.py",
            label=f"{label} with {plain(run.model)}",
            icon=":material/replay:",
            query_params=as_params(
                State(model=run.model, changes=run.interventions, **Moves(wanted))
            ),
            help=about or None,
        )


show()
