"""Recurrent: the same sentence through a recurrent network with attention and through a
Transformer."""

from explorer.app.address.page_values import Recurrent
from explorer.app.shell.waiting import for_pytorch

with for_pytorch("recurrent"):
    from collections.abc import Sequence
    from contextlib import suppress
    from dataclasses import dataclass, replace
    from functools import partial

    import numpy as np
    import plotly.graph_objects as go
    import streamlit as st

    from explorer.app.address import State, session
    from explorer.app.address.parameters import link
    from explorer.app.controls import inform, options, panel, part, pickers, plain, refusals, seen
    from explorer.app.server import examples, models, runs
    from explorer.app.server.run_key import RunKey
    from explorer.app.server.source import Source
    from explorer.app.server.view import View
    from explorer.app.shell import frame, menu, paragraph, sections, waiting
    from explorer.app.shell.fitting import fit_head, fit_position
    from explorer.app.shell.model_picker import pick_model
    from explorer.app.shell.sentence import sentence_box
    from explorer.figures import heatmap
    from explorer.figures.base import captions, labels
    from explorer.figures.base.captions import quote
    from explorer.figures.base.labels import percent
    from explorer.figures.pages.recurrent import paths, with_centres
    from explorer.lenses.inside.inside import ScoreTerms, score_terms
    from explorer.lenses.what_if.two_runs import align_tokens
    from explorer.linked.view.feeds import window_around
    from transformer import Translation, Window
    from transformer.config import (
        AttentionKind,
        Head,
        RecurrentConfig,
        TransformerConfig,
    )
    from transformer.view import HeadView

REFERENCE = f"{models.TWINS}/sinusoidal"  # of the same data, pieces and training steps as the twins
NAMES = {"additive": "additive", "bilinear": "bilinear", "dot": "dot product", "local": "local-p"}
OPENS = "Yesterday I bought a new book."  # which all twins translate well
SIZE, CELLS, DIMENSIONS = (
    440,
    40,
    6,
)  # px of a map, its most rows and columns; dimensions of the table
STUDIES = ("recurrent-length", "recurrent-speed", "hard-attention")
MISSING = (
    "There is no recurrent model here yet. `python -m transformer train --preset "
    "recurrent-additive …` trains one; assets/models/README.md has the whole command."
)
SEEING = (
    "Each row is a token that a model predicts, each column a source token; both maps share one "
    "scale. The recurrent decoder has one head: the row is its whole look at the source. Purple "
    "strokes are centres that local attention predicts."
)
CAVEAT = (
    "Data, pieces, batches and steps of both were the same; the recurrent twins were trained with "
    "bfloat16 products, the Transformer with float32, each with one seed."
)
FORMULAS = {
    "additive": r"s_{tj} = v^{\top} \tanh(W_1 h_t + W_2 m_j + b)",
    "bilinear": r"s_{tj} = h_t^{\top} W m_j",
    "dot": r"s_{tj} = h_t^{\top} m_j",
    "local": r"s_{tj} = h_t^{\top} W m_j",
}
WEIGHT = r"\alpha_{tj} = \frac{\exp(s_{tj})}{\sum_{j'} \exp(s_{tj'})}"
LOCAL = (
    r"\alpha_{tj} = \frac{\exp(s_{tj})}{\sum_{|j' - p_t| \le D} \exp(s_{tj'})}\;"
    r"\exp\!\left(-\frac{(j - p_t)^2}{2\sigma^2}\right)"
)
PAPERS = {
    "additive": "Bahdanau et al. 2015, appendix A.1.2, with a trained bias $b$. Their query is the previous "
    "state $s_{t-1}$; here it is $h_t$, as in Luong et al. 2015.",
    "bilinear": "“general” in Luong et al. 2015, section 3.1",
    "dot": "Luong et al. 2015, section 3.1",
    "local": "“local-p” in Luong et al. 2015, section 3.2: $p_t$ is predicted from $h_t$, and $σ = D / 2$",
}
PATHS = (
    "Each circle is what a layer holds at one token. A recurrent layer computes it from the one "
    "before; self-attention reads any token directly. Table 1 of Vaswani et al. (2017) calls this "
    "the maximum path length: O(n) against O(1)."
)


