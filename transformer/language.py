"""From a prompt to a text: a causal language model continues texts, and says how probable they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from transformer.batches import in_batches
from transformer.config import LanguageModelConfig
from transformer.devices import AUTO, choose_device, named, placed
from transformer.hooks import HookFunction
from transformer.hub.sources import open_model
from transformer.interventions import Intervention
from transformer.interventions.edits import Change
from transformer.model import LanguageModel, count_parameters
from transformer.packed import join_inputs, lay_out
from transformer.requests import Options, answer, given_output
from transformer.run import DecodeStep, Generation
from transformer.storage.files import CheckpointError
from transformer.text_model import InputError, TextModel
from transformer.trace import Capture, hooks_of
from transformer.training.data import pad

LENGTH = 60
"""Most tokens of a text if the caller gives no number."""


class TextGenerator(TextModel[LanguageModel]):
    """A language model with its tokenizer; threads may share it."""

    config: LanguageModelConfig
    NO_MEANS = "A language model has no mean outputs of its heads; ablate by zero."
    TOO_LONG = "This text has {:,} tokens: longer than any row in this model's training ({:,})."
    CUT = "The text was cut at {:,} tokens."
    ENDED = "The text ended before this change could act: {}."

    def generate(
        self,
        prompt: str = "",  # how the text begins; may be empty
        # 1 for greedy search, more for beam search (score Σ log p / length^α over the whole text)
        beam_size: int = 1,
        max_length: int = LENGTH,  # most tokens of the whole text, ``</s>`` included
        **options: Unpack[Options],  # steps and rows count from the start of the text, the prompt included
    ) -> Generation:
        """Continues a text.

        Raises:
            InputError: The prompt is too long.
            InterventionError: A change does not fit the model or the prompt.
            ValueError: An option is out of range.
        """
        *_, generation = self.stream(prompt, beam_size, max_length, **options)
        assert isinstance(generation, Generation)
        return generation

    def stream(
        self, prompt: str = "", beam_size: int = 1, max_length: int = LENGTH, **options: Unpack[Options]
    ) -> Iterator[DecodeStep | Generation]:
        """As ``generate``, but yields each step (in a beam: of the best hypothesis so far), and finally the
        text. The first steps are those of the prompt."""
        for part in answer(self, prompt, beam_size, max_length, **options):
            assert isinstance(part, DecodeStep | Generation)
            yield part

    def force(
        self,
        text: str
        | Sequence[int]
        | Sequence[str],  # a text; or all of its tokens, ``</s>`` if it is to be read
        capture: bool | Capture = True,
        hooks: Mapping[str, HookFunction] | None = None,
        interventions: Iterable[Intervention] = (),
    ) -> Generation:
        """Runs a given text through the model in one pass: how probable is each of its tokens?

        Raises:
            InputError: The text is empty or too long.
            InterventionError: A change does not fit the model or the text.
        """
        if not text and not isinstance(text, str):
            raise InputError("The text is empty; give it at least one token.")
        output = given_output(self, text)
        (run,) = answer(self, target=output, capture=capture, hooks=hooks or {}, interventions=interventions)
        assert isinstance(run, Generation)
        return run

    def ids(self, prompt: str) -> tuple[int, ...]:
        """Ids of a prompt, without special tokens, none for an empty one; InputError if it is too long."""
        return self.cut_target(prompt).ids if self.tokenizer.read(prompt) else ()

    def limit(self, given_tokens: int, max_length: int | None = None) -> int:
        """Most tokens of a text that begins with so many; ValueError if ``max_length`` is out of range."""
        longest = self.config.max_positions
        most = LENGTH if max_length is None else max_length
        if not given_tokens < most <= longest:
            raise ValueError(f"max_length is {most}; it must be from {given_tokens + 1:,} to {longest:,}.")
        return most


@torch.inference_mode()
def log_probs(
    generator: TextGenerator,
    texts: Sequence[str],  # not empty; a text has at most ``max_positions`` tokens
    changes: Sequence[Intervention] = (),  # changes of heads that hold in every text; nothing computed first
) -> NDArray[np.float64]:
    """(texts,) natural logs of the probabilities of whole texts, ``</s>`` included.

    InputError if a text is empty or too long.
    """
    model, config = generator.model, generator.config
    rows = [generator.ids(text) for text in texts]

    def compute(places: list[int]) -> list[float]:
        read = pad([(config.bos_id, *rows[place]) for place in places], config.pad_id).to(generator.device)
        wanted = pad([(*rows[place], config.eos_id) for place in places], -100).to(generator.device)
        hooks = hooks_of(config, None, [Change(each) for each in changes])
        logits = model.logits(model.features(read, hooks=hooks)).float()
        losses = F.cross_entropy(logits.transpose(1, 2), wanted, reduction="none", ignore_index=-100)
        sums: list[float] = (-losses.sum(1)).tolist()
        return sums

    return np.array(in_batches([len(row) + 1 for row in rows], compute, shortest_first=True), np.float64)


def perplexity(log_probs: NDArray[np.float64], units: Sequence[int]) -> float:
    """Perplexity of sentences: ln p of each, its end included, and its words or pieces without the end.

    Per word it is exp(−Σ ln p(sentence) / (words + sentences)). White space separates the words of the raw
    text; each sentence also has an end, which is predicted too. So models with different pieces can be
    compared. p(sentence) is the probability of the one way in which the vocabulary splits the sentence; the
    other ways would add to it, so the figure is an upper bound. Per piece it divides by pieces + sentences.
    """
    return float(np.exp(-log_probs.sum() / (sum(units) + len(units))))


def load_language_model(
    path: str | Path,  # a directory, or ``owner/model`` on the Hub, whose newest state is downloaded
    device: str | torch.device = AUTO,  # as in ``load_translator``
    revision: str | None = None,  # branch, tag or commit on the Hub; the name shows the commit
) -> TextGenerator:
    """Opens a language model: the bundled one, or one on the Hub.

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
