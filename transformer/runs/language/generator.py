"""From a prompt to a text: the class that opens a causal language model and continues texts with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer.config import LanguageModelConfig
from transformer.decode.request import Continuation, numbers
from transformer.decode.rules import FREE, SearchRules
from transformer.decode.sampling import Sampling
from transformer.decode.steering import steered
from transformer.hooks import HookFunction, Hooks
from transformer.hub.sources import open_model
from transformer.interventions import (
    Choose,
    Intervention,
    InterventionError,
    OtherRun,
    Prefix,
    RunShape,
    as_interventions,
)
from transformer.model import LanguageModel, count_parameters
from transformer.packed import join_inputs, lay_out
from transformer.runs.answering import Answering
from transformer.runs.call import Call, Equipment, Run, given_text
from transformer.runs.devices import AUTO, choose_device, named, placed
from transformer.runs.language.generation import Generation
from transformer.runs.search import Search, with_penalty
from transformer.runs.translation import DecodeStep
from transformer.runs.wording import InputError, Wording
from transformer.storage.files import CheckpointError
from transformer.text.vocabulary import Vocabulary
from transformer.trace import Capture

LENGTH = 60
"""Most tokens of a text if the caller gives no number."""


class TextCall(Call[LanguageModel, Generation]):
    """A text to continue or to read, with its changes; raises as ``Call``."""

    no_means = "A language model has no mean outputs of its heads; ablate by zero."
    too_long = "This text has {:,} tokens: longer than any row in this model's training ({:,})."
    cut = "The text was cut at {:,} tokens."
    ended = "The text ended before this change could act: {}."

    def __init__(
        self,
        equipment: Equipment[LanguageModel],  # the generator's
        values: Sequence[Intervention],  # the changes
        hooks: Mapping[str, HookFunction],  # functions of Python that act in attention
        most: int,  # most tokens of the whole text
        given: int | None = None,  # number of tokens of a given text; None if it is to be continued
        prompt: tuple[str, int] = ("", 0),  # the prompt, and the number of its tokens
    ) -> None:
        super().__init__(equipment, values, hooks, RunShape(equipment.config, 0, 0, most, given))
        self._prompt = prompt

    def request(self, observer: Hooks | None, steps: Hooks | None) -> Continuation:
        first = torch.tensor([[self.equipment.config.bos_id]], device=self.equipment.device)
        return Continuation(self.equipment.model, first, steps)

    def record(self, request: Continuation, token_ids: Sequence[int], observer: Hooks | None) -> None:
        self.distributions(token_ids, observer)

    @torch.inference_mode()
    def distributions(self, token_ids: Sequence[int], observer: Hooks | None = None) -> Tensor:
        model, device = self.equipment.model, self.equipment.device
        ids = torch.tensor([[model.config.bos_id, *token_ids[:-1]]], device=device)
        features = model.features(ids, hooks=observer or self.observer())[0]
        return numbers(model.logits(features).float().log_softmax(-1))

    def call_of(self, run: OtherRun) -> TextCall:
        count = len(run.target or ())
        return TextCall(self.equipment, run.interventions, {}, count, count)

    def answer(self, **parts: Any) -> Generation:
        prompt, given = self._prompt
        return Generation(**parts, prompt=prompt, given=given)

    def trained_length_of(self, written: int) -> int:
        return written


class TextGenerator(Answering[LanguageModel]):
    """A language model with its tokenizer. Safe to share between threads: nothing in it changes but where it
    computes.

    Attributes:
        name: Name of the model.
        config: Its sizes.
        model: The network, in ``eval()`` mode.
        tokenizer: Its vocabulary.
        heads: Contents of ``heads.json``; None if the checkpoint has none.
        card: The model card, Markdown.
        rules: Its rules for the search.
    """

    def __init__(
        self,
        model: LanguageModel,
        tokenizer: Vocabulary,
        *,
        name: str = "model",
        heads: dict[str, Any] | None = None,
        card: str = "",
        rules: SearchRules = FREE,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.model = model.eval().requires_grad_(False)
        self.config: LanguageModelConfig = model.config
        self.tokenizer, self.name, self.heads, self.card, self.rules = tokenizer, name, heads, card, rules
        self._wording = Wording(tokenizer, self.config)
        self.equipment = Equipment(self.model, self._wording, name, notes)

    def generate(
        self,
        prompt: str = "",
        beam_size: int = 1,
        max_length: int = LENGTH,
        sample: Sampling | None = None,
        capture: bool | Capture = True,
        hooks: Mapping[str, HookFunction] | None = None,
        interventions: Iterable[Intervention] = (),
        length_penalty: float | None = None,
        tree: bool = False,
        length_offset: int | None = None,
    ) -> Generation:
        """Continues a text.

        Args:
            prompt: How the text begins; may be empty.
            beam_size: 1 for greedy search, more for beam search (score Σ log p / length^α over the whole
                text).
            max_length: Most tokens of the whole text, ``</s>`` included.
            sample: Draw tokens instead; only with ``beam_size=1``.
            capture: True, False, or a ``Capture`` that says what to record.
            hooks: Functions that change attention, by name, see ``transformer.hooks``.
            interventions: What to change in the run, see ``transformer.interventions``; steps and rows count
                from the start of the text, the prompt included.
            length_penalty: α of beam search; None for the model's rules, which say 1.
            tree: Whether ``Generation.tree`` keeps what the beam search looked at.
            length_offset: k of that score, as in ``Translator.translate``.

        Raises:
            InputError: The prompt is too long.
            InterventionError: A change does not fit the model or the prompt.
            ValueError: An option is out of range.
        """
        options = beam_size, max_length, sample, capture, hooks, interventions
        *_, generation = self.stream(prompt, *options, length_penalty, tree, length_offset)
        assert isinstance(generation, Generation)
        return generation

    def stream(
        self,
        prompt: str = "",
        beam_size: int = 1,
        max_length: int = LENGTH,
        sample: Sampling | None = None,
        capture: bool | Capture = True,
        hooks: Mapping[str, HookFunction] | None = None,
        interventions: Iterable[Intervention] = (),
        length_penalty: float | None = None,
        tree: bool = False,
        length_offset: int | None = None,
    ) -> Iterator[DecodeStep | Generation]:
        """As ``generate``, but yields each step (in a beam: of the best hypothesis so far), and finally the
        text. The first steps are those of the prompt."""
        changes = as_interventions(interventions)
        given = self.ids(prompt)
        self._check_length(max_length, len(given))
        own = with_penalty(self.rules, length_penalty, length_offset)
        rules = self._rules(changes, given, own)
        search = Search(beam_size, sample, rules, tree)
        prompted = self._wording.read(prompt), len(given)

        def answer() -> Iterator[DecodeStep | Generation]:
            call = TextCall(self.equipment, changes, hooks or {}, max_length, prompt=prompted)
            return Run(call, capture).searched(search, tree)

        yield from self.answered(answer)

    def force(
        self,
        text: str | Sequence[int] | Sequence[str],
        capture: bool | Capture = True,
        hooks: Mapping[str, HookFunction] | None = None,
        interventions: Iterable[Intervention] = (),
    ) -> Generation:
        """Runs a given text through the model in one pass: how probable is each of its tokens?

        Args:
            text: A text; or all of its tokens as ids or pieces, ``</s>`` included if it is to be read.
            capture: As in ``generate``.
            hooks: As in ``generate``.
            interventions: As in ``generate``.

        Raises:
            InputError: The text is empty or too long.
            InterventionError: A change does not fit the model or the text.
        """
        if not text and not isinstance(text, str):
            raise InputError("The text is empty; give it at least one token.")
        whole = given_text(self._wording, text)
        changes, count = as_interventions(interventions), len(whole.ids)
        prompt = self._wording.text(whole.ids), count

        def answer() -> Iterator[Generation]:
            call = TextCall(self.equipment, changes, hooks or {}, count, count, prompt)
            yield Run(call, capture).forced(whole)

        return next(self.answered(answer))

    def ids(self, prompt: str) -> tuple[int, ...]:
        """Ids of a prompt, without special tokens; none for an empty one.

        Raises:
            InputError: The prompt is too long.
        """
        return self._wording.cut_target(prompt).ids if self._wording.read(prompt) else ()

    def pieces(self, ids: Iterable[int]) -> tuple[str, ...]:
        """The pieces of ids, ``▁`` kept."""
        return self._wording.pieces(ids)

    def text(self, ids: Iterable[int]) -> str:
        """The plain text of ids, without special tokens."""
        return self._wording.text(ids)

    def _rules(self, changes: Sequence[Intervention], given: Sequence[int], own: SearchRules) -> SearchRules:
        """The rules of the search, which writes the prompt first."""
        for each in changes:
            if isinstance(each, Prefix) or (isinstance(each, Choose) and each.step < len(given)):
                raise InterventionError(f"The prompt decides its own tokens, so this cannot be done: {each}.")
        prompt = [Prefix(tuple(given))] if given else []
        return steered(own, [*prompt, *changes], self._wording.token_id, self.config.eos_id)

    def _check_length(self, max_length: int, given: int) -> None:
        longest = self.config.max_positions
        if not given < max_length <= longest:
            raise ValueError(f"max_length is {max_length}; it must be from {given + 1:,} to {longest:,}.")


def load_language_model(
    path: str | Path, device: str | torch.device = AUTO, revision: str | None = None
) -> TextGenerator:
    """Opens a language model: the bundled one, or one on the Hub.

    Args:
        path: A directory, or ``owner/model`` on the Hub, whose newest state is downloaded.
        device: As in ``load_translator``.
        revision: Branch, tag or commit on the Hub; the name shows the commit.

    Raises:
        CheckpointError: The model is missing or damaged, or it translates.
        ValueError: There is no such device.
    """
    named(device)
    name, checkpoint = open_model(path, revision)
    if not isinstance(checkpoint.model, LanguageModel):
        raise CheckpointError(f"{path} holds a model that translates; open it with load_translator.")
    model = checkpoint.model

    def put(place: torch.device) -> LanguageModel:
        model.to(place)
        lay_out(model)
        join_inputs(model)
        return model

    model, full = placed(put, choose_device(device, count_parameters(model)))
    heads, card = checkpoint.heads, checkpoint.card
    return TextGenerator(model, checkpoint.tokenizer, name=name, heads=heads, card=card, notes=full)
