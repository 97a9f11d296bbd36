"""The models that a user opens: one that translates, and one that continues texts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, Unpack

import torch

from transformer import requests
from transformer.config import LanguageModelConfig
from transformer.decoding import DecodingState, Hypothesis
from transformer.devices import AUTO, FULL, choose_device, named
from transformer.hub.sources import open_model
from transformer.interventions import Choose, Intervention, Prefix
from transformer.model import EncoderDecoder, LanguageModel, Network, count_parameters
from transformer.packed import convert
from transformer.requests import Options, Request
from transformer.run import Translation
from transformer.storage.directory import Checkpoint
from transformer.storage.files import CheckpointError
from transformer.text.kinds import one_of
from transformer.text.sentences import joined, sentences
from transformer.text_model import TextModel
from transformer.trace import Capture
from transformer.training.data import pad

M = TypeVar("M")
TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class TranslatedText:
    """A text of several sentences, each a run."""

    runs: tuple[Translation, ...]

    @property
    def text(self) -> str:
        """The translations in one line."""
        return joined([run.text for run in self.runs])

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the reader, each after the number of its sentence if there are several."""
        several = len(self.runs) > 1
        numbered = ((i, note) for i, run in enumerate(self.runs, start=1) for note in run.notes)
        return tuple(f"Sentence {i}: {note}" if several else note for i, note in numbered)


class TextGenerator(TextModel[LanguageModel]):
    """A language model with its tokenizer; threads may share it."""

    config: LanguageModelConfig
    generate, stream, force = requests.translate, requests.stream, requests.force


class Translator(TextModel[EncoderDecoder]):
    """A model that translates, with its tokenizer; threads may share it."""

    translate, stream, force = requests.translate, requests.stream, requests.force

    def translate_text(self, text: str, **options: Unpack[Options]) -> TranslatedText:
        """Translates a text sentence by sentence; options and errors as in ``translate``."""
        return TranslatedText(tuple(self.translate(part, **options) for part in self.sentences(text)))

    def translate_all(
        self, texts: Sequence[str], beam_size: int | None = None, max_length: int | None = None
    ) -> list[str]:
        """Translates a padded batch without capture, for evaluation; raises as ``ids``."""
        return [self.text(each.token_ids) for each in self.hypotheses(texts, beam_size, max_length)]

    def hypotheses(
        self, texts: Sequence[str], beam_size: int | None = None, max_length: int | None = None
    ) -> tuple[Hypothesis, ...]:
        """The outputs of a padded batch, with their log-probabilities; raises as ``translate_all``."""
        wanted = [Request(self, text, beam_size=beam_size, max_length=max_length) for text in texts]
        outputs: dict[int, Hypothesis] = {}
        for rules in dict.fromkeys(each.rules for each in wanted):  # texts into one language share a batch
            places = [place for place, each in enumerate(wanted) if each.rules == rules]
            done = self.computed(partial(self._searched, [wanted[place] for place in places]))
            outputs |= dict(zip(places, done, strict=True))
        return tuple(outputs[place] for place in range(len(texts)))

    def _searched(self, wanted: Sequence[Request]) -> list[Hypothesis]:
        source = pad([each.source_ids for each in wanted], self.config.pad_id).to(self.device)
        results: list[Hypothesis] = []
        deque(
            wanted[0].search(DecodingState(self.model, source), [each.limit for each in wanted], results), 0
        )
        return results

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


def retrace(
    translator: Translator,  # the model that made the translation
    translation: Translation,  # made without hooks, and with any interventions; it is not changed
    capture: Capture | None = None,  # what to record; None for everything
) -> Translation:
    """The same translation with the trace of one pass over it, to record what the first run did not keep.

    The audit of the new trace compares its log-probabilities with those of the decode. InputError or
    InterventionError if the text or a change of the translation does not fit this model.
    """
    options: Options = {
        "capture": capture or Capture(residual=True),
        "interventions": translation.interventions,
    }
    output = translator.output(translation.target_ids) if translation.method == "forced" else None
    if output is None:
        options |= {"beam_size": 1, "max_length": translator.config.max_positions}
    request = Request(translator, translation.source_text, output, **options)
    again = request.replayed(translation.target_ids, translation.log_probs)
    return replace(translation, attention=again.attention)


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
    options: Options = {"beam_size": 1, "max_length": translator.config.max_positions}
    options |= {
        "capture": capture or True,
        "interventions": tuple(reached(translation.interventions, len(ids))),
    }
    request = Request(translator, translation.source_text, **options)
    return replace(request.replayed(ids, log_probs, translation.method), notes=translator.notes)


def reached(changes: Sequence[Intervention], length: int) -> Iterator[Intervention]:
    """The changes of a run as they hold for the first ``length`` tokens of an output."""
    for change in changes:
        if not isinstance(change, Choose) or change.step < length:
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
    return _placed(Translator, checkpoint.translating, checkpoint, title, device, dtype)


def load_language_model(
    path: str | Path, device: str | torch.device = AUTO, revision: str | None = None
) -> TextGenerator:
    """Opens a language model; as ``load_translator``."""
    named(device)
    title, checkpoint = open_model(path, revision)
    if not isinstance(checkpoint.model, LanguageModel):
        raise CheckpointError(f"{path} holds a model that translates; open it with load_translator.")
    return _placed(TextGenerator, checkpoint.model, checkpoint, title, device)


def _placed(
    sort: Callable[..., M],
    model: Network,
    checkpoint: Checkpoint,
    title: str,
    device: Any,
    dtype: str = "float32",
) -> M:
    """A checkpoint's model where it computes: on the CPU, with a note, if the GPU has no room for it."""
    place, full = choose_device(device, count_parameters(model)), tuple[str, ...]()
    try:
        model = convert(model, place, TYPES[dtype])
    except torch.OutOfMemoryError:
        if place.type == "cpu":
            raise
        model, full = convert(model, torch.device("cpu"), TYPES[dtype]), (FULL,)
    return sort(
        model,
        checkpoint.tokenizer,
        name=title + ("" if dtype == "float32" else f", {dtype}"),
        heads=checkpoint.heads,
        card=checkpoint.card,
        rules=checkpoint.rules,
        notes=(*checkpoint.notes, *full),
        means=checkpoint.means,
    )
