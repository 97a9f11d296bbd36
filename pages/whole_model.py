"""The whole model: the running model as a diagram, and what each part does to the token at the
cursor."""

from explorer.app.shell.waiting import for_pytorch

with for_pytorch("whole_model"):
    from collections.abc import Sequence
    from dataclasses import replace
    from functools import partial
    from typing import Any, Literal

    import numpy as np
    import streamlit as st

    from explorer.app.address import State, session
    from explorer.app.address.page_values import PARTS
    from explorer.app.controls import inform, panel, pickers, plain
    from explorer.app.maps.explorer import Scene, explorer
    from explorer.app.maps.looking import Looks, lacking
    from explorer.app.sections.whole_model import parts as part_of_model
    from explorer.app.sections.whole_model.diagram import (
        PLACES,
        Inspected,
        boxes,
        in_layer,
        look,
        named,
        part_name,
        parts,
        proof,
    )
    from explorer.app.server.view import View
    from explorer.app.shell.changed import of_tokens
    from explorer.app.shell.page import open_sentence_page, show_with_model
    from explorer.figures.base import captions, labels
    from explorer.figures.pages.anatomy import diagram, lens, stream
    from explorer.lenses.inside.parts import logit_lens, stream_norms
    from explorer.linked.view.home import home
    from transformer.audit import merged
    from transformer.model import count_parameters
    from transformer.run import Translation
    from transformer.storage.card import Header, Score, paragraph, scores

SEEING = (
    "The model that runs, drawn from its configuration, with the numbers of this sentence. An "
    "encoder's parts show the source token at the cursor, a decoder's the decode step. Purple "
    "is positive, amber is negative, clear is zero."
)
SHARES = (1.0, 1.35)  # of the two columns
SHARED_TEST = "newstest2014"  # on which the paper reports its scores
UNSTATED = "not stated in its card"
COMPARED = (
    f"Only scores on one test can be compared: {SHARED_TEST} is news, with long sentences; Tatoeba "
    "has short everyday sentences much like those of the bundled models' training, so scores on "
    "it are far higher. Times compare only models that began with random weights: the paper's "
    "did. Paper: Vaswani et al. 2017, sections 5 and 6, tables 2 and 3 · this model: its "
    "configuration and card"
)


def show(opened: View) -> None:
    """The cursor above; the diagram with the chosen part; what belongs to the whole model."""

    def below(now: State, looks: Looks) -> None:
        at, notes = look(opened, now)
        for note in notes:
            inform(plain(note))
        left, right = st.columns(SHARES, gap="medium")
        with left:
            model(at)
        with right:
            part_of_model.show(at, now)
        norms(at)
        residual_stream(at)
        logit_lenses(at)

    layout = replace(home(opened.translation), view="anatomy", style="page", plots=())
    explorer(Scene(layout, opened, opened.kinds[-1:], below=below, follows=True))
    paper_table(opened)


def model(at: Inspected) -> None:
    """The diagram, and the same choice as lists."""
    run, config = at.run, at.run.config
    chosen, layer = st.columns([2, 1], gap="small")
    with chosen:
        names = {name: part_name(name, config) for name in parts(config)}
        pickers.choose("part", "Part", names, at.part, texts=True)
    if in_layer(at.part):
        with layer:
            layers = {i: f"layer {i + 1}" for i in range(config.stacks[at.side].n_layers)}
            pickers.choose("layer", "Layer", layers, at.layer, texts=True)
    columns = boxes(config, adds_positions(run))
    depths = [stack.n_layers for stack in config.stacks.values()]
    times = [f"{depth} ×" for depth in depths]
    layers_of = [
        labels.counted(n, f"{side} layer") for n, side in zip(depths, config.stacks, strict=True)
    ]
    panel(
        "anatomy-diagram",
        partial(diagram, columns, times, selected=at.part, feeds="decoder-cross"),
        f"{' and '.join(layers_of)}; the stream is d_model = {config.d_model:,} numbers wide · "
        f"drawn from the configuration of {named(run)}",
        seeing=SEEING,
        alt="Diagram of the model; the list above chooses the same parts",
        take=take,
        sentence=False,
    )


