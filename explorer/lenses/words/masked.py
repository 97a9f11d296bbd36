"""What an encoder alone would put in the place of every word, each masked by itself."""

from transformer.run import DecodeStep, Translation
from transformer.text.words import piece_groups

MOST_PRODUCTS = 5e10
"""Numbers of a model's matrices × positions of all passes up to which every word is masked in
turn: about a second."""
Fills = tuple[DecodeStep | None, ...]
"""What is predicted in the place of each token of the source; None where nothing is known."""


def fills_of(run: Translation) -> Fills:
    """What a run predicts in the place of each token: of a masked one, and of every other as if it
    alone were masked, too, unless that takes too many passes; None of a special one, or beyond."""
    predictions = dict(run.fills)
    ordinary = [group.start for group in piece_groups(run.source_tokens) if not group.special]
    n_positions = len(ordinary) * len(run.source_tokens)
    is_quick = n_positions * run.config.products["encoder"] <= MOST_PRODUCTS
    if run.predict is not None and is_quick:
        predictions |= run.predict(ordinary)
    return tuple(predictions.get(i) for i in range(len(run.source_tokens)))
