"""From text to translation: the class that the app, the command line and most users call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Unpack

import torch

from transformer.beam import beam_search
from transformer.decoding import DecodingState, Hypothesis, SearchRules, decode, finish
from transformer.devices import AUTO, choose_device, named, placed
from transformer.equations import audited_tokens
from transformer.hooks import HookFunction
from transformer.hub.sources import open_model
from transformer.interventions import (
    Choose,
    Forbid,
    Intervention,
    InterventionError,
    Prefix,
    as_interventions,
)
from transformer.model import EncoderDecoder, count_parameters
from transformer.packed import convert
from transformer.requests import GivenOutput, Options, Request, answer, given_output
from transformer.run import DecodeStep, TranslatedText, Translation
from transformer.text.kinds import one_of
from transformer.text.sentences import sentences
from transformer.text.words import Group
from transformer.text_model import InputError, TextModel
from transformer.trace import Capture
from transformer.training.data import pad

TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class Translator(TextModel[EncoderDecoder]):
    """A model that translates, with its tokenizer; threads may share it."""

    NO_MEANS = (
        "This model has no mean outputs of its heads: measure them with `python -m explorer survey`, or "
        "ablate by zero."
    )
    TOO_LONG = "This text has {:,} tokens: longer than any text in this model's training ({:,})."
    CUT = "The output was cut at {:,} tokens, so it is incomplete."
    ENDED = "The output ended before this change could act: {}."

    def translate(
        self,
        text: str,  # up to 1,024 tokens, or the model's number of positions
        # 1 for greedy search, more for beam search (score Σ log p / length^α); None for the model's rules,
        # which say 1 for the models of this package
        beam_size: int | None = None,
        # most target tokens, ``</s>`` included; None for the limit in the model's rules, or if they set none,
        # 1.5 × source tokens + 10
        max_length: int | None = None,
        **options: Unpack[Options],
    ) -> Translation:
        """Translates one text.

        Raises:
            InputError: The text is empty or too long.
            InterventionError: A change does not fit the model or the text.
            ValueError: An option is out of range.
        """
        *_, translation = answer(self, text, beam_size, max_length, **options)
        assert isinstance(translation, Translation)
        return translation

    def stream(
        self,
        text: str,
        beam_size: int | None = None,
        max_length: int | None = None,
        **options: Unpack[Options],
    ) -> Iterator[DecodeStep | Translation]:
        """As ``translate``, but yields each step (in a beam: of the best hypothesis so far), and finally the
        translation."""
        yield from answer(self, text, beam_size, max_length, **options)

    def translate_text(
        self,
        text: str,
        beam_size: int | None = None,
        max_length: int | None = None,
        **options: Unpack[Options],
    ) -> TranslatedText:
        """Translates a text sentence by sentence; options and errors as in ``translate``."""
        parts = (self.translate(part, beam_size, max_length, **options) for part in self.sentences(text))
        return TranslatedText(tuple(parts))

    def force(
        self,
        text: str,
        target: str | Sequence[int] | Sequence[str],  # a text; or all of its tokens, ``</s>`` included
        capture: bool | Capture = True,
        hooks: Mapping[str, HookFunction] | None = None,
        # as in ``translate``; what chooses or forbids tokens must agree with the target
        interventions: Iterable[Intervention] = (),
    ) -> Translation:
        """Runs a given translation through the model, without decoding.

        Raises:
            InputError: A text is empty or too long.
            InterventionError: A change does not fit the model, the text or the target.
        """
        output, changes = self._output(text, target), as_interventions(interventions)
        written = list(zip(self.pieces(output.ids), output.ids, strict=True))
        for change in changes:
            if isinstance(change, Choose | Forbid | Prefix) and not audited_tokens([change], (), written):
                raise InterventionError(f"The given translation contradicts a change: {change}.")
        (run,) = answer(self, text, target=output, capture=capture, hooks=hooks or {}, interventions=changes)
        assert isinstance(run, Translation)
        return run

    def translate_all(
        self, texts: Sequence[str], beam_size: int | None = None, max_length: int | None = None
    ) -> list[str]:
        """Translates a padded batch without capture, for evaluation; raises as ``ids``."""
        return [self.text(each.token_ids) for each in self.hypotheses(texts, beam_size, max_length)]

    def hypotheses(
        self, texts: Sequence[str], beam_size: int | None = None, max_length: int | None = None
    ) -> tuple[Hypothesis, ...]:
        """The outputs of a padded batch, with their log-probabilities; raises as ``translate_all``."""
        by_rules: dict[SearchRules, list[int]] = {}  # texts into one language share a batch
        for place, text in enumerate(texts):
            by_rules.setdefault(self.rules_for(text), []).append(place)
        outputs: dict[int, Hypothesis] = {}
        for rules, places in by_rules.items():
            rows = [(*self.ids(texts[place]), self.config.eos_id) for place in places]
            limits = [self.limit(len(row), max_length) for row in rows]
            size = rules.beam_size if beam_size is None else beam_size
            done = self.computed(partial(self._searched, rows, limits, size, rules))
            outputs |= dict(zip(places, done, strict=True))
        return tuple(outputs[place] for place in range(len(texts)))

    def _searched(
        self, rows: Sequence[Sequence[int]], limits: Sequence[int], beam_size: int, rules: SearchRules
    ) -> tuple[Hypothesis, ...]:
        state = DecodingState(self.model, pad(rows, self.config.pad_id).to(self.device))
        if beam_size == 1:
            return finish(decode(state, limits, rules=rules))
        return finish(beam_search(state, limits, beam_size, rules))

    def sentences(self, text: str) -> tuple[str, ...]:
        """The sentences of a text, each after the language or the prompt that the text begins with.

        A text for a model that does not translate is one, and so is an empty text.
        """
        prompts: tuple[str, ...] = getattr(self.config, "prompt_texts", ())
        if getattr(self.config, "task", "translate") != "translate":
            return (text,)
        says = next(filter(text.startswith, prompts), "")
        while piece := next(filter(text[len(says) :].lstrip().startswith, self.config.language_pieces), ""):
            says = text[: text.index(piece, len(says)) + len(piece)]
        return sentences(text, says) or (text,)

    def ids(self, text: str) -> tuple[int, ...]:
        """Ids of a source text, without special tokens.

        InputError if the text is empty, has too many tokens, or does not name a target language although the
        model needs one.
        """
        return self.cut(text).ids

    def target_ids(self, text: str) -> tuple[int, ...]:
        """Ids of a translation, without special tokens; InputError if it is empty or has too many tokens."""
        return self.cut_target(text).ids

    def rules_for(self, text: str) -> SearchRules:
        """The model's rules, with the piece that the output for a text begins with; raises as ``ids``."""
        start = self.cut(text).start
        return self.rules if start is None else replace(self.rules, forced_start=start)

    def written_ids(self, source: str, target: str) -> tuple[int, ...]:
        """All ids of a translation of a text, as the model would write them; raises as ``target_ids``."""
        return self._output(source, target).ids

    def _output(self, source: str, target: str | Sequence[int] | Sequence[str]) -> GivenOutput:
        """A whole translation of a text, ``</s>`` included."""
        if not target and not isinstance(target, str):
            raise InputError("The translation is empty; give it at least one token.")
        return given_output(self, target, self.rules_for(source).forced_start)

    def unread(self, text: str) -> tuple[str, ...]:
        """What the vocabulary has no piece for in a source text, in sentences; raises as ``ids``."""
        return self.cut(text).notes()

    def words(self, text: str) -> tuple[Group, ...]:
        """The pieces of each word of a source text, separated by spaces as it was typed; as ``ids``."""
        return self.cut(text).groups()

    def target_words(self, text: str) -> tuple[Group, ...]:
        """The pieces of each word of a translation; as ``target_ids``."""
        return self.cut_target(text).groups()

    def limit(self, given_tokens: int, max_length: int | None = None) -> int:
        """Most target tokens for a source: as requested, as the rules say, or 1.5 × source tokens + 10.

        ValueError if ``max_length`` is out of range.
        """
        longest = self.config.max_positions
        if max_length is None:
            return min(self.rules.max_length or int(1.5 * given_tokens) + 10, longest)
        if not 1 <= max_length <= longest:
            raise ValueError(f"max_length is {max_length}; it must be from 1 to {longest:,}.")
        return max_length