def adds_positions(run: Translation) -> bool:
    """Whether positions are added to the embeddings."""
    return next(iter(run.trace.embeddings.values())).positions is not None


def norms(at: Inspected) -> None:
    """The place of the norms in this model and in its counterpart, side by side."""
    config, run = at.run.config, at.run
    st.divider()
    st.markdown(
        "##### Pre-norm beside post-norm\n\nPost-norm, as in the paper: the sum of stream and "
        "sub-layer is "
        "normalised, so every vector passes every norm. Pre-norm: only what a sub-layer reads is "
        "normalised, "
        "the stream itself goes straight up, and one norm stands at its end."
    )
    places: tuple[Literal["post", "pre"], ...] = ("post", "pre")
    for norm, column in zip(places, st.columns(2, gap="medium"), strict=True):
        is_own = norm == config.norm
        columns = boxes(replace(config, norm=norm), adds_positions(run))
        times = ["N ×"] * len(columns)
        panel(
            f"anatomy-{norm}-norm",
            partial(diagram, columns, times, selected="", feeds="decoder-cross"),
            f"{norm.capitalize()}-norm · {'this model' if is_own else 'not this model, drawn to compare'}",
            place=column,
            alt=f"Diagram of a model with {norm}-norm",
            sentence=False,
        )


def take(picked: Any) -> None:
    """Opens the box that the visitor clicked; a click that selects nothing changes nothing."""
    name = picked[0] if isinstance(picked, list) and picked else picked
    if name in PARTS:
        session.change(part=name)


def residual_stream(at: Inspected) -> None:
    run = at.run
    lines = list[tuple[str, list[str], np.ndarray]]()
    checks = [*at.run.audit().checks]
    where = list[str]()
    for side, place in at.places.items():
        norms, more = stream_norms(run, side, place)
        names = [
            "input" if norm is None else f"layer {norm.layer + 1}, {norm.name.replace('_', '-')}"
            for norm in norms
        ]
        lengths = np.array([*norms.values()])
        lines.append((f"{side} at “{captions.quote(run.tokens(side)[place])}”", names, lengths))
        checks += more
        where.append(f"{PLACES[side]} {labels.count(place)}")
    why = (
        "With post-norm, as in the paper, every norm brings the vector back to the scale that its "
        "γ sets."
    )
    if run.config.norm == "pre":
        why = (
            "With pre-norm, as in most later models (Xiong et al. 2020), nothing scales the "
            "vector back on the way, so it mostly grows; in the paper, a norm stands after each "
            "addition."
        )
    audit = merged(checks)
    st.divider()
    left, right = st.columns(SHARES, gap="medium")
    left.markdown(
        "##### The residual stream\n\nEvery sub-layer adds to the same vector. In the "
        f"{[*at.places][-1]}, its length goes from {lengths[0]:.1f} to {lengths[-1]:.1f}. {why}"
    )
    panel(
        "anatomy-stream",
        lambda: stream(lines),
        f"Residual stream · ‖x‖ after each sub-layer · {', '.join(where)} · {named(run)}",
        alt="Length of the residual stream, sub-layer by sub-layer",
        place=right,
        audit=audit,
        proof=proof(audit),
        derived=True,
    )


LENSES = {
    True: "What would come next if the decoder ended here?",
    False: "What would stand in the place of the mask if the encoder ended here?",
}
"""What the logit lens asks, by whether the model writes an output."""


