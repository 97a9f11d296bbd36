"""A head of cross-attention as a dictionary: which target tokens W_O W_V of a source token's output raises.

The direct path only (Elhage et al. 2021, "OV"): what a head writes for a key, through every LayerNorm behind
it, into the logits; what later layers make of it is left out. With σ fixed each LayerNorm is centring and γ
over σ, and σ is one number for a whole row, so it changes no order of tokens: it is left out, as are b_V and
every constant. So the order is exact for every row, before or after normalising.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from lenses.inside.weights import exact, multi_head, output_rows
from lenses.measures.stream import recorded
from transformer.model.layers import PostNorm
from transformer.model.network import Network
from transformer.model.norms import StreamNorm, centred, shift
from transformer.model.sites import AttentionKind
from transformer.runs.translation import Translation
from transformer.runs.translator import Translator
from transformer.text.words import is_punctuation, is_special, readable

CROSS = AttentionKind.CROSS
MOST = 8
"""Words of a list."""
FIRST = 3
"""Tokens beside each."""


def norms_behind(model: Network, layer: int) -> list[StreamNorm]:
    """Every LayerNorm between what cross-attention of a layer writes and the output matrix."""
    stack, own = model.config.stacks["decoder"], model.config.sites[CROSS].sublayer(layer)
    later = [*stack.passed()]
    residuals = (model.residual(each) for each in later[later.index(own) :])
    found: list[nn.Module] = [each.norm for each in residuals if isinstance(each, PostNorm)]
    return [each for each in (*found, model.stack("decoder").final_norm) if isinstance(each, StreamNorm)]


def raises(
    model: Network, run: Translation, layer: int, output: Tensor, heads: slice = slice(None)
) -> Tensor:
    """(heads, keys, target pieces) float32: rise of every logit by each key read with weight 1, times σ.

    ``output`` is the output matrix, ``model.projection[0]`` in float32 on the CPU.
    """
    attention, (rows, _) = multi_head(model, CROSS, layer), output_rows(model, CROSS, layer)
    always = exact(shift(attention.v_proj)).view(attention.n_heads, 1, -1)
    wrote = ((exact(recorded(run).layer(CROSS, layer).value) - always) @ rows)[heads]
    for norm in norms_behind(model, layer):
        wrote = exact(norm.weight) * centred(norm, wrote)
    return wrote.float() @ output.T


class DictionaryEntry(NamedTuple):
    """A source word (a piece) of the dictionary that a head is."""

    word: str  # the piece, as people read it
    raised: tuple[str, ...]  # the target tokens that it raises most, by the mean over its occurrences
    written: float  # share of the sentences with it in whose translation the first of them stands
    seen: int  # number of those sentences


class AskedWords(NamedTuple):
    """A row, and the source words that its query has the largest products with."""

    token: str  # the token that the row predicts
    words: tuple[str, ...]  # source words of all runs, each once


def _is_word(piece: str) -> bool:
    return not (is_special(piece) or is_punctuation(readable(piece)))


def written_by(
    translator: Translator, runs: Sequence[Translation], layer: int, head: int
) -> list[DictionaryEntry]:
    """The source words that take most of a head's weight over several runs, and what they raise."""
    weight = Counter[str]()
    for run in runs:
        sums = recorded(run).weights(CROSS, layer)[head].sum(0).tolist()
        for piece, value in zip(run.source_tokens, sums, strict=True):
            weight[piece] += value * _is_word(piece)
    chosen = [piece for piece, value in weight.most_common(MOST) if value > 0]
    output = translator.model.projection[0].detach().float().cpu()
    total: dict[str, torch.Tensor] = defaultdict(lambda: torch.zeros(len(output)))
    inside: dict[str, list[Translation]] = defaultdict(list)
    for run in runs:
        places = [i for i, piece in enumerate(run.source_tokens) if piece in chosen]
        if places:
            found = raises(translator.model, run, layer, output, slice(head, head + 1))[0]
            for i in places:
                total[run.source_tokens[i]] += found[i]
            for piece in {run.source_tokens[i] for i in places}:
                inside[piece].append(run)
    entries = []
    for piece in chosen:
        best = total[piece].topk(FIRST).indices.tolist()
        texts = tuple(readable(each) for each in translator.pieces(best))
        hits = sum(best[0] in run.target_ids for run in inside[piece])
        entries.append(DictionaryEntry(readable(piece), texts, hits / len(inside[piece]), len(inside[piece])))
    return entries


def asked_for(runs: Sequence[Translation], layer: int, head: int) -> list[AskedWords]:
    """The rows with the largest weight on one word, a row for each token, and what their queries ask for."""
    records = [recorded(run).layer(CROSS, layer) for run in runs]
    keys = torch.cat([record.key[head] for record in records])
    pieces = [piece for run in runs for piece in run.source_tokens]
    rows: dict[str, tuple[float, torch.Tensor]] = {}
    for run, record in zip(runs, records, strict=True):
        weights = record.weights(head)
        for row, token in enumerate(run.target_tokens):
            most, key = weights[row].max(0)
            if not _is_word(token) or not _is_word(run.source_tokens[int(key)]):
                continue
            if float(most) > rows.get(token, (0.0, None))[0]:
                rows[token] = float(most), record.query[head, row]
    found = []
    for token, (_, query) in sorted(rows.items(), key=lambda each: -each[1][0])[:MOST]:
        order = (keys @ query).argsort(descending=True).tolist()
        words = dict.fromkeys(readable(pieces[i]) for i in order)
        found.append(AskedWords(readable(token), (*words,)[:FIRST]))
    return found
