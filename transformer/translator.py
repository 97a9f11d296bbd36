"""The models that a user opens: a network with its vocabulary, which translates, continues or only
reads texts."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar, Unpack

import torch

from transformer import interventions as do
from transformer.config import Task
from transformer.decoding import FREE, AnyModel, SearchRules
from transformer.devices import AUTO, FULL, choose_device, named, on_cpu
from transformer.equations import audited_tokens
from transformer.hooks import Capture
from transformer.hub.sources import open_model
from transformer.interventions import InterventionError, as_interventions
from transformer.model import EncoderModel, LanguageModel, count_parameters
from transformer.packed import convert
from transformer.reader import READS_ONLY, Reader, Tokens
from transformer.requests import Looking, Options, Request
from transformer.run import DecodeStep, Translation
from transformer.storage.files import CheckpointError
from transformer.text.chat import Message, render, roles_of
from transformer.text.kinds import one_of
from transformer.text.sentences import joined, sentences
from transformer.text.tokenizer import TokenizedText, Vocabulary
from transformer.text.typed import without_surrogates

T = TypeVar("T")
TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
_leaving = threading.Lock()


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
        numbered = (
            (f"Sentence {i}: ", note) for i, run in enumerate(runs, start=1) for note in run.notes
        )
        notes = tuple(place * (len(runs) > 1) + note for place, note in numbered)
        return cls(runs, joined(run.text for run in runs), notes)


class Translator(Reader):
    """A network with its vocabulary: it translates, or as a language model continues a prompt.

    Safe to share between threads: nothing in it changes but where it computes. A GPU that has no
    memory left is left for the CPU; those that compute meanwhile end on the GPU.
    """

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
        # mean outputs of the heads, for ``ablate(…, by="mean")``
        means: do.HeadMeans | None = None,
        chat_template: str = "",  # what turns a conversation into a text
    ) -> None:
        super().__init__(model, tokenizer, name=name, rules=rules, notes=notes, means=means)
        self.heads = heads
        self.card = card
        self.chat_template = chat_template

    @property
    def device(self) -> torch.device:
        """The device on which the model computes."""
        return self.model.embedding.weight.device

    def computed(self, compute: Callable[[], Iterable[T]]) -> Iterator[T]:
        """What a function computes; all of it again, on the CPU, if the GPU has no memory left."""
        try:
            yield from compute()
        except torch.OutOfMemoryError:
            if not self.leave_gpu():
                raise
            yield from compute()

    def leave_gpu(self) -> bool:
        """Whether the model was on a GPU; it computes on the CPU from now on, as each answer's
        notes say."""
        with _leaving:
            left = self.device.type != "cpu"
            if left:
                model = on_cpu(self.model)
                # before the model: who takes that one has the note
                self.notes = (*self.notes, FULL)
                self.model = model
        return left

    def stream(
        self, text: str = "", output: TokenizedText | None = None, **options: Unpack[Options]
    ) -> Iterator[DecodeStep | Translation]:
        """As ``translate``, but yields each step (in a beam: of the best hypothesis so far), and
        last the run; all of them again, made on the CPU, if the GPU has no memory left."""
        if options.get("interventions"):
            options["interventions"] = as_interventions(options["interventions"])
        yield from self.computed(lambda: Request(self, text, output, **options).run())

    def translate(self, text: str = "", **options: Unpack[Options]) -> Translation:
        """Translates a text of up to 1,024 tokens; a language model continues a prompt, which may
        be empty; an encoder alone reads the text, and fills its masks.

        Raises as ``Request``.
        """
        *_, run = self.stream(text, **options)
        assert isinstance(run, Translation)
        return run

    def generate(
        self,
        text: str = "",
        *,
        chat: Sequence[Message] | None = None,  # a conversation, instead of a text
        **options: Unpack[Options],
    ) -> Translation:
        """Continues a prompt, or answers a conversation, whose tokens then have roles.

        Raises as ``Request``; ChatError if the model has no chat template, or it fails.
        """
        if chat is None:
            return self.translate(text, **options)
        return self.with_roles(self.translate(self.prompted(chat), **options), chat)

    def fill(self, text: str, **options: Unpack[Looking]) -> Translation:
        """Reads a text, some of whose words are masked: ``run.fills`` has what an encoder alone
        predicts for each, ``run.text`` the text with the most probable ones.

        Raises as ``Request``; TypeError if the model is no encoder alone.
        """
        if self.config.writes:
            raise TypeError("This model writes; only an encoder alone fills masked words.")
        return self.translate(text, **options)

    def with_roles(self, run: Translation, chat: Sequence[Message]) -> Translation:
        """The run of a conversation, with who said each of its tokens; ChatError as ``generate``."""
        whole = self._rendered(chat)
        prompt = self._without_start(whole)
        by_letter = roles_of(self.chat_template, chat, self._named_tokens(), whole)
        by_letter = by_letter[len(whole) - len(prompt) :]
        begins = [begin for _, _, begin, _ in self.tokenizer.target.split(prompt)]
        roles = [by_letter[begin] for begin in begins]
        if self.config.starts_with_token:
            roles.insert(0, "")
        read = len(run.decoder_input_tokens)
        roles += ["assistant"] * (read - len(roles))
        return replace(run, roles=tuple(roles[:read]))

    def prompted(self, chat: Sequence[Message]) -> str:
        """A conversation as the text with which the model goes on; ChatError as ``generate``.

        Without the start token, which the model puts before every text by itself.
        """
        return self._without_start(self._rendered(chat))

    def _rendered(self, chat: Sequence[Message]) -> str:
        return without_surrogates(render(self.chat_template, chat, self._named_tokens()))

    def _without_start(self, text: str) -> str:
        starts = self.config.starts_with_token
        return text.removeprefix(self._named_tokens()["bos_token"]) if starts else text

    def _named_tokens(self) -> dict[str, str]:
        """The special tokens by the names that templates use."""
        (bos, eos) = self.pieces([self.config.bos_id, self.config.eos_id])
        return {"bos_token": str(bos), "eos_token": str(eos)}

    def force(
        self,
        text: Tokens,  # the source or the prompt; for a language model alone, the whole text
        target: Tokens | None = None,  # a text; or all of its tokens, ``</s>`` included
        **options: Unpack[Looking],
    ) -> Translation:
        """Runs a given output through the model in one pass, without decoding: how probable is each
        token?

        The whole text of a language model holds its prompt, which then says nothing more.
        Raises as ``Request``; InterventionError, too, if a change contradicts the output.
        """
        if not self.config.writes:
            raise TypeError(READS_ONLY)
        if target is None and not self.continues:
            raise TypeError("force reads a whole output: a source needs its translation.")
        if not (isinstance(text, str) or self.continues):
            raise TypeError(f"The text is {type(text).__name__}; it must be a string.")
        whole = text if target is None else target
        source = "" if self.continues else str(text)
        output = self.output(whole, source)
        options["interventions"] = changes = as_interventions(options.get("interventions", ()))
        written = list(zip(self.pieces(output.ids), output.ids, strict=True))
        for change in changes:
            if change.steers and not audited_tokens([change], (), written):
                given = "text" if self.continues else "translation"
                raise InterventionError(f"The given {given} contradicts a change: {change}.")
        (run,) = self.stream(source, output, **options)
        assert isinstance(run, Translation)
        return run

    def again(self, run: Translation, **options: Unpack[Looking]) -> Translation:
        """The tokens of a run once more, by this model: its source, and its output in one pass,
        without what was changed in the run.

        Raises as ``force``.
        """
        if not run.steps:
            return self.translate(run.source_text, **options)
        return self.force(run.source_text, self.whole(run.target_ids, run.start_id), **options)

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
        while piece := next(
            filter(text[len(says) :].lstrip().startswith, self.config.language_pieces), ""
        ):
            says = text[: text.index(piece, len(says)) + len(piece)]
        return sentences(text, says) or (text,)


def retrace(
    translator: Translator,  # the model that made the translation
    translation: Translation,  # made with any interventions; it is not changed
    capture: Capture | None = None,  # what to record; None for everything
    node: int
    | None = None,  # place of a node in ``translation.tree.nodes``; None for the translation
) -> Translation:
    """The same translation with the trace of one pass over it, to record what the first run did not
    keep; or the run of a node of the search's tree: its hypothesis so far, in one pass.

    The audit of the new trace compares its log-probabilities with those of the decode.

    Raises:
        InputError, InterventionError: The text or a change of the translation does not fit this
            model.
        ValueError: A user's functions changed the run; or it has no tree.
        IndexError: The tree has no such node.
    """
    if not translation.config.writes and node is None and not translation.functions:
        return translator.fill(
            translation.source_text,
            capture=capture or Capture(residual=True),
            interventions=translation.interventions,
        )
    if translation.functions:
        where = ", ".join(translation.functions)
        raise ValueError(
            f"Functions changed this run ({where}), and no trace repeats them: run it with them."
        )
    ids, log_probs, changes = (
        translation.target_ids,
        translation.log_probs,
        translation.interventions,
    )
    output = None
    text = translation.source_text
    if translation.method == "forced":
        output = translator.output(translator.whole(ids, translation.start_id))
    elif not translator.config.starts_with_token:
        text = translation.prompt or ""
    if node is not None:
        if (tree := translation.tree) is None:
            raise ValueError("This translation has no tree; translate with tree=True.")
        if not 0 <= node < len(tree.nodes):
            raise IndexError(
                f"There is no node {node}: the tree has {len(tree.nodes):,}, counted from 0."
            )
        ids = tree.token_ids(node)
        log_probs = tuple(tree.nodes[i].log_prob for i in tree.path(node))
        changes = tuple(reached(changes, len(ids)))
    options: Options = {"capture": capture or Capture(residual=True), "interventions": changes}
    if output is None:
        options |= {"beam_size": 1, "max_length": translator.config.max_positions}
    request = Request(translator, text, output, **options)
    again = request.replayed(ids, log_probs, translation.method)
    if node is not None:
        return replace(
            again, notes=translator.notes, prompt=translation.prompt, n_given=translation.n_given
        )
    # a batch's padding is left out
    names = ("source_tokens", "decoder_input_tokens", "target_tokens", "attention")
    return replace(translation, **{name: getattr(again, name) for name in names})


def reached(changes: Sequence[do.Intervention], length: int) -> Iterator[do.Intervention]:
    """The changes of a run as they hold for the first ``length`` tokens of an output."""
    for change in changes:
        if not isinstance(change, do.Choose) or change.step < length:
            yield do.Prefix(change.token_ids[:length]) if isinstance(change, do.Prefix) else change


def load_translator(
    path: str
    | Path,  # a directory, or ``owner/model`` on the Hub, whose newest state is downloaded
    device: str
    | torch.device = AUTO,  # "auto" (see ``transformer.devices``), "cpu", "cuda", or PyTorch's
    dtype: str = "float32",  # or "bfloat16", which the translator's name then shows
    revision: str
    | None = None,  # branch, tag or commit on the Hub; the translator's name shows the commit
    *,
    # what it must be able to do: "translate" (or write by a source), "continue" a text, or "read"
    # or "fill" one, as an encoder alone does; None for any model
    task: Task | None = "translate",
) -> Translator:
    """Opens a model: one that ``train`` wrote, a bundled one, a Marian model (OPUS-MT), or one on
    the Hub.

    It computes on the CPU, with a note, if the GPU has no room for it.

    Raises:
        CheckpointError: The model is missing, damaged, or of a kind that this package cannot open.
        ValueError: ``dtype`` is neither of the two, or there is no such device or task.
    """
    named(device)
    one_of(*TYPES).check("dtype", dtype)
    if task is not None:
        one_of(*OPENERS).check("task", task)
    title, checkpoint = open_model(path, revision)
    if task is not None and not isinstance(checkpoint.model, OPENERS[task].network):
        opener = OPENERS[checkpoint.config.task]
        raise CheckpointError(
            f"{path} holds a model that {opener.does}; open it with {opener.load}."
        )
    model: Any = checkpoint.translating if task == "translate" else checkpoint.model
    place = choose_device(device, count_parameters(model))
    notes = checkpoint.notes
    try:
        model = convert(model, place, TYPES[dtype])
    except torch.OutOfMemoryError:
        if place.type == "cpu":
            raise
        model = convert(model, torch.device("cpu"), TYPES[dtype])
        notes = (*notes, FULL)
    name = title + ("" if dtype == "float32" else f", {dtype}")
    names = ("heads", "card", "rules", "means", "chat_template")
    parts = {name: getattr(checkpoint, name) for name in names}
    return Translator(model, checkpoint.tokenizer, name=name, notes=notes, **parts)


@dataclass(frozen=True, kw_only=True)
class Opener:
    """What is called to open a model of a task, and to make a run with it."""

    does: str  # what such a model does
    load: str  # the function that opens it
    call: str  # the method that makes a run of a text
    network: type[torch.nn.Module] = torch.nn.Module  # what its network is


_READING = Opener(
    does="only reads, an encoder alone", load="load_encoder", call="fill", network=EncoderModel
)
_TRANSLATING = Opener(does="translates", load="load_translator", call="translate")
OPENERS: Mapping[str, Opener] = {
    "translate": _TRANSLATING,
    "write": replace(_TRANSLATING, does="writes by a source"),
    "continue": Opener(
        does="continues texts", load="load_language_model", call="generate", network=LanguageModel
    ),
    "fill": _READING,
    "read": _READING,
}
"""By the task of a model's config."""


def load_encoder(
    path: str | Path,  # as for ``load_translator``
    device: str | torch.device = AUTO,
    revision: str | None = None,
    dtype: str = "float32",
) -> Translator:
    """Opens an encoder alone: one that ``train`` wrote, BERT or one of its relatives; as
    ``load_translator``."""
    return load_translator(path, device, dtype, revision, task="read")


def load_language_model(
    path: str | Path,  # as for ``load_translator``; or a GGUF file
    device: str | torch.device = AUTO,
    revision: str | None = None,
    dtype: str = "float32",
) -> Translator:
    """Opens a language model: one that ``train`` wrote, GPT-2, Llama and its relatives, GPT-NeoX or
    OPT; as ``load_translator``."""
    return load_translator(path, device, dtype, revision, task="continue")
