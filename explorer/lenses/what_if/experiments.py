"""The ten ready experiments: question, sentence, changes by what `heads.json` says, what they leave
open."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import transformer.interventions as do
from explorer.lenses.words.groups import find_word
from transformer.config import AttentionKind, Head
from transformer.interventions import Intervention
from transformer.reader import InputError
from transformer.run import Translation
from transformer.translator import Translator

Variants = dict[str, tuple[Intervention, ...]]
"""Changes by what they are called beside each other."""


@dataclass(frozen=True)
class Bench:
    """Source of the places of an experiment; InputError if a sentence or a model has no such
    place."""

    translator: Translator  # the model
    heads: Mapping[str, Any]  # what `heads.json` says of it
    text: str  # the sentence

    @cached_property
    def base(self) -> Translation:
        """The model's translation of the sentence, made when a place in it is asked for."""
        return self.translator.translate(self.text, capture=False)

    @property
    def aligner(self) -> list[Head]:
        """The head of cross-attention that aligns best, or the heads whose mean does."""
        best = self.heads.get("aligner", {}).get("heads") or [self.heads["default"]["cross"]]
        return [(layer, head) for layer, head in best]

    def layers(self, kind: str) -> range:
        """The layers, from 0, that have a kind of attention."""
        site = self.translator.config.sites.get(AttentionKind(kind))
        if site is None:
            raise InputError(f"The model has no {kind} self-attention.")
        return range(site.n_layers)

    def word(self, word: str, pieces: Sequence[str] | None = None) -> list[int]:
        """Positions, from 0, of the pieces of a word among those of a text; by default, of the
        source."""
        known = (
            self.translator.pieces(self.translator.ids(self.text), "source")
            if pieces is None
            else pieces
        )
        if (ends := find_word(known, word)) is None:
            raise InputError(f"The word “{word}” is not among the pieces {' '.join(known)}.")
        return list(range(ends[0], ends[1] + 1))

    def step(self, word: str) -> int:
        """The step, from 0, that writes the first piece of a word."""
        return self.word(word, self.base.target_tokens)[0]


class Experiment(NamedTuple):
    """A question to a model."""

    name: str  # its name in files
    question: str  # the question
    text: str  # the sentence
    variants: Callable[[Bench], Variants]  # the changes that ask it; several if they are compared
    not_proved: str  # what the answer does not prove
    forced: bool = False  # whether the changes hold only if the translation is given

    def put(self, translator: Translator, heads: Mapping[str, Any]) -> tuple[Variants, str | None]:
        """The changes that ask a model, and the translation to give; ValueError without its word or
        place."""
        on = Bench(translator, heads, self.text)
        return self.variants(on), on.base.text if self.forced else None


SISTER = "The woman who wrote the book is my sister."
BITES = "The dog bites the man."
SHE, HE = "My sister is a teacher.", "My brother is a teacher."

EXPERIMENTS = (
    Experiment(
        "aligner",
        "Remove the head that seems to align: does the model still translate?",
        SISTER,
        lambda on: {"mean": tuple(do.ablate("cross", *head, by="mean") for head in on.aligner)},
        (
            "An unchanged translation does not show that this head did nothing: others can do the "
            "same work."
        ),
    ),
    Experiment(
        "subject",
        "Hide a word from cross-attention: who bites whom?",
        BITES,
        lambda on: {
            f"without “{word}”": tuple(map(do.hide, on.word(word))) for word in ("dog", "man")
        },
        (
            "The encoder still read the word and may have passed some of it on. So it is hidden, "
            "not gone."
        ),
    ),
    Experiment(
        "future",
        "Let the decoder see the future: does it copy the next word?",
        SISTER,
        lambda on: {"mask lifted": (do.mask("decoder", allow="future"),)},
        (
            "This model never saw a later word in training. One trained without the mask would "
            "learn to copy."
        ),
        forced=True,
    ),
    Experiment(
        "positions",
        "Take the positions away: does the model still know the order of the words?",
        BITES,
        lambda on: {side: (do.no_positions(side),) for side in ("encoder", "decoder")},
        "The causal mask still counts the words written. And a model trained without positions "
        "manages with less: see Positions.",
    ),
    Experiment(
        "gender",
        "Give the gender of one sentence to another: which word carries it?",
        HE,
        lambda on: {
            f"“{word}”": (do.patch(do.encoder_output(), do.run(SHE), on.word(word)),)
            for word in ("brother", "teacher")
        },
        "The patch carries all that the encoder made of this word, not its gender alone.",
    ),
    Experiment(
        "article",
        "Choose another article: does the rest of the sentence follow?",
        "She wants to buy a new car tomorrow.",
        lambda on: {"einen": (do.choose(on.step("ein"), "▁einen"),)},
        (
            "The model goes on from any token it is given. It does not show that it considered "
            "this one."
        ),
    ),
    Experiment(
        "off",
        "Switch off all self-attention of the encoder: is zero the same as the mean?",
        SISTER,
        lambda on: {
            by: tuple(do.ablate("encoder", layer, None, by=by) for layer in on.layers("encoder"))
            for by in ("zero", "mean")
        },
        "Neither is the only right way: the mean leaves what a head gives to every sentence, but "
        "comes from other sentences.",
    ),
    Experiment(
        "network",
        "Drop a feed-forward network of the decoder: which one is missed?",
        SISTER,
        lambda on: {
            f"layer {i + 1}": (do.drop_sublayer("decoder", i, "feed_forward"),)
            for i in on.layers("decoder")
        },
        "Later layers get an input that they never saw in training. Part of the damage is theirs.",
    ),
    Experiment(
        "temperature",
        "Sharpen or blur the last layer of cross-attention: does it matter how sharply it looks?",
        SISTER,
        lambda on: {
            name: (do.temperature("cross", on.layers("cross")[-1], None, by),)
            for name, by in (("sharp", 0.1), ("blurred", 10.0))
        },
        "A blurred head still gives something: nearly the mean of all values.",
    ),
    Experiment(
        "layer",
        "Switch off all cross-attention of a layer: which layer reads the source?",
        SISTER,
        lambda on: {
            f"layer {i + 1}": (do.ablate("cross", i, None, by="mean"),)
            for i in on.layers("decoder")
        },
        "The other layers still read the source. The shares of the layers do not add up.",
    ),
)
"""The ten questions, in the order of the page."""