EVERYTHING = Capture(residual=True)


def retrace(
    translator: Translator,  # the model that made the translation
    translation: Translation,  # made without hooks, and with any interventions; it is not changed
    capture: Capture = EVERYTHING,
) -> Translation:
    """The same translation with the trace of one pass over it, to record what the first run did not keep.

    The audit of the new trace compares its log-probabilities with those of the decode.

    Raises:
        InputError: The text is empty or too long for this model.
        InterventionError: A change of the translation does not fit this model.
    """
    ids, forced = translation.target_ids, translation.method == "forced"
    options: Options = {"capture": capture, "interventions": translation.interventions}
    target = given_output(translator, ids) if forced else None
    most = None if forced else translator.config.max_positions
    request = Request(translator, translation.source_text, 1, most, **options, target=target)
    return replace(translation, attention=request.replayed(ids, translation.log_probs).attention)


def branch(
    translator: Translator,  # the model that searched
    translation: Translation,  # the search, made with ``tree=True``
    node: int,  # place of the node in ``translation.tree.nodes``
    capture: Capture | None = None,  # what to record; None for attention
) -> Translation:
    """The run of a node of a search's tree: its hypothesis so far, through the model in one pass.

    The audit of its trace compares its log-probabilities with those of the search. IndexError if the tree has
    no such node; ValueError if the translation has no tree.
    """
    tree = translation.tree
    if tree is None:
        raise ValueError("This translation has no tree; translate with tree=True.")
    if not 0 <= node < len(tree.nodes):
        raise IndexError(f"There is no node {node}: the tree has {len(tree.nodes):,}, counted from 0.")
    ids, log_probs = tree.token_ids(node), tuple(tree.nodes[i].log_prob for i in tree.path(node))
    changes = tuple(reached(translation.interventions, len(ids)))
    options: Options = {"capture": capture or Capture(), "interventions": changes}
    request = Request(translator, translation.source_text, 1, translator.config.max_positions, **options)
    return replace(request.replayed(ids, log_probs, translation.method), notes=translator.notes)