@dataclass(frozen=True)
class Side:
    opened: View
    head: Head  # from 0

    @property
    def run(self) -> Translation:
        return self.opened.translation

    @property
    def title(self) -> str:
        if isinstance(config := self.run.config, RecurrentConfig):
            return f"Recurrent twin ({NAMES[config.score]})"
        return "Transformer"

    @property
    def name(self) -> str:
        if isinstance(self.run.config, RecurrentConfig):
            return self.title.replace("R", "r", 1)
        return f"{self.title} ({labels.head_phrase(*self.head)})"


def show() -> None:
    now = frame.open_page("recurrent")
    if now.text is None:  # what is kept with the state names the sentence that is shown
        now = session.resolve(text=OPENS)
    frame.heading("recurrent", now)
    source = pick_model(now, "recurrent")
    if source is not None:
        sentence_box(source, now, task="translate")
        paragraph.draw(source, now)
    sections.switch("recurrent", now)
    with refusals():
        if now.view == "path" and (here() or REFERENCE in models.available()):
            path_length()
        elif now.view != "path" and here():
            alignments()
        else:
            inform(MISSING)
    for study in STUDIES:
        menu.finding(study)
    frame.end("recurrent", now, pieces(session.current()))
    frame.show_notices(session.current())


def here() -> list[str]:
    twins = models.twins(models.RECURRENT).items()
    return [name.rpartition("/")[2] for name, at in twins if isinstance(at.stated, RecurrentConfig)]


def twin(now: State) -> Source | None:
    """The recurrent twin of the chosen score, of the chosen model, or the first.

    None if none is here.
    """
    known = here()
    name = (now.model or "").removeprefix(f"{models.RECURRENT}/")
    score = next(
        (score for score in (now.values(Recurrent).score, name) if score in known),
        known[0] if known else None,
    )
    return None if score is None else models.find(f"{models.RECURRENT}/{score}")


def pieces(now: State) -> Sequence[str]:
    """The pieces of the twin's run; none without a twin, or for a text that it refuses."""
    with suppress(KeyError, ValueError):
        source = twin(now) or models.known(REFERENCE)
        return () if source is None else translate(now, source).tokens()
    return ()


def translate(now: State, source: Source) -> View:
    """The visitor's sentence through a model, without changes.

    ValueError if it cannot be translated.
    """
    now = replace(now, changes=())
    run_key = RunKey.of(now, source, examples.passage(source, now).sentence)
    with waiting.telling("Translating") as progress:
        return View(run_key, runs.translate(run_key, progress, whole=True), None)


@part()
def alignments() -> None:
    """A recurrent twin's cross-attention beside the Transformer's, and its score in numbers."""
    now = session.current()
    source = twin(now)
    reference = models.known(REFERENCE)
    assert source is not None
    score = source.name.rpartition("/")[2]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        names = {name: NAMES.get(name, name) for name in here()}

        def take(chosen: str) -> None:
            session.change(score=chosen, step=None)

        pickers.switch("recurrent.score", "Score", names, score, take, width="content")
        seen(SEEING)
        label = "Open this twin step by step"
        query = link(now, model=source.name)
        st.page_link("app.py", label=label, icon=":material/play_circle:", query_params=query)
    sides = list[Side]()
    for model in filter(None, (source, reference)):
        size = model.sizes["cross"]
        first = model.default_heads["cross"]
        head = fit_head("cross", now.cross if size != (1, 1) else None, size, first)
        sides.append(Side(translate(now, model), head))
    one = sides[0]
    step = fit_position("step", now.step, len(one.run.target_tokens))
    row = one.opened.opening.step if step is None else step
    rows = [
        row,
        *(counterpart(one.run.target_tokens, side.run.target_tokens, row) for side in sides[1:]),
    ]
    st.markdown("  \n".join(f"{side.title}: **{plain(side.run.text)}**" for side in sides))
    st.markdown(looks(sides, rows))
    with st.container(horizontal=True, gap="medium"):
        for drawn_side, at in zip(sides, rows, strict=True):
            with st.container(width=SIZE, gap="xsmall"):
                with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                    st.markdown(f"**{plain(drawn_side.title)}**", width="stretch")
                    with st.container(width=220):
                        if drawn_side is one:
                            pickers.row_picker(drawn_side.opened, "cross", row, width="stretch")
                        else:
                            pickers.head_picker(
                                "cross", drawn_side.head, drawn_side.opened.source, width="stretch"
                            )
                alignment(drawn_side, at)
    st.caption(CAVEAT)
    numbers(one, row, now.source)


