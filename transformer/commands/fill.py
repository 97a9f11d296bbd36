"""`python -m transformer fill`: predicts the masked words of texts with an encoder alone."""

import math
from functools import partial
from typing import Annotated

from transformer.commands.lines import Answer, answer_lines
from transformer.commands.models import EncoderOptions, Json
from transformer.decoding import ALTERNATIVES
from transformer.model import NO_OUTPUT
from transformer.reader import InputError
from transformer.run import DecodeStep
from transformer.text.kinds import whole
from transformer.text.words import readable


def fill(
    texts: Annotated[
        tuple[str, ...],
        "TEXT",
        "a text with a mask, such as [MASK], for each hidden word; without one, each line of input",
    ] = (),
    *,
    model: EncoderOptions,
    top: Annotated[int, whole(1, ALTERNATIVES), "tokens that are named for each mask"] = 5,
) -> int:
    """Fill the masked words of texts, or of the lines of standard input."""
    encoder = model.load()
    mask_id = encoder.config.mask_id
    if mask_id is None:
        raise ValueError(NO_OUTPUT)
    (mask,) = encoder.pieces([mask_id], "source")

    def answer(text: str) -> Answer:
        run = encoder.fill(text, capture=False)
        if not run.fills:
            raise InputError(f"There is no masked word in this text; write {mask} for one.")
        fills = [
            {"position": position, "tokens": _best(step, top)}
            for position, step in run.fills.items()
        ]
        values: Json = {"text": run.text, "source_tokens": run.source_tokens, "fills": fills}
        lines = [f"  {_line(step, top)}" for step in run.fills.values()]
        return values, "\n".join([run.text, *lines]), run.notes

    nothing = "There is nothing to fill; give texts as arguments or lines on standard input."
    return answer_lines(texts, answer, partial(model.write, encoder), nothing)


def _best(step: DecodeStep, top: int) -> list[Json]:
    """The most probable tokens for a mask, best first."""
    return [
        {
            "token": alternative.token,
            "token_id": alternative.token_id,
            "log_prob": round(alternative.log_prob, 5),
        }
        for alternative in step.alternatives[:top]
    ]


def _line(step: DecodeStep, top: int) -> str:
    """The same, with probabilities."""
    return ", ".join(
        f"{readable(alternative.token)} {math.exp(alternative.log_prob):.3f}"
        for alternative in step.alternatives[:top]
    )