def reached(changes: Sequence[Intervention], length: int) -> Iterator[Intervention]:
    """The changes of a run as they hold for the first ``length`` tokens of an output."""
    for change in changes:
        if isinstance(change, Choose) and change.step >= length:
            continue
        yield Prefix(change.token_ids[:length]) if isinstance(change, Prefix) else change


def load_translator(
    path: str | Path,  # a directory, or ``owner/model`` on the Hub, whose newest state is downloaded
    device: str | torch.device = AUTO,  # "auto" (see ``transformer.devices``), "cpu", "cuda", or PyTorch's
    dtype: str = "float32",  # or "bfloat16", which the translator's name then shows
    revision: str | None = None,  # branch, tag or commit on the Hub; the translator's name shows the commit
) -> Translator:
    """Opens a model: one that ``train`` wrote, a bundled one, a Marian model (OPUS-MT), or one on the Hub.

    Raises:
        CheckpointError: The model is missing, damaged, or of a kind that this package cannot open.
        ValueError: ``dtype`` is neither of the two, or there is no such device.
    """
    named(device)
    one_of(*TYPES).check("dtype", dtype)
    title, checkpoint = open_model(path, revision)
    model = checkpoint.translating
    place = choose_device(device, count_parameters(model))
    model, full = placed(lambda place: convert(model, place, TYPES[dtype]), place)
    return Translator(
        model,
        checkpoint.tokenizer,
        name=title + ("" if dtype == "float32" else f", {dtype}"),
        heads=checkpoint.heads,
        card=checkpoint.card,
        rules=checkpoint.rules,
        notes=(*checkpoint.notes, *full),
        means=checkpoint.means,
    )