def counterpart(first: Sequence[str], second: Sequence[str], row: int) -> int | None:
    """The place of a token of one translation in another, the aligned one first.

    None if there is none.
    """
    same = [i for i, token in enumerate(second) if token == first[row]]
    aligned = next((j for i, j in align_tokens(first, second) if i == row), None)
    return aligned if aligned in same else next(iter(same), None)


def alignment(side: Side, row: int | None) -> None:
    """The map of a side in a window around a row, with the centres of local attention."""
    lengths = len(side.run.target_tokens), len(side.run.source_tokens)
    window = Window(
        *window_around(lengths[0], row or 0, CELLS), *window_around(lengths[1], 0, CELLS)
    )
    view = side.run.head("cross", *side.head, window=window)
    name = "recurrent" if view.reach or view.score != "scaled_dot" else "transformer"
    panel(
        f"cross {name}",
        partial(alignment_map, view),
        f"{captions.place(view)} · {side.name} · weights, colour from 0 to 1"
        f"{captions.window_note(view.window, lengths)} · {side.opened.run_key.model}",
        audit=view.audit,
        width="content",
        scrolls=True,
        row=None if row is None else row - view.window.query_start,
    )


def alignment_map(view: HeadView) -> go.Figure:
    figure = heatmap(view, SIZE)
    centres = view.centres
    if centres is None:
        return figure
    return with_centres(figure, np.asarray(centres), view.window.key_start, view.weights.shape[1])


def looks(sides: Sequence[Side], rows: Sequence[int | None]) -> str:
    """Where each model looks for the token of the cursor; local attention gives out less than 1."""
    sentences = list[str]()
    for side, row in zip(sides, rows, strict=True):
        puts = "does not write this token"
        if row is not None:
            weights = side.run.weights("cross", *side.head)[row]
            best = int(np.argmax(weights))
            token = plain(quote(side.run.source_tokens[best]))
            puts = f"puts {percent(float(weights[best]))} of its weight on **{token}**"
            total = float(weights.sum())
            if total <= 0.995:
                puts += f" (its row sums to {total:.2f}: the Gaussian takes the rest)"
        start = "The"
        if not sentences:
            start = f"Predicting **{plain(quote(side.run.target_tokens[row or 0]))}**, the"
        sentences.append(f"{start} {plain(side.name)} {puts}.")
    return " ".join(sentences)


def numbers(one: Side, row: int, source: int | None) -> None:
    """The score of the recurrent twin for one key: that of the cursor, or the one of most
    weight."""
    config, trace = one.run.config, one.run.attention
    assert isinstance(config, RecurrentConfig)
    assert trace is not None
    weights = one.run.weights("cross", *one.head)[row]
    key = int(np.argmax(weights)) if source is None else min(source, len(weights) - 1)
    st.markdown("##### The score, in numbers")
    names = options.numbered(f"key {piece}" for piece in labels.pieces(one.run.source_tokens))
    pickers.choose("recurrent.key", "Key", names, key, "source", texts=True, width=260)
    terms = score_terms(trace, (AttentionKind.CROSS, *one.head), row, key)
    left, right = st.columns([1, 1.15], gap="large")
    left.latex(FORMULAS[config.score])
    left.latex(WEIGHT if terms.centre is None else LOCAL)
    left.caption(PAPERS[config.score])
    with right:
        query, read = map(
            plain, map(quote, (one.run.target_tokens[row], one.run.source_tokens[key]))
        )
        score = f"Score **{labels.number(terms.score)}**"
        st.markdown(
            f"Query: the state that predicts **{query}**. Key: **{read}**. "
            f"{score}{weight_of(terms, key)}."
        )
        with st.container(key="recurrent-terms"):
            st.markdown(table(terms))


