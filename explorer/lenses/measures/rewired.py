"""Other weights in the place of a head's own: uniform, permuted, those of another head.

The values stay, their mixture changes (after Jain and Wallace 2019 and Wiegreffe and Pinter 2019, who did it
to recurrent classifiers). If a token does not become less probable, the head's own weights were not needed
for it; what other heads make of the change is counted in.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from explorer.lenses.measures.passes import forced_passes
from explorer.lenses.measures.stream import recorded
from transformer.config import AttentionKind
from transformer.hooks import At, Edit
from transformer.model import EncoderDecoder
from transformer.run import Translation
from transformer.translator import Translator
from transformer.view import Array


def rewired(
    translator: Translator,
    run: Translation,
    kind: AttentionKind | str,
    layer: int,
    head: int,
    maps: Array,
    query: int | None = None,
) -> Array:
    """Δ log p of every token with other weights in the place of a head's own, one run for each map.

    Args:
        translator: The model of the run.
        run: A recorded run without changes.
        kind: "encoder", "decoder" or "cross".
        layer: The layer, from 0.
        head: The head, from 0.
        maps: (runs, queries, keys) weights.
        query: The row that gets them, from 0; the others keep their own. None for every row.

    Returns:
        (runs, steps) float32, in nats; below zero, the token became less probable.

    Raises:
        UnmeasuredError: The model is no Transformer, or something was changed in the run.
        IndexError: There is no such layer, head or query.
    """
    trace, kind = recorded(run), AttentionKind(kind)
    assert isinstance(translator.model, EncoderDecoder)
    value = trace.layer(kind, layer, head).value[head].float()
    queries = trace.layer(kind, layer).shape[1]
    if query is not None and not 0 <= query < queries:
        raise IndexError(f"There is no query {query}; this head has {queries}, from 0.")
    outputs = torch.as_tensor(np.asarray(maps, dtype=np.float32)) @ value
    rows = slice(None) if query is None else slice(query, query + 1)

    def edits(runs: Sequence[Tensor | None]) -> dict[str, list[Edit]]:
        def edit(own: Tensor, at: At) -> Tensor:
            changed = own.clone()
            for row, output in enumerate(runs):
                if output is not None:
                    changed[row, head, rows] = output[rows].to(own)
            return changed

        return {f"{run.config.sites[kind].sublayer(layer).path}.heads": [edit]}

    source, runs = [*translator.ids(run.source_text), translator.config.eos_id], [None, *outputs]
    with_others = torch.cat([*forced_passes(translator.model, source, run.target_ids, runs, edits)])
    found: Array = (with_others[1:] - with_others[0]).numpy()
    return found
