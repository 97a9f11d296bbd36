"""Two positional encodings beside one another: what each does to the scores of one word, said many
times."""

import numpy as np
import streamlit as st

from explorer.app.address import State, session
from explorer.app.address.encodings import ENCODINGS
from explorer.app.address.page_values import Positions
from explorer.app.controls import inform, pickers, plain
from explorer.app.sections.positions import TITLES, USUAL, draw
from explorer.app.server import models
from explorer.app.server.run_key import RunKey
from explorer.app.server.runs import translate
from explorer.figures.base import labels
from explorer.figures.pages.positions import table_map
from transformer.view import HeadView

BOTH = (
    "One word, said {} times, in the encoder of the twin that was trained with each encoding. All "
    "tokens are the same, so **whatever differs between two cells is the encoding's doing**: the "
    "scores of one head of the first layer, less their mean. Both maps share one scale."
)
ACTS = {
    "nowhere": "adds nothing anywhere",
    "embeddings": "adds a vector to each token, once, before the first layer",
    "rotation": "turns queries and keys in every layer",
    "scores": "adds to the scores of every layer",
}
BESIDE, COUNT, WORD, TARGET = "rotary", 32, "house", "Haus"


def show() -> None:
    """Both encodings, with the word and one scale."""
    now = session.current()
    values = now.values(Positions)
    words, box = st.columns([3, 1], vertical_alignment="center")
    words.markdown(BOTH.format(COUNT))
    word = (values.word or WORD).split()[0]

    def take(text: str) -> None:
        session.change(word=text.strip() or None)

    box.text_input("The word", word, **session.control("word", word, take))
    chosen = {"encoding": values.encoding or USUAL, "beside": values.beside or BESIDE}
    places = st.columns(2, gap="large")
    heads = {}
    for place, (field, name) in zip(places, chosen.items(), strict=True):
        with place:
            pickers.choose(f"together.{field}", "Encoding", TITLES, name, field, texts=True)
            heads[field] = repeated(name, word, now)
    most = max(
        (float(np.abs(scores).max()) for _, scores in filter(None, heads.values())), default=1.0
    )
    for place, (field, name) in zip(places, chosen.items(), strict=True):
        with place:
            if (head := heads[field]) is None:
                inform(f"There is no model {models.TWINS}/{name} here, so nothing can be computed.")
                continue
            view, scores = head
            if len(scores) != COUNT:
                inform(
                    plain(
                        f"“{word}” is {len(scores) // COUNT} pieces here; choose a word of one "
                        "piece."
                    )
                )
                continue
            draw(
                f"together {field}",
                lambda scores=scores: table_map(scores, 1, "query", "key", most=most),
                f"Scores of {labels.head_phrase(0, view.head)} less their mean, from "
                f"{scores.min():.1f} to {scores.max():.1f}, “{word}” {COUNT} times · encoder of "
                f"{view.model}",
                note=compared(name, scores),
                formula=ENCODINGS[name].formula,
                seeing=ENCODINGS[name].what,
                audit=view.audit,
                derived=True,
            )


def repeated(name: str, word: str, now: State) -> tuple[HeadView, np.ndarray] | None:
    """The head of a twin's first encoder layer that is asked for, or that places move most.

    Its scores.
    """
    if (known := models.known(f"{models.TWINS}/{name}")) is None:
        return None
    run = translate(RunKey(known, " ".join([word] * COUNT), "greedy", TARGET), whole=True)
    views = [run.head("encoder", 0, i) for i in range(run.config.n_heads)]
    # the end of the text is another token and left out
    scores = [view.scores[:-1, :-1] - view.scores[:-1, :-1].mean() for view in views]
    wanted = now.values(Positions).twin_head
    if wanted and wanted[1] < len(views):
        head = wanted[1]
    else:
        head = max(range(len(views)), key=lambda i: float(scores[i].std()))
    return views[head], scores[head]


def compared(name: str, scores: np.ndarray) -> str:
    """Where an encoding acts, and whether its scores know more than the distance."""
    acts = f"**{TITLES[name][0].upper()}{TITLES[name][1:]}** {ACTS[ENCODINGS[name].acts]}."
    if np.abs(scores).max() < 1e-3:  # the rounding of float32
        return f"{acts} No score differs: this encoder sees a bag of words."
    half = len(scores) // 2
    back = [float(scores.diagonal(-distance).mean()) for distance in range(1, half)]
    share = float(
        np.mean([scores.diagonal(at).std() for at in range(1 - half, half)]) / scores.std()
    )
    depends = "The score depends on the distance alone: every diagonal is one colour."
    if share >= 1e-3:
        depends = (
            "Pairs that are equally far apart differ, too: the spread within a distance is "
            f"{labels.number(share)} of the spread of all scores."
        )
    best = 1 + int(np.argmax(back))
    return f"{acts} {depends} Of the tokens before it, each looks most at the one {best} back."