def logit_lenses(at: Inspected) -> None:
    run = at.run
    place = at.predicted
    if place is None:
        st.divider()
        st.caption(plain(f"##### Logit lens\n\n{lacking(at.opened, 'effect')}"))
        return
    written = run.predictions[place]
    rows, checks = logit_lens(at.model.model, run, place, 4)
    names = ["input", *(f"after layer {row.layers}" for row in rows[1:])]
    settled = next(
        (name for i, name in enumerate(names) if all(row.rank == 1 for row in rows[i:])), None
    )
    applied = "The output matrix and the softmax"
    if run.config.norm == "pre":
        applied = f"The final {run.config.norm_name}, the output matrix and the softmax"
    stays = "" if settled is None else f" From the row “{settled}” on, it stays first."
    if settled == names[-1]:
        stays = " Only the last row puts it first."
    audit = merged([*run.audit().checks, *checks])
    st.divider()
    left, right = st.columns(SHARES, gap="medium")
    left.markdown(
        f"##### Logit lens\n\n{LENSES[run.config.writes]} {applied} are "
        "applied to each "
        "layer's stream. **Only the top row is the model's own distribution**: the other layers "
        "were never "
        "trained to be read in this way. Beside each row stands the rank of "
        f"“{plain(captions.quote(written.token))}”, the token that the model found.{stays}"
    )
    panel(
        "anatomy-lens",
        partial(
            lens,
            names,
            tokens=[at.model.pieces(guess.token_id for guess in row.best) for row in rows],
            shares=np.array([[guess.probability for guess in row.best] for row in rows]),
            written=np.array(
                [[guess.token_id == written.token_id for guess in row.best] for row in rows]
            ),
            chosen=[f"rank {row.rank:,}" for row in rows],
        ),
        "Logit lens · most probable tokens read off after each layer, best first · "
        f"{PLACES[run.config.cursor_side]} {labels.count(place)} · {named(run)}",
        alt=f"Logit lens: most probable tokens after each of {len(rows) - 1} layers",
        place=right,
        audit=audit,
        proof=proof(audit),
        derived=True,
        scrolls=540,
    )


def paper_table(opened: View) -> None:
    """This model and the paper's two."""
    run = opened.translation
    model = opened.source.load()
    config, of = run.config, run.config.stacks
    training = plain(stated_training(model.card, opened.source.header))
    shared, rest = bleu(scores(model.card))
    widths = dict.fromkeys(f"{config.inner_width(side):,}" for side in of)
    norm = captions.NORMS[config.norm]
    if config.norm_by == "rms":
        norm += ", RMSNorm"
    rows = (
        ("layers", " + ".join(str(stack.n_layers) for stack in of.values()), "6 + 6", "6 + 6"),
        ("d_model", f"{config.d_model:,}", "512", "1,024"),
        ("d_ff", " + ".join(widths), "2,048", "4,096"),
        ("heads", f"{config.n_heads}", "8", "16"),
        ("LayerNorm", norm, "post-norm", "post-norm"),
        ("positions", plain(config.positions), "sinusoidal", "sinusoidal"),
        ("pieces", f"{config.n_target_pieces:,}", "37,000 (en–de)", "37,000 (en–de)"),
        (
            "parameters",
            f"{count_parameters(model.model) / 1e6:.1f} million",
            "65 million",
            "213 million",
        ),
        (
            f"BLEU on {SHARED_TEST}",
            *(shared or UNSTATED, "27.3 en–de, 38.1 en–fr"),
            "28.4 en–de, 41.0 en–fr (41.8 in its table 2)",
        ),
        ("BLEU on other tests", rest or UNSTATED, "–", "–"),
        ("training", training or UNSTATED, "12 hours on 8 P100 GPUs", "3.5 days on 8 P100 GPUs"),
    )
    head = f"| | {plain(run.model)} | paper, base | paper, big |\n|--|--|--|--|\n"
    st.divider()
    st.markdown("##### The paper's models and this one")
    with st.container(key="anatomy-paper"):
        st.markdown(head + "\n".join(f"| {' | '.join(row)} |" for row in rows))
    st.caption(COMPARED)


def stated_training(card: str, header: Header) -> str:
    """The first sentence of what a card says of the training, and what the model had before it."""
    effort = labels.shorten(paragraph(card, "Training").partition(". ")[0], 200)
    return f"{effort}. {header.training_start}" if effort and header.training_start else effort


def bleu(stated: Sequence[Score]) -> tuple[str, str]:
    """BLEU as a card states it: on the paper's test, and on all others.

    Empty for what it does not state.
    """
    values = [name for name in stated if name.metric == "bleu"]
    shared = [value for value in values if SHARED_TEST in value.dataset.lower()]
    rest = "; ".join(
        f"{number.value:g} on {plain(number.dataset)}" for number in values if number not in shared
    )
    return "; ".join(f"{score.value:g}" for score in shared), rest


opened = open_sentence_page(
    "whole_model", changes=of_tokens, kinds=("encoder", "decoder"), vectors=True
)
if opened is not None:
    show_with_model(opened, show)
