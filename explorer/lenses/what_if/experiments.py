"""The ready experiments: question, text, changes by what a model has, what they leave open.

Ten are for models that translate, ten for those that continue a text."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

import transformer.interventions as do
from explorer.lenses.words.groups import find_word
from transformer.config import AttentionKind, Head
from transformer.interventions import Intervention
from transformer.interventions.words import LATER
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
        """The model's output for the text, made when a place in it is asked for.

        Of a text that is continued, one token more, with its attention.
        """
        if not self.translator.continues:
            return self.translator.translate(self.text, capture=False)
        length = self.translator.prompt_steps(self.text) + 1
        return self.translator.translate(self.text, max_length=length)

    @property
    def read(self) -> Sequence[str]:
        """The tokens of a text that is continued, as its queries and keys count them."""
        return self.base.decoder_input_tokens[: self.base.n_given + 1]

    def later(self, word: str) -> tuple[Intervention, ...]:
        """Hides the pieces of a word in a text from all later tokens."""
        places = self.word(word, self.read)
        return (do.mask("decoder", forbid=[(LATER, place) for place in places]),)

    def some_layers(self) -> dict[str, int]:
        """The first, the middle and the last decoder layer, from 0, by their names."""
        last = self.layers("decoder")[-1]
        return {f"layer {layer + 1}": layer for layer in sorted({0, last // 2, last})}

    def copying_head(self) -> Head:
        """The head that puts most weight from the last token on what followed it before.

        InputError if the token occurs only once.
        """
        *before, last = self.read
        earlier = [place for place, token in enumerate(before) if token == last]
        if not earlier:
            raise InputError(f"The last token, {last}, occurs only once.")
        weights = np.stack([self.base.trace.weights("decoder", i) for i in self.layers("decoder")])
        copied = weights[:, :, len(before), earlier[-1] + 1]
        layer, head = np.unravel_index(copied.argmax(), copied.shape)
        return int(layer), int(head)

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
    # the kinds of attention of the models that are asked
    kinds: tuple[str, ...] = ("encoder", "decoder", "cross")

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


FRANCE = "The capital of France is"
SISTER_ILL, BROTHER_ILL = "My sister is ill, so", "My brother is ill, so"
AGAIN = "Tom likes Mary. Mary likes"
BOOKS = "The books on the table"
_ALONE = ("decoder",)


def _same_place(on: Bench, word: str, other: str, second: str) -> tuple[Intervention, ...]:
    """A word's embedding put in the place of another, in texts that differ in it alone."""
    here = on.word(word, on.read)
    there = Bench(on.translator, on.heads, second)
    if here != there.word(other, there.read):
        raise InputError(f"“{word}” and “{other}” stand in different places.")
    return (do.patch(do.embeddings("decoder"), there.base, here),)


CONTINUED = (
    Experiment(
        "word",
        "Replace a word where the model first reads it: does the pronoun follow?",
        SISTER_ILL,
        lambda on: {"brother": _same_place(on, "sister", "brother", BROTHER_ILL)},
        "The model continues as if the other word had been typed, because every layer reads it.",
        kinds=_ALONE,
    ),
    Experiment(
        "fact",
        "Hide a word from later tokens: which one does the answer rest on?",
        FRANCE,
        lambda on: {f"without “{word}”": on.later(word) for word in ("capital", "France")},
        "The tokens between have read nothing of it either, so all ways are cut, not one.",
        kinds=_ALONE,
    ),
    Experiment(
        "induction",
        "Switch off the head that looks at what followed before: does the repetition stop?",
        AGAIN,
        lambda on: {
            "this head": (do.ablate("decoder", *on.copying_head()),),
            "its layer": (do.ablate("decoder", on.copying_head()[0], None),),
        },
        "Other heads can copy too; and to look at a token is not yet to write it.",
        kinds=_ALONE,
    ),
    Experiment(
        "sink",
        "Hide the first token from all later ones: is it only a place to rest?",
        BOOKS,
        lambda on: {"hidden": (do.mask("decoder", forbid=[(LATER, 0)]),)},
        "The weight must go elsewhere, so every head reads more of the others than it learned to.",
        kinds=_ALONE,
    ),
    Experiment(
        "order",
        "Take the positions away: does the model still know the order of the words?",
        AGAIN,
        lambda on: {"no positions": (do.no_positions("decoder"),)},
        "The causal mask still counts the tokens read. And a model trained without positions "
        "manages with less: see Positions.",
        kinds=_ALONE,
    ),
    Experiment(
        "feed-forward",
        "Drop a feed-forward network: which one is missed?",
        FRANCE,
        lambda on: {
            name: (do.drop_sublayer("decoder", layer, "feed_forward"),)
            for name, layer in on.some_layers().items()
        },
        "Later layers get an input that they never saw in training. Part of the damage is theirs.",
        kinds=_ALONE,
    ),
    Experiment(
        "attention",
        "Switch off all heads of a layer: which layer is missed?",
        BOOKS,
        lambda on: {
            name: (do.ablate("decoder", layer, None),) for name, layer in on.some_layers().items()
        },
        "The other layers still read the text. What the layers do does not add up.",
        kinds=_ALONE,
    ),
    Experiment(
        "sharpness",
        "Sharpen or blur the last layer: does it matter how sharply it looks?",
        BOOKS,
        lambda on: {
            name: (do.temperature("decoder", on.layers("decoder")[-1], None, by),)
            for name, by in (("sharp", 0.1), ("blurred", 10.0))
        },
        "A blurred head still gives something: nearly the mean of all values.",
        kinds=_ALONE,
    ),
    Experiment(
        "second",
        "Choose the second token: does the rest of the text follow?",
        BOOKS,
        lambda on: {
            "second": (do.choose(on.base.n_given, on.base.steps[-1].alternatives[1].token_id),)
        },
        "The model goes on from any token it is given. It does not show that it considered this "
        "one.",
        kinds=_ALONE,
    ),
    Experiment(
        "forbidden",
        "Forbid the token that it would write: does it say the same in other words?",
        FRANCE,
        lambda on: {"forbidden": (do.forbid(on.base.target_ids[-1]),)},
        "Only this token is forbidden; another spelling of the same word is not.",
        kinds=_ALONE,
    ),
)
"""Ten questions for models that continue a text."""
