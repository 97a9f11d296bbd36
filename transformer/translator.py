"""The models that a user opens: a network with its vocabulary, which translates or continues texts."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar, Unpack

import numpy as np
import torch

from transformer import interventions as do
from transformer.config import ModelConfig
from transformer.decoding import FREE, AnyModel, SearchRules
from transformer.devices import AUTO, FULL, choose_device, named, on_cpu
from transformer.equations import audited_tokens
from transformer.hooks import Capture
from transformer.hub.sources import open_model
from transformer.interventions import InterventionError, as_interventions
from transformer.model import LanguageModel, count_parameters
from transformer.packed import convert
from transformer.requests import Looking, Options, Request
from transformer.run import DecodeStep, Translation
from transformer.storage.files import CheckpointError
from transformer.text.kinds import one_of
from transformer.text.sentences import joined, sentences
from transformer.text.tokenizer import TokenizedText, Vocabulary
from transformer.text.typed import CleanText
from transformer.text.words import UNK, unknown_text

T = TypeVar("T")
TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
Tokens = str | Sequence[int] | Sequence[str]
"""A text, or all of its tokens as ids or pieces."""
MAX_SOURCE_TOKENS = 1024
_leaving = threading.Lock()


class InputError(ValueError):
    """A text that cannot be translated; the message says why in one sentence."""


class TranslatedText(NamedTuple):
    """A text of several sentences, each a run."""

    runs: tuple[Translation, ...]
    text: str  # the translations in one line
    # sentences for the reader, each after the number of its sentence if there are several
    notes: tuple[str, ...]

    @classmethod
    def of(cls, runs: Iterable[Translation]) -> Self:
        """The text of some runs."""
        runs = tuple(runs)
        numbered = ((f"Sentence {i}: ", note) for i, run in enumerate(runs, start=1) for note in run.notes)
        notes = tuple(place * (len(runs) > 1) + note for place, note in numbered)
        return cls(runs, joined(run.text for run in runs), notes)


def _unknown(token: object) -> bool:
    """Whether a token is named by the text for which there is no piece."""
    return isinstance(token, str) and unknown_text(token) is not None


class Translator:
    """A network with its vocabulary: it translates, or as a language model continues a prompt.

    Safe to share between threads: nothing in it changes but where it computes. A GPU that has no memory left
    is left for the CPU; those that compute meanwhile end on the GPU.
    """

    model: Any  # an ``EncoderDecoder`` or a ``LanguageModel``, which the caller knows
    config: ModelConfig

    def __init__(
        self,
        model: AnyModel,
        tokenizer: Vocabulary,
        *,
        name: str = "model",
        heads: dict[str, Any] | None = None,  # contents of ``heads.json``
        card: str = "",  # the model card, Markdown
        rules: SearchRules = FREE,  # the model's own rules for the search
        notes: tuple[str, ...] = (),  # sentences for the reader of every run
        means: do.HeadMeans | None = None,  # mean outputs of the heads, for ``ablate(…, by="mean")``
    ) -> None:
        self.model, self.config, self.tokenizer = model, model.config, tokenizer
        model.eval().requires_grad_(False)
        self.continues = isinstance(model, LanguageModel)
        self.name, self.heads, self.card = name, heads, card
        self.rules, self.notes, self.means = rules, notes, means

    @property
    def device(self) -> torch.device:
        """The device on which the model computes."""
        device: torch.device = self.model.embedding.weight.device
        return device

    def computed(self, compute: Callable[[], Iterable[T]]) -> Iterator[T]:
        """What a function computes; all of it again, on the CPU, if the GPU has no memory left."""
        try:
            yield from compute()
        except torch.OutOfMemoryError:
            if not self.leave_gpu():
                raise
            yield from compute()

    def leave_gpu(self) -> bool:
        """Whether the model was on a GPU; it computes on the CPU from now on, as each answer's notes say."""
        with _leaving:
            left = self.device.type != "cpu"
            if left:
                model = on_cpu(self.model)
                self.notes = (*self.notes, FULL)  # before the model: who takes that one has the note
                self.model = model
        return left

    def cut(self, text: str, side: str = "source") -> TokenizedText:
        """A source, a prompt, or an output ("target"), in pieces, without special tokens.

        InputError if it has too many tokens, or none (a prompt may); and a source if it does not name a
        target language although the model needs one.
        """
        if not isinstance(text, str):
            raise TypeError(f"The text is {type(text).__name__}; it must be a string.")
        written, prompt = self.continues or side == "target", self.continues and side == "source"
        cut = (self.tokenizer.target if written else self.tokenizer).cut(text)
        languages = () if written else self.config.language_pieces
        named = bool(languages) and not {*languages}.isdisjoint(self.pieces(cut.ids[:1], "source"))
        tokens, most = len(cut.ids) - named + 1, min(MAX_SOURCE_TOKENS, self.config.max_positions)
        what = "translation" if side == "target" and not self.continues else "text"
        unpaired = bool(languages) and self.config.language_pair and cut.start is None
        several = f"{len(languages)} languages; begin the text"
        refusals = {
            f"This model knows {several} with the one that it is in and the one that you want, such as "
            f"{' '.join(languages[:2])}.": unpaired,
            f"This model translates into {several} with the one you want, such as "
            f"{' or '.join(languages[:3])}.": len(languages) > 1 and not named,
            f"The {what} is empty; type a sentence.": tokens == 1 and not prompt,
            f"The {what} has {tokens:,} tokens; shorten it to at most {most:,}.": tokens > most,
        }
        for sentence, holds in refusals.items():
            if holds:
                raise InputError(sentence)
        return cut

    def output(self, text: Tokens | None, source: str | None = None) -> TokenizedText:
        """A whole output with its special tokens, ``</s>`` too, and with the piece that an output for this
        source begins with; raises as ``cut`` and ``token_id``."""
        starts = () if source is None else (self.cut(source).start, self.rules.forced_start)
        first = tuple(each for each in starts if each is not None)[:1]
        if isinstance(text, str):
            cut = self.cut(text, "target")
            ids = (*first, *cut.ids, self.config.eos_id)
            return replace(cut, ids=ids, pieces=(*self.pieces(first), *cut.pieces, *self.pieces(ids[-1:])))
        if not text:
            what = "text" if self.continues else "translation"
            raise InputError(f"The {what} is empty; give it at least one token.")
        ids = tuple(map(self.token_id, text))
        named = zip(text, self.pieces(ids), strict=True)
        pieces = tuple(str(token) if _unknown(token) else piece for token, piece in named)
        return TokenizedText(CleanText("", ()), ids, pieces, (), (), ())

    def ids(self, text: str) -> tuple[int, ...]:
        """Ids of a source or a prompt, without special tokens; raises as ``cut``."""
        return self.cut(text).ids

    def pieces(self, ids: Iterable[int], side: str = "target") -> tuple[str, ...]:
        """The pieces of target or source ids, ``▁`` kept."""
        return (self.tokenizer.source if side == "source" else self.tokenizer.target).named(ids)

    def text(self, ids: Iterable[int]) -> str:
        """The plain text of target ids, without special tokens."""
        return self.tokenizer.target.decode(ids).strip()

    def token_id(self, token: do.Token, side: str = "target") -> int:
        """The id of a target or source token; InterventionError if the vocabulary has no such token."""
        known = self._numbers[side]
        if isinstance(token, str):
            name = token if unknown_text(token) is None else UNK
            if name in known:
                return known[name]
            raise InterventionError(f"The model's {side} vocabulary has no token {token!r:.60}.")
        count = self.config.vocab_size if side == "source" else self.config.n_target_pieces
        if isinstance(token, int | np.integer) and not isinstance(token, bool) and 0 <= token < count:
            return int(token)
        raise InterventionError(
            f"The model's {side} vocabulary has {count:,} tokens; there is no id {token!r:.40}."
        )

    @cached_property
    def _numbers(self) -> dict[str, dict[str, int]]:
        """Ids by piece on each side; of several ids with one piece, the first."""
        counts = {"source": self.config.vocab_size, "target": self.config.n_target_pieces}
        return {
            side: {piece: i for i, piece in reversed([*enumerate(self.pieces(range(count), side))])}
            for side, count in counts.items()
        }

    def stream(
        self, text: str = "", output: TokenizedText | None = None, **options: Unpack[Options]
    ) -> Iterator[DecodeStep | Translation]:
        """As ``translate``, but yields each step (in a beam: of the best hypothesis so far), and last the
        run; all of them again, made on the CPU, if the GPU has no memory left."""
        if options.get("interventions"):
            options["interventions"] = as_interventions(options["interventions"])
        yield from self.computed(lambda: Request(self, text, output, **options).run())

    def translate(self, text: str = "", **options: Unpack[Options]) -> Translation:
        """Translates a text of up to 1,024 tokens; a language model continues a prompt, which may be empty.

        Raises as ``Request``.
        """
        *_, run = self.stream(text, **options)
        assert isinstance(run, Translation)
        return run

    generate = translate

    def force(
        self,
        text: Tokens,  # the source, a text; for a language model the whole text, as ``target``
        target: Tokens | None = None,  # a text; or all of its tokens, ``</s>`` included
        **options: Unpack[Looking],
    ) -> Translation:
        """Runs a given output through the model in one pass, without decoding: how probable is each token?

        Raises as ``Request``; InterventionError, too, if a change contradicts the output.
        """
        if self.continues == (target is not None):
            takes = "a language model takes one text" if self.continues else "a source needs its translation"
            raise TypeError(f"force reads a whole output: {takes}.")
        source: Any = "" if target is None else text
        output = self.output(text if target is None else target, source)
        options["interventions"] = changes = as_interventions(options.get("interventions", ()))
        written = list(zip(self.pieces(output.ids), output.ids, strict=True))
        for each in changes:
            steers = isinstance(each, do.Choose | do.Forbid | do.Prefix)
            if steers and not audited_tokens([each], (), written):
                given = "text" if self.continues else "translation"
                raise InterventionError(f"The given {given} contradicts a change: {each}.")
        (run,) = self.stream(source, output, **options)
        assert isinstance(run, Translation)
        return run

    def translate_text(self, text: str, **options: Unpack[Options]) -> TranslatedText:
        """Translates a text sentence by sentence; options and errors as in ``translate``."""
        return TranslatedText.of(self.translate(part, **options) for part in self.sentences(text))

    def sentences(self, text: str) -> tuple[str, ...]:
        """The sentences of a text, each after the language or the prompt that the text begins with.

        A text for a model that does not translate is one, and so is an empty text.
        """
        if self.config.task != "translate":
            return (text,)
        says = next(filter(text.startswith, self.config.prompt_texts), "")
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
        where = ", ".join(translation.functions)
        raise ValueError(
            f"Functions changed this run ({where}), and no trace repeats them: run it with them."
        )
    ids, log_probs, changes = translation.target_ids, translation.log_probs, translation.interventions
    output = translator.output(ids) if translation.method == "forced" else None
    if node is not None:
        if (tree := translation.tree) is None:
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
        return replace(again, notes=translator.notes, prompt=translation.prompt, n_given=translation.n_given)
    # a batch's padding is left out
    names = ("source_tokens", "decoder_input_tokens", "target_tokens", "attention")
    return replace(translation, **{name: getattr(again, name) for name in names})


