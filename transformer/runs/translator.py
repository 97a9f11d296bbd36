"""From text to translation: the class that the app, the command line and most users call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer.config import ModelConfig
from transformer.decode.replay import replay, reread
from transformer.decode.request import TranslationRequest
from transformer.decode.rules import FREE, SearchRules
from transformer.decode.sampling import Sampling
from transformer.decode.steering import steered
from transformer.decode.steps import Hypothesis, finish
from transformer.equations import audited_tokens
from transformer.hooks import HookFunction, Hooks
from transformer.hub.sources import open_model
from transformer.interventions import (
    Choose,
    DropSource,
    EditSource,
    Forbid,
    HeadMeans,
    Intervention,
    InterventionError,
    OtherRun,
    Prefix,
    RunShape,
    as_interventions,
    edited,
)
from transformer.model import EncoderDecoder, count_parameters
from transformer.packed import convert
from transformer.runs import coverage
from transformer.runs.answering import Answering
from transformer.runs.call import Call, Equipment, Given, Run, given_text
from transformer.runs.devices import AUTO, choose_device, named, placed
from transformer.runs.search import Search, with_penalty
from transformer.runs.translation import DecodeStep, TranslatedText, Translation
from transformer.runs.wording import InputError, Wording
from transformer.text.kinds import one_of
from transformer.text.sentences import sentences
from transformer.text.typed import PiecedText
from transformer.text.vocabulary import Vocabulary
from transformer.text.words import Group
from transformer.trace import AttentionTrace, Capture
from transformer.training.data import pad

NO_MEANS = (
    "This model has no mean outputs of its heads: measure them with `python -m explorer survey`, or ablate "
    "by zero."
)
TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class TranslationCall(Call[EncoderDecoder, Translation]):
    """A text to translate, with its changes.

    Raises:
        InputError: The text is empty or too long.
        InterventionError: A change does not fit the request.
        ValueError: A hook acts on no attention of the model.
    """

    no_means = NO_MEANS
    too_long = "This text has {:,} tokens: longer than any text in this model's training ({:,})."
    cut = "The output was cut at {:,} tokens, so it is incomplete."
    ended = "The output ended before this change could act: {}."

    def __init__(
        self,
        equipment: Equipment[EncoderDecoder],  # the translator's
        text: str,  # the source
        values: Sequence[Intervention],  # the changes
        hooks: Mapping[str, HookFunction],  # functions of Python that act in attention
        length: Callable[[int], int],  # number of source tokens → most tokens of the output
        given: int | None = None,  # number of tokens of a given output; None if it is to be decoded
    ) -> None:
        wording, config = equipment.wording, equipment.config
        cut = wording.cut(text)
        typed = [*zip(cut.ids, cut.pieces, strict=True), *_tokens(wording, config.eos_id)]
        source = len(typed) - sum(isinstance(each, DropSource) for each in values)
        super().__init__(
            equipment, values, hooks, RunShape(config, len(typed), source, length(source), given)
        )
        edits = [each for each in values if isinstance(each, EditSource)]
        names = {each: _tokens(wording, wording.source_id(each.token))[0] for each in edits}
        self.source_ids, self.source_tokens = zip(*edited(typed, values, names), strict=True)
        self.source_text, self.unread = cut.read.text, cut.notes()

    def request(self, observer: Hooks | None, steps: Hooks | None) -> TranslationRequest:
        ids = torch.tensor([self.source_ids], device=self.equipment.device)
        return TranslationRequest(self.equipment.model, ids, observer, steps)

    def record(self, request: TranslationRequest, token_ids: Sequence[int], observer: Hooks | None) -> None:
        reread(request.model, request.memory, token_ids, hooks=observer)

    def distributions(self, token_ids: Sequence[int], observer: Hooks | None = None) -> Tensor:
        watching = observer or self.observer()
        request = self.request(watching, watching)
        return replay(request.model, request.memory, token_ids, hooks=watching)

    def call_of(self, run: OtherRun) -> TranslationCall:
        most, given = self.equipment.config.max_positions, 1 if run.target is None else len(run.target)
        return TranslationCall(self.equipment, run.text, run.interventions, {}, lambda _: most, given)

    def answer(self, **parts: Any) -> Translation:
        return Translation(**parts)

    def left_out(self, ids: Sequence[int], trace: AttentionTrace | None) -> tuple[str, ...]:
        config = self.equipment.config
        if getattr(config, "task", "translate") != "translate" or ids[-1] != config.eos_id:
            return ()
        first = self._instructions()
        read, written = len(self.source_ids) - 1 - first, len(ids) - 1
        usual = coverage.SHORT * read <= written <= coverage.LONG * read

        def unread() -> float | None:
            if trace is None and (usual or self.hooks):  # one more pass only where the length asks for it
                return None
            found = self.recorded(ids, Capture()) if trace is None else trace
            return coverage.unread(found, first, first + read)

        return (coverage.NOTE,) if coverage.leaves_out(read, written, unread) else ()

    def _instructions(self) -> int:
        """How many source tokens say what to do: those that name languages, or a prompt."""
        config, wording = self.equipment.config, self.equipment.wording
        prompts: tuple[str, ...] = getattr(config, "prompt_texts", ())
        prompt = next(filter(self.source_text.startswith, prompts), "")
        if prompt:
            return len(wording.cut(prompt).ids)
        return len(list(takewhile(config.language_pieces.__contains__, self.source_tokens)))

    def trained_length_of(self, written: int) -> int:
        return len(self.source_ids)


def _tokens(wording: Wording, *ids: int) -> list[tuple[int, str]]:
    """Source ids, each with its piece."""
    return list(zip(ids, wording.source_pieces(ids), strict=True))


class Translator(Answering[EncoderDecoder]):
    """A model with its tokenizer. Safe to share between threads: nothing in it changes but where it computes.

    Attributes:
        name: Name of the model.
        config: Its sizes.
        model: The network, in ``eval()`` mode.
        tokenizer: Its vocabulary.
        heads: Contents of ``heads.json``; None if the checkpoint has none.
        card: The model card, Markdown.
        rules: The model's own rules for the search.
        notes: Sentences for the reader of every translation.
        means: Mean outputs of the heads, for ``ablate(…, by="mean")``; None if the model has none.
        equipment: What every request is given of these.
    """

    def __init__(
        self,
        model: EncoderDecoder,
        tokenizer: Vocabulary,
        *,
        name: str = "model",
        heads: dict[str, Any] | None = None,
        card: str = "",
        rules: SearchRules = FREE,
        notes: tuple[str, ...] = (),
        means: HeadMeans | None = None,
    ) -> None:
        self.model = model.eval().requires_grad_(False)
        self.config: ModelConfig = model.config
        self.tokenizer, self.name, self.heads, self.card = tokenizer, name, heads, card
        self.rules, self.notes, self.means = rules, notes, means
        self._wording = Wording(tokenizer, self.config)
        self.equipment = Equipment(self.model, self._wording, name, notes, means)

    def translate(
        self,
        text: str,
        beam_size: int | None = None,
        max_length: int | None = None,
        sample: Sampling | None = None,
        capture: bool | Capture = True,
        hooks: Mapping[str, HookFunction] | None = None,
        interventions: Iterable[Intervention] = (),
        length_penalty: float | None = None,
        tree: bool = False,
        length_offset: int | None = None,
    ) -> Translation:
        """Translates one text.

        Args:
            text: Up to 1,024 tokens, or the model's number of positions.
            beam_size: 1 for greedy search, more for beam search (score Σ log p / length^α); None for the
                model's rules, which say 1 for the models of this package.
            max_length: Most target tokens, ``</s>`` included; None for the limit in the model's rules, or if
                they set none, 1.5 × source tokens + 10.
            sample: Draw tokens instead; only with ``beam_size=1``.
            capture: True, False, or a ``Capture`` that says what to record.
            hooks: Functions that change attention, by name, see ``transformer.hooks``.
            interventions: What to change in the run, see ``transformer.interventions``.
            length_penalty: α of beam search; None for the model's rules, which say 1 for the models of this
                package.
            tree: Whether ``Translation.tree`` keeps what the beam search looked at.
            length_offset: k of the score Σ log p / ((k + length) / (k + 1))^α: 5 for the formula of Wu et
                al. (2016); None for the model's rules, which say 0.

        Raises:
            InputError: The text is empty or too long.
            InterventionError: A change does not fit the model or the text.
            ValueError: An option is out of range.
        """
        options = beam_size, max_length, sample, capture, hooks, interventions
        *_, translation = self.stream(text, *options, length_penalty, tree, length_offset)
        assert isinstance(translation, Translation)
        return translation

    def translate_text(self, text: str, **options: Any) -> TranslatedText:
        """Translates a text sentence by sentence; options and errors as in ``translate``."""
        return TranslatedText(tuple(self.translate(each, **options) for each in self.sentences(text)))

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

    def stream(
        self,
        text: str,
        beam_size: int | None = None,
        max_length: int | None = None,
        sample: Sampling | None = None,
        capture: bool | Capture = True,
        hooks: Mapping[str, HookFunction] | None = None,
        interventions: Iterable[Intervention] = (),
        length_penalty: float | None = None,
        tree: bool = False,
        length_offset: int | None = None,
    ) -> Iterator[DecodeStep | Translation]:
        """As ``translate``, but yields each step (in a beam: of the best hypothesis so far), and finally the
        translation."""
        changes = as_interventions(interventions)
        own = with_penalty(self.rules_for(text), length_penalty, length_offset)
        rules = steered(own, changes, self._wording.token_id, self.config.eos_id)
        search = Search(self._beam_size(beam_size, sample), sample, rules, tree)

        def answer() -> Iterator[DecodeStep | Translation]:
            call = TranslationCall(
                self.equipment, text, changes, hooks or {}, lambda source: self.limit(source, max_length)
            )
            return Run(call, capture).searched(search, tree)

        yield from self.answered(answer)

    def force(
        self,
        text: str,
        target: str | Sequence[int] | Sequence[str],
        capture: bool | Capture = True,
        hooks: Mapping[str, HookFunction] | None = None,
        interventions: Iterable[Intervention] = (),
    ) -> Translation:
        """Runs a given translation through the model, without decoding.

        Args:
            text: The source.
            target: The translation: a text; or all of its tokens as ids or pieces, ``</s>`` included.
            capture: As in ``translate``.
            hooks: As in ``translate``.
            interventions: As in ``translate``. What chooses or forbids tokens must agree with the target.

        Raises:
            InputError: A text is empty or too long.
            InterventionError: A change does not fit the model, the text or the target.
        """
        given = self._target(target, self._start(self._wording.cut(text)))
        changes = as_interventions(interventions)
        self._check_written(changes, given.ids)
        count = len(given.ids)

        def answer() -> Iterator[Translation]:
            call = TranslationCall(self.equipment, text, changes, hooks or {}, lambda _: count, count)
            yield Run(call, capture).forced(given)

        return next(self.answered(answer))

    def translate_all(
        self, texts: Sequence[str], beam_size: int | None = None, max_length: int | None = None
    ) -> list[str]:
        """Translates a padded batch without capture, for evaluation.

        Raises:
            InputError: A text is empty or too long.
        """
        found = self.hypotheses(texts, beam_size, max_length)
        return [self.text(hypothesis.token_ids) for hypothesis in found]

    def hypotheses(
        self, texts: Sequence[str], beam_size: int | None = None, max_length: int | None = None
    ) -> tuple[Hypothesis, ...]:
        """The outputs of a padded batch, with their log-probabilities; raises as ``translate_all``."""
        if not texts:
            return ()
        cuts = [self._wording.cut(text) for text in texts]
        starts = [self._start(cut) for cut in cuts]
        found: dict[int, Hypothesis] = {}
        for start in dict.fromkeys(starts):  # texts into one language share a batch
            places = [place for place, each in enumerate(starts) if each == start]
            rows = [(*cuts[place].ids, self.config.eos_id) for place in places]
            done = self._searched(rows, replace(self.rules, forced_start=start), beam_size, max_length)
            found |= dict(zip(places, done, strict=True))
        return tuple(found[place] for place in range(len(texts)))

    def _searched(
        self, rows: Sequence[Sequence[int]], rules: SearchRules, beam_size: int | None, max_length: int | None
    ) -> tuple[Hypothesis, ...]:
        limits = [self.limit(len(row), max_length) for row in rows]
        search = Search(self._beam_size(beam_size), None, rules, False)

        def answer() -> Iterator[tuple[Hypothesis, ...]]:
            request = TranslationRequest(self.model, pad(rows, self.config.pad_id).to(self.device))
            yield finish(search.decoding(request, limits))

        return next(self.answered(answer))

    def ids(self, text: str) -> tuple[int, ...]:
        """Ids of a source text, without special tokens.

        Raises:
            InputError: The text is empty, has too many tokens, or does not name a target language although
                the model needs one.
        """
        return self._wording.cut(text).ids

    def target_ids(self, text: str) -> tuple[int, ...]:
        """Ids of a translation, without special tokens.

        Raises:
            InputError: The translation is empty or has too many tokens.
        """
        return self._wording.cut_target(text).ids

    def rules_for(self, text: str) -> SearchRules:
        """The model's rules, with the piece that the output for a text begins with; raises as ``ids``."""
        return replace(self.rules, forced_start=self._start(self._wording.cut(text)))

    def written_ids(self, source: str, target: str) -> tuple[int, ...]:
        """All ids of a translation of a text, as the model would write them; raises as ``target_ids``."""
        return self._target(target, self._start(self._wording.cut(source))).ids

    def unread(self, text: str) -> tuple[str, ...]:
        """What the vocabulary has no piece for in a source text, in sentences; raises as ``ids``."""
        return self._wording.cut(text).notes()

    def words(self, text: str) -> tuple[Group, ...]:
        """The pieces of each word of a source text, separated by spaces as it was typed; as ``ids``."""
        return self._wording.cut(text).groups()

    def target_words(self, text: str) -> tuple[Group, ...]:
        """The pieces of each word of a translation; as ``target_ids``."""
        return self._wording.cut_target(text).groups()

    def source_pieces(self, ids: Iterable[int]) -> tuple[str, ...]:
        """The pieces of source ids, ``▁`` kept."""
        return self._wording.source_pieces(ids)

    def pieces(self, ids: Iterable[int]) -> tuple[str, ...]:
        """The pieces of target ids, ``▁`` kept."""
        return self._wording.pieces(ids)

    def text(self, ids: Iterable[int]) -> str:
        """The plain text of ids, without special tokens."""
        return self._wording.text(ids)

    def limit(self, source_length: int, max_length: int | None = None) -> int:
        """Most target tokens for a source: as requested, as the rules say, or 1.5 × source tokens + 10.

        Raises:
            ValueError: ``max_length`` is out of range.
        """
        longest = self.config.max_positions
        if max_length is None:
            return min(self.rules.max_length or int(1.5 * source_length) + 10, longest)
        if not 1 <= max_length <= longest:
            raise ValueError(f"max_length is {max_length}; it must be from 1 to {longest:,}.")
        return max_length

    def _start(self, source: PiecedText) -> int | None:
        """Id of the piece that an output begins with: as its source says, or the model's rules."""
        return self.rules.forced_start if source.start is None else source.start

    def _target(self, target: str | Sequence[int] | Sequence[str], start: int | None = None) -> Given:
        """A whole target, ``</s>`` included, and before a text the piece that it begins with."""
        if not target and not isinstance(target, str):
            raise InputError("The translation is empty; give it at least one token.")
        return given_text(self._wording, target, start)

    def _check_written(self, changes: Sequence[Intervention], target_ids: Sequence[int]) -> None:
        written = list(zip(self.pieces(target_ids), target_ids, strict=True))
        for each in changes:
            if isinstance(each, Choose | Forbid | Prefix) and not audited_tokens([each], (), written):
                raise InterventionError(f"The given translation contradicts a change: {each}.")

    def _beam_size(self, beam_size: int | None, sample: Sampling | None = None) -> int:
        if beam_size is not None:
            return beam_size
        return self.rules.beam_size if sample is None else 1


def load_translator(
    path: str | Path, device: str | torch.device = AUTO, dtype: str = "float32", revision: str | None = None
) -> Translator:
    """Opens a model: one that ``train`` wrote, a bundled one, a Marian model (OPUS-MT), or one on the Hub.

    Args:
        path: A directory, or ``owner/model`` on the Hub, whose newest state is downloaded.
        device: "auto" (see ``transformer.runs.devices``), "cpu", "cuda" or a device of PyTorch.
        dtype: "float32", or "bfloat16", which the translator's name then shows.
        revision: Branch, tag or commit on the Hub; the translator's name shows the commit.

    Raises:
        CheckpointError: The model is missing, damaged, or of a kind that this package cannot open.
        ValueError: ``dtype`` is neither of the two, or there is no such device.
    """
    named(device)
    one_of(*TYPES).check("dtype", dtype)
    title, checkpoint = open_model(path, revision)
    model = checkpoint.translating
    chosen = choose_device(device, count_parameters(model))
    model, full = placed(lambda place: convert(model, place, TYPES[dtype]), chosen)
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
