"""A student that learns from what a teacher wrote: sequence-level distillation (Kim and Rush 2016, 3.2).

The student has the teacher's encoder and embeddings, and a decoder with masked self-attention (section 3.2.3)
that begins as the teacher's decoder wherever both have the same part.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import torch
from torch import nn

from transformer.model.config import DecoderUnit, TransformerConfig
from transformer.model.layers import Residual
from transformer.model.sites import Sublayer
from transformer.model.transformer import Transformer
from transformer.text.pairs import SentencePair

_NUMBER = re.compile(r"\d+")
MOST_RATIO, LEAST_RATIO = 2.5, 0.4
REPEATS = 3
"""Number of repetitions in a row of a word, or a sequence of words, that make a text a stuck one."""


def student_config(
    teacher: TransformerConfig, n_decoder_layers: int, unit: DecoderUnit = "self_attention"
) -> TransformerConfig:
    """The teacher's sizes, with some number of decoder layers and what mixes positions in them."""
    return replace(teacher, decoder_unit=unit, n_decoder_layers=n_decoder_layers, trained_length=None)


def begin(student: Transformer, teacher: Transformer, fresh: bool = False) -> frozenset[str]:
    """Copies into a new student what it shares with the teacher, in place; the names of these weights.

    Both have one width, heads and pieces. The teacher's decoder layers are spread over the student's, the
    first and the last in their places, unless the student keeps fresh ones. Every other layer begins close to
    the identity: its sub-layers add nothing, and its LayerNorms have the mean and spread that the output of
    the teacher's layer before them has if its normalised values are independent.
    """
    own, given = student.state_dict(), teacher.state_dict()
    layers = student.config.n_decoder_layers
    places = {} if fresh else _places(layers, teacher.config.n_decoder_layers)
    unit = teacher.config.stacks["decoder"].sublayers[0]
    sources = {name: _source(name, places, unit) for name in own}
    taken = {name: given[source].clone() for name, source in sources.items() if source in given}
    student.load_state_dict(own | taken)
    for layer in set(range(layers)) - set(places) if places else ():
        before = Sublayer("decoder", max(place for place in places if place < layer), "feed_forward")
        _add_nothing(student.decoder.layers[layer], student.residual(before))
    return frozenset(taken)


def _places(layers: int, taught: int) -> dict[int, int]:
    """Maps layers of the student to those of the teacher."""
    return {index * (layers - 1) // max(1, taught - 1): index for index in range(min(layers, taught))}


def _source(name: str, places: Mapping[int, int], unit: str) -> str | None:
    """The teacher's name of a student's weight; None if no layer of the teacher has one."""
    found = re.fullmatch(r"decoder\.layers\.(\d+)\.(.*)", name)
    if found is None:
        return name
    layer = places.get(int(found[1]))
    return f"decoder.layers.{layer}.{found[2].replace('self_attention_residual', f'{unit}_residual')}"


@torch.no_grad()
def _add_nothing(layer: nn.Module, before: Residual) -> None:
    """Lets a new post-norm layer begin close to the identity; ``before`` is what its input comes from."""
    gain, shift = before.norm.weight, before.norm.bias
    assert shift is not None  # post-norm models have LayerNorm
    spread = (gain.square().mean() + shift.var(correction=0)).sqrt()
    for name, part in layer.named_modules():
        if name.endswith(("out_proj", "outer")):
            nn.init.zeros_(part.weight)
            nn.init.zeros_(part.bias)
        elif isinstance(part, nn.LayerNorm):
            nn.init.constant_(part.weight, float(spread))
            nn.init.constant_(part.bias, float(shift.mean()))


def learning_rates(
    names: Iterable[str],  # the student's weights
    taken: frozenset[str],  # those that the teacher had
    frozen: tuple[str, ...],  # beginnings of names of weights that stay as they are
    taken_rate: float,  # the factor for those that the teacher had
) -> dict[str, float]:
    """By name of a weight, its factor on the learning rate; 0 for a frozen one."""
    return {name: 0.0 if name.startswith(frozen) else taken_rate if name in taken else 1.0 for name in names}


def faithful(pairs: Iterable[SentencePair]) -> Iterator[SentencePair]:
    """The pairs whose target may be a translation of the source.

    Left out: copied sources, lengths that differ too much, other numbers, and repetitions that the source
    does not have.
    """
    for pair in pairs:
        source, target = pair.source.split(), pair.target.split()
        ratio = (len(pair.target) + 10) / (len(pair.source) + 10)
        if (
            LEAST_RATIO <= ratio <= MOST_RATIO
            and (len(source) < 4 or pair.source.casefold() != pair.target.casefold())
            and _numbers(pair.source) == _numbers(pair.target)
            and _stuck(target) <= max(REPEATS - 1, _stuck(source))
        ):
            yield pair


def _numbers(text: str) -> Counter[str]:
    """The digits of a text, whatever groups they stand in: 1,000.5 and 1.000,5 are alike."""
    return Counter("".join(_NUMBER.findall(text)))


def _stuck(words: list[str]) -> int:
    """Largest number of repetitions in a row of one to four words."""
    most = 1
    for width in range(1, 5):
        run = 0
        for first, second in zip(words, words[width:], strict=False):
            run = run + 1 if first == second else 0
            most = max(most, run // width + 1)
    return most