def reached(changes: Sequence[do.Intervention], length: int) -> Iterator[do.Intervention]:
    """The changes of a run as they hold for the first ``length`` tokens of an output."""
    for change in changes:
        if not isinstance(change, do.Choose) or change.step < length:
            yield do.Prefix(change.token_ids[:length]) if isinstance(change, do.Prefix) else change


def load_translator(
    path: str | Path,  # a directory, or ``owner/model`` on the Hub, whose newest state is downloaded
    device: str | torch.device = AUTO,  # "auto" (see ``transformer.devices``), "cpu", "cuda", or PyTorch's
    dtype: str = "float32",  # or "bfloat16", which the translator's name then shows
    revision: str | None = None,  # branch, tag or commit on the Hub; the translator's name shows the commit
    *,
    continues: bool = False,  # whether it must be a language model
) -> Translator:
    """Opens a model: one that ``train`` wrote, a bundled one, a Marian model (OPUS-MT), or one on the Hub.

    It computes on the CPU, with a note, if the GPU has no room for it.

    Raises:
        CheckpointError: The model is missing, damaged, or of a kind that this package cannot open.
        ValueError: ``dtype`` is neither of the two, or there is no such device.
    """
    named(device)
    one_of(*TYPES).check("dtype", dtype)
    title, checkpoint = open_model(path, revision)
    if continues and not isinstance(checkpoint.model, LanguageModel):
        raise CheckpointError(f"{path} holds a model that translates; open it with load_translator.")
    model: Any = checkpoint.model if continues else checkpoint.translating
    place, notes = choose_device(device, count_parameters(model)), checkpoint.notes
    try:
        model = convert(model, place, TYPES[dtype])
    except torch.OutOfMemoryError:
        if place.type == "cpu":
            raise
        model, notes = convert(model, torch.device("cpu"), TYPES[dtype]), (*notes, FULL)
    name = title + ("" if dtype == "float32" else f", {dtype}")
    parts = {each: getattr(checkpoint, each) for each in ("heads", "card", "rules", "means")}
    return Translator(model, checkpoint.tokenizer, name=name, notes=notes, **parts)


def load_language_model(
    path: str | Path, device: str | torch.device = AUTO, revision: str | None = None
) -> Translator:
    """Opens a language model; as ``load_translator``."""
    return load_translator(path, device, revision=revision, continues=True)
