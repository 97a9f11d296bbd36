"""The models that a user opens: a network with its vocabulary, which translates or continues texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import torch

from transformer.decoding import AnyModel
from transformer.devices import AUTO, FULL, choose_device, named
from transformer.equations import audited_tokens
from transformer.hooks import Capture
from transformer.hub.sources import open_model
from transformer.interventions import (
    Choose,
    Forbid,
    Intervention,
    InterventionError,
    Prefix,
    as_interventions,
)
from transformer.model import LanguageModel, count_parameters
from transformer.packed import convert
from transformer.requests import Looking, Options, Request
from transformer.run import DecodeStep, Translation
from transformer.storage.directory import Checkpoint
from transformer.storage.files import CheckpointError
from transformer.text.kinds import one_of
from transformer.text.sentences import joined, sentences
from transformer.text.tokenizer import TokenizedText
from transformer.text_model import TextModel, Tokens

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


class Translator(TextModel):
    """A model that translates, or a language model that continues texts; threads may share it."""

    def translate(self, text: str = "", **options: Unpack[Options]) -> Translation:
        """Translates a text of up to 1,024 tokens; a language model continues a prompt, which may be empty.

        Raises:
            InputError: The text is empty or too long.
            InterventionError: A change does not fit the model or the text.
            ValueError: An option is out of range.
        """
        *_, run = self.stream(text, **options)
        assert isinstance(run, Translation)
        return run

    generate = translate

    def stream(
        self,
        text: str = "",
        output: TokenizedText | None = None,  # the output, if it is given: then there are no steps
        **options: Unpack[Options],
    ) -> Iterator[DecodeStep | Translation]:
        """As ``translate``, but yields each step (in a beam: of the best hypothesis so far), and last the
        run; all of them again, made on the CPU, if the GPU has no memory left."""
        if "interventions" in options:
            options["interventions"] = as_interventions(options["interventions"])
        try:
            yield from Request(self, text, output, **options).run()
        except torch.OutOfMemoryError:
            if not self.leave_gpu():
                raise
            yield from Request(self, text, output, **options).run()

    def force(
        self,
        text: Tokens,  # the source, a text; for a language model the whole text, as ``target``
        target: Tokens | None = None,  # a text; or all of its tokens, ``</s>`` included
        **options: Unpack[Looking],
    ) -> Translation:
        """Runs a given output through the model in one pass, without decoding: how probable is each token?

        Raises:
            InputError: A text is empty or too long.
            InterventionError: A change does not fit the model or its texts, or contradicts the output.
        """
        if self.continues == (target is not None):
            takes = "a language model takes one text" if self.continues else "a source needs its translation"
            raise TypeError(f"force reads a whole output: {takes}.")
        source, target = ("", text) if target is None else (text, target)
        if not isinstance(source, str):
            raise TypeError(f"The text is {type(source).__name__}; it must be a string.")
        output = self.output(target, source)
        options["interventions"] = changes = as_interventions(options.get("interventions", ()))
        written = list(zip(self.pieces(output.ids), output.ids, strict=True))
        for each in changes:
            steers = isinstance(each, Choose | Forbid | Prefix)
            if steers and not audited_tokens([each], (), written):
                raise InterventionError(f"The given translation contradicts a change: {each}.")
        (run,) = self.stream(source, output, **options)
        assert isinstance(run, Translation)
        return run

    def translate_text(self, text: str, **options: Unpack[Options]) -> TranslatedText:
        """Translates a text sentence by sentence; options and errors as in ``translate``."""
        return TranslatedText(tuple(self.translate(part, **options) for part in self.sentences(text)))

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
    translation: Translation,  # made with any interventions; it is not changed
    capture: Capture | None = None,  # what to record; None for everything
    node: int | None = None,  # place of a node in ``translation.tree.nodes``; None for the translation
) -> Translation:
    """The same translation with the trace of one pass over it, to record what the first run did not keep; or
    the run of a node of the search's tree: its hypothesis so far, in one pass.

    The audit of the new trace compares its log-probabilities with those of the decode.

    Raises:
        InputError, InterventionError: The text or a change of the translation does not fit this model.
        ValueError: A user's functions changed the run; or it has no tree.
        IndexError: The tree has no such node.
    """
    if translation.functions:
        names = ", ".join(translation.functions)
        raise ValueError(
            f"Functions changed this run ({names}), and no trace repeats them: run it with them."
        )
    ids, log_probs, changes = translation.target_ids, translation.log_probs, translation.interventions
    output = translator.output(ids) if translation.method == "forced" else None
    if node is not None:
        tree = translation.tree
        if tree is None:
            raise ValueError("This translation has no tree; translate with tree=True.")
        if not 0 <= node < len(tree.nodes):
            raise IndexError(f"There is no node {node}: the tree has {len(tree.nodes):,}, counted from 0.")
        ids, log_probs = tree.token_ids(node), tuple(tree.nodes[i].log_prob for i in tree.path(node))
        changes = tuple(reached(changes, len(ids)))
    options: Options = {"capture": capture or Capture(residual=True), "interventions": changes}
    if output is None:
        options |= {"beam_size": 1, "max_length": translator.config.max_positions}
    request = Request(translator, translation.source_text, output, **options)
    again = request.replayed(ids, log_probs, translation.method)
    if node is not None:
        return replace(again, notes=translator.notes)
    return replace(
        translation,
        source_tokens=again.source_tokens,  # without the padding of a batch
        decoder_input_tokens=again.decoder_input_tokens,
        target_tokens=again.target_tokens,
        attention=again.attention,
    )


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
    return _placed(checkpoint.translating, checkpoint, title, device, dtype)


def load_language_model(
    path: str | Path, device: str | torch.device = AUTO, revision: str | None = None
) -> Translator:
    """Opens a language model; as ``load_translator``."""
    named(device)
    title, checkpoint = open_model(path, revision)
    if not isinstance(checkpoint.model, LanguageModel):
        raise CheckpointError(f"{path} holds a model that translates; open it with load_translator.")
    return _placed(checkpoint.model, checkpoint, title, device)


def _placed(
    model: AnyModel, checkpoint: Checkpoint, title: str, device: Any, dtype: str = "float32"
) -> Translator:
    """A checkpoint's model where it computes: on the CPU, with a note, if the GPU has no room for it."""
    place, full = choose_device(device, count_parameters(model)), tuple[str, ...]()
    try:
        model = convert(model, place, TYPES[dtype])
    except torch.OutOfMemoryError:
        if place.type == "cpu":
            raise
        model, full = convert(model, torch.device("cpu"), TYPES[dtype]), (FULL,)
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