def weight_of(terms: ScoreTerms, key: int) -> str:
    """How the score becomes the weight of a key (from 0)."""
    if terms.centre is None:
        score = labels.number(terms.score)
        total = labels.number(terms.log_total)
        return f", weight exp({score} − {total}) = **{terms.weight:.3f}**: {total} is log Σ exp"
    centre = f"; its centre is position {labels.number(terms.centre + 1, '.1f')}"
    if not terms.factor:
        return (
            f"{centre}, so this key (position {labels.count(key)}) lies outside the window: weight "
            "0"
        )
    share = np.exp(terms.score - terms.log_total)
    return (
        f"{centre}. Softmax {share:.3f} × Gaussian {terms.factor:.3f} = weight "
        f"**{terms.weight:.3f}**"
    )


def table(terms: ScoreTerms) -> str:
    """The dimensions that add or take away most, the sum of the others, and the score, in
    Markdown."""
    columns = [terms.query, terms.key]
    names = ["q", "k"]
    if terms.vector is not None:
        columns += [np.tanh(terms.query + terms.key), terms.vector]
        names += ["tanh(q + k)", "v"]
    write = partial(labels.number, form=".3f")
    order = terms.order
    empty = [""] * len(names)
    rest = float(terms.terms[order[DIMENSIONS:]].sum())
    lines = [
        ["dimension", *names, "q · k" if terms.vector is None else "v · tanh"],
        ["---", *["---:"] * (len(names) + 1)],
        *(
            [str(labels.count(i)), *(write(float(of[i])) for of in (*columns, terms.terms))]
            for i in order[:DIMENSIONS]
        ),
        [f"the other {len(order[DIMENSIONS:])}", *empty, write(rest)],
        ["**sum = score**", *empty, f"**{write(terms.score)}**"],
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


@part()
def path_length() -> None:
    """How many steps lie between two tokens, through a recurrent network and through attention."""
    now = session.current()
    source = models.known(REFERENCE) or twin(now)
    assert source is not None
    run = translate(now, source).translation
    tokens = run.source_tokens
    stop = len(tokens) - 1 if now.source is None else min(now.source, len(tokens) - 1)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        names = options.numbered(
            f"from the first token to {piece}" for piece in labels.pieces(tokens)
        )
        pickers.choose("recurrent.path", "To", names, stop, "source", texts=True, width=280)
        seen(PATHS)
    first, last = (quote(tokens[i]) for i in (0, stop))
    text = "The first token is here already: choose a later one."
    if stop:
        text = (
            f"What the forward GRU knows of **{plain(first)}** when it reads **{plain(last)}** has "
            f"passed through **{labels.counted(stop, 'step')}**; in self-attention it is **1 "
            "step** away."
        )
    text += (
        f" To read all {len(tokens)} tokens, a GRU takes {len(tokens)} steps, one after the other: "
        "O(n)."
    )
    if isinstance(run.config, TransformerConfig):
        layers = run.config.n_encoder_layers
        text += (
            f" The Transformer's encoder takes {labels.counted(layers, 'layer')}, "
            "each for all tokens at once."
        )
    st.markdown(text)
    panel(
        "path length",
        lambda: paths(tokens, (0, stop)),
        f"A picture of the computation inside one layer, not of weights: the way from “{first}” "
        f"to “{last}”, {len(tokens)} tokens as {run.model} splits the sentence",
    )


show()
