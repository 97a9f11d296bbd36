"""From text to translation: the class that the app, the command line and most users call."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer.decode.beam import beam_search
from transformer.decode.replay import replay, reread
from transformer.decode.request import Request
from transformer.decode.rules import FREE, SearchRules
from transformer.decode.sampling import Sampling
from transformer.decode.search import decode, most_probable
from transformer.decode.steps import Decoding, Hypothesis, Limit, Step, alternatives, finish
from transformer.hub.sources import open_model
from transformer.model.config import TransformerConfig
from transformer.model.sites import Place
from transformer.model.transformer import Transformer, convert
from transformer.model.watching.hooks import Hook, HookFunction, as_hooks, check_places
from transformer.model.watching.observer import HookCarrier
from transformer.text.vocabulary import Vocabulary
from transformer.trace.audit import audit
from transformer.trace.recorder import Capture, Recorder
from transformer.trace.records import AttentionTrace
from transformer.trace.report import AuditReport
from transformer.translate.translation import Alternative, DecodeStep, Translation

MAX_SOURCE_TOKENS = 1024
TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class InputError(ValueError):
    """A text that cannot be translated; the message says why in one sentence."""


class Translator:
    """A model with its tokenizer. Safe to share between threads: nothing in it changes.

    Attributes:
        name: Name of the model.
        config: Its sizes.
        model: The network, in ``eval()`` mode.
        tokenizer: Its vocabulary.
        heads: Contents of ``heads.json``; None if the checkpoint has none.
        card: The model card, Markdown.
        rules: The model's own rules for the search.
        notes: Sentences for the reader of every translation.
    """

    def __init__(
        self,
        model: Transformer,
        tokenizer: Vocabulary,
        *,
        name: str = "model",
        heads: dict[str, Any] | None = None,
        card: str = "",
        rules: SearchRules = FREE,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.model = model.eval().requires_grad_(False)
        self.config: TransformerConfig = model.config
        self.tokenizer, self.name, self.heads, self.card = tokenizer, name, heads, card
        self.rules, self.notes = rules, notes
        self._pieces = tokenizer.pieces(range(self.config.n_target_pieces))
        self._source_pieces = tokenizer.source_pieces(range(self.config.vocab_size))

    def translate(
        self,
        text: str,
        beam_size: int | None = None,
        max_length: int | None = None,
        sample: Sampling | None = None,
        capture: bool | Capture = True,
        hooks: Iterable[Hook | HookFunction] = (),
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
            hooks: Interventions, see ``transformer.model.watching.hooks``.

        Raises:
            InputError: The text is empty or too long.
            ValueError: An option is out of range.
        """
        *_, translation = self.stream(text, beam_size, max_length, sample, capture, hooks)
        assert isinstance(translation, Translation)
        return translation

    def stream(
        self,
        text: str,
        beam_size: int | None = None,
        max_length: int | None = None,
        sample: Sampling | None = None,
        capture: bool | Capture = True,
        hooks: Iterable[Hook | HookFunction] = (),
    ) -> Iterator[DecodeStep | Translation]:
        """As ``translate``, but yields each step (in a beam: of the best hypothesis so far), and finally the
        translation."""
        beam_size = self._beam_size(beam_size, sample)
        if sample is not None and beam_size != 1:
            raise ValueError("Sampling follows one hypothesis; use it with beam_size=1.")
        run = _Run(self, text, _capture(capture), as_hooks(hooks))
        limit = self.limit(len(run.src_ids), max_length)
        request = run.request(record_steps=beam_size == 1)
        steps: list[Step] = []
        decoding = self._decoding(request, limit, beam_size, sample)
        while True:
            try:
                steps.append(next(decoding))
            except StopIteration as stop:
                hypothesis: Hypothesis = stop.value[0]
                break
            if steps[-1].log_probs[0] > -math.inf:  # a beam that has just ended has no open hypothesis
                step = steps[-1]
                yield self._decode_step(step, step.token_ids[0], step.log_probs[0], step.parents[0])
        if beam_size > 1 and run.recorder is not None:
            reread(self.model, request.memory, hypothesis.token_ids, observer=run.recorder)
        yield run.translation(hypothesis, self._path(steps, hypothesis), _method(beam_size, sample))

    def force(
        self,
        text: str,
        target: str | tuple[int, ...],
        capture: bool | Capture = True,
        hooks: Iterable[Hook | HookFunction] = (),
    ) -> Translation:
        """Runs a given translation (a text, or its token ids) through the model, without decoding.

        Raises:
            InputError: A text is empty or too long.
        """
        run = _Run(self, text, _capture(capture), as_hooks(hooks))
        target_ids = (*self.target_ids(target), self.config.eos_id) if isinstance(target, str) else target
        request = run.request(record_steps=True)
        distribution = replay(self.model, request.memory, target_ids, observer=request.step_observer)
        chosen = distribution.gather(1, torch.tensor(target_ids, device=distribution.device)[:, None])
        log_probs = tuple(chosen[:, 0].tolist())
        hypothesis = Hypothesis(target_ids, log_probs, (0,) * len(target_ids), sum(log_probs))
        ids, values = alternatives(distribution)
        steps = [
            Step((token,), (log_prob,), (0,), (log_prob,), (best,), (best_values,), (False,))
            for token, log_prob, best, best_values in zip(target_ids, log_probs, ids, values, strict=True)
        ]
        return run.translation(hypothesis, self._path(steps, hypothesis), "forced")

    def translate_all(
        self, texts: Sequence[str], beam_size: int | None = None, max_length: int | None = None
    ) -> list[str]:
        """Translates a padded batch without capture, for evaluation.

        Raises:
            InputError: A text is empty or too long.
        """
        if not texts:
            return []
        rows = [(*self.ids(text), self.config.eos_id) for text in texts]
        request = Request(self.model, padded(rows, self.config.pad_id, self.device))
        limits = [self.limit(len(row), max_length) for row in rows]
        hypotheses = finish(self._decoding(request, limits, self._beam_size(beam_size), None))
        return [self.text(hypothesis.token_ids) for hypothesis in hypotheses]

    @property
    def device(self) -> torch.device:
        """The device on which the model computes."""
        return self.model.embedding.weight.device

    def ids(self, text: str) -> tuple[int, ...]:
        """Ids of a source text, without special tokens.

        Raises:
            InputError: The text is empty, has too many tokens, or does not name a target language although
                the model needs one.
        """
        ids = tuple(self.tokenizer.encode(self.tokenizer.read(text)))
        languages = self.config.language_pieces
        named = bool(ids) and self._source_pieces[ids[0]] in languages
        if len(languages) > 1 and not named:
            raise InputError(
                f"This model translates into {len(languages)} languages; begin the text with the one "
                f"you want, such as {' or '.join(languages[:3])}."
            )
        self._check_length(ids[named:], "text")
        return ids

    def target_ids(self, text: str) -> tuple[int, ...]:
        """Ids of a translation, without special tokens.

        Raises:
            InputError: The translation is empty or has too many tokens.
        """
        ids = tuple(self.tokenizer.encode_target(self.tokenizer.read(text)))
        self._check_length(ids, "translation")
        return ids

    def _check_length(self, ids: tuple[int, ...], what: str) -> None:
        if not ids:
            raise InputError(f"The {what} is empty; type a sentence.")
        tokens, positions = len(ids) + 1, self.config.max_positions
        if tokens > MAX_SOURCE_TOKENS:
            raise InputError(
                f"The {what} has {tokens:,} tokens; shorten it to at most {MAX_SOURCE_TOKENS:,}."
            )
        if tokens > positions:
            raise InputError(
                f"The {what} has {tokens:,} tokens, but this model has {positions:,} positions; shorten it."
            )

    def source_pieces(self, ids: Iterable[int]) -> tuple[str, ...]:
        """The pieces of source ids, ``▁`` kept."""
        return tuple(self._source_pieces[token_id] for token_id in ids)

    def pieces(self, ids: Iterable[int]) -> tuple[str, ...]:
        """The pieces of target ids, ``▁`` kept."""
        return tuple(self._pieces[token_id] for token_id in ids)

    def text(self, ids: Iterable[int]) -> str:
        """The plain text of ids, without special tokens."""
        return self.tokenizer.decode(ids).strip()

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

    def _beam_size(self, beam_size: int | None, sample: Sampling | None = None) -> int:
        if beam_size is not None:
            return beam_size
        return self.rules.beam_size if sample is None else 1

    def _decoding(self, request: Request, limit: Limit, beam_size: int, sample: Sampling | None) -> Decoding:
        if beam_size != 1:
            return beam_search(request, limit, beam_size, self.rules)
        choose = most_probable if sample is None else sample.chooser()
        return decode(request, limit, choose, self.rules)

    def _path(self, steps: Sequence[Step], hypothesis: Hypothesis) -> tuple[DecodeStep, ...]:
        """The steps of the best hypothesis: each token, with the alternatives of the row that it extends."""
        return tuple(
            self._decode_step(step, token, log_prob, parent)
            for step, token, log_prob, parent in zip(
                steps, hypothesis.token_ids, hypothesis.log_probs, hypothesis.parents, strict=False
            )
        )

    def _decode_step(self, step: Step, token: int, log_prob: float, parent: int) -> DecodeStep:
        best = self._alternatives(step, parent)
        return DecodeStep(self._pieces[token], token, log_prob, best, parent, step.forced[parent])

    def _alternatives(self, step: Step, parent: int) -> tuple[Alternative, ...]:
        pairs = zip(step.alternative_ids[parent], step.alternative_log_probs[parent], strict=True)
        return tuple(Alternative(self._pieces[token], token, log_prob) for token, log_prob in pairs)


class _Run:
    """One call of a translator: the text as ids, the recording, and its audit."""

    def __init__(
        self, translator: Translator, text: str, capture: Capture | None, hooks: tuple[Hook, ...]
    ) -> None:
        self.translator, self.hooks = translator, hooks
        check_places(hooks, translator.config)
        self.source_text = translator.tokenizer.read(text)
        self.src_ids = (*translator.ids(text), translator.config.eos_id)
        self.recorder = Recorder(capture, hooks) if capture is not None else None
        self._carrier = HookCarrier(hooks) if hooks else None

    def request(self, *, record_steps: bool) -> Request:
        observer = self.recorder or self._carrier
        step_observer = observer if record_steps else self._carrier
        return Request(self.translator.model, self._ids(), observer, step_observer)

    def translation(self, hypothesis: Hypothesis, steps: tuple[DecodeStep, ...], method: str) -> Translation:
        translator, config = self.translator, self.translator.config
        target = translator.pieces(hypothesis.token_ids)
        start = translator.pieces((config.bos_id,))
        return Translation(
            source_text=self.source_text,
            text=translator.text(hypothesis.token_ids),
            source_tokens=translator.source_pieces(self.src_ids),
            decoder_input_tokens=(*start, *target[:-1]),
            target_tokens=target,
            log_probs=hypothesis.log_probs,
            steps=steps,
            method=method,
            model=translator.name,
            config=config,
            notes=self._notes(hypothesis),
            attention=self._trace(hypothesis),
        )

    def _trace(self, hypothesis: Hypothesis) -> AttentionTrace | None:
        if self.recorder is None:
            return None
        model, src_ids, carrier = self.translator.model, self._ids(), self._carrier
        replayed = cache(lambda: _replayed(model, src_ids, hypothesis, carrier))

        def auditor(trace: AttentionTrace, places: tuple[Place, ...]) -> AuditReport:
            return audit(trace, places, hypothesis.log_probs, replayed())

        return self.recorder.trace(auditor)

    def _notes(self, hypothesis: Hypothesis) -> tuple[str, ...]:
        notes = list(self.translator.notes)
        trained = self.translator.config.trained_length
        if trained is not None and len(self.src_ids) > trained:
            notes.append(
                f"This text has {len(self.src_ids):,} tokens: "
                f"longer than any text in this model's training ({trained:,})."
            )
        if hypothesis.token_ids[-1] != self.translator.config.eos_id:
            notes.append(
                f"The translation was cut at {len(hypothesis.token_ids):,} tokens, so it is incomplete."
            )
        return tuple(notes)

    def _ids(self) -> Tensor:
        return torch.tensor([self.src_ids], device=self.translator.device)


def _replayed(
    model: Transformer, src_ids: Tensor, hypothesis: Hypothesis, carrier: HookCarrier | None
) -> tuple[float, ...]:
    """Log-probabilities from a second, uncached pass over source and output."""
    request = Request(model, src_ids, carrier)
    distribution = replay(model, request.memory, hypothesis.token_ids, observer=carrier)
    ids = torch.tensor(hypothesis.token_ids, device=distribution.device)
    return tuple(distribution.gather(1, ids[:, None])[:, 0].tolist())


def load_translator(
    path: str | Path, device: str | torch.device = "cpu", dtype: str = "float32", revision: str | None = None
) -> Translator:
    """Opens a model: one that ``train`` wrote, a bundled one, a Marian model (OPUS-MT), or one of the Hub.

    Args:
        path: A directory, or ``owner/model`` on the Hub, whose newest state is fetched.
        device: The device to compute on.
        dtype: "float32", or "bfloat16", which the translator's name then shows.
        revision: Branch, tag or commit on the Hub; the translator's name shows the commit.

    Raises:
        CheckpointError: The model is missing, damaged, or of a kind that this package cannot open.
        ValueError: ``dtype`` is neither of the two.
    """
    if dtype not in TYPES:
        raise ValueError(f"dtype is {dtype!r:.80}; it must be one of {', '.join(TYPES)}.")
    title, checkpoint = open_model(path, revision)
    return Translator(
        convert(checkpoint.model, device, TYPES[dtype]),
        checkpoint.tokenizer,
        name=title + ("" if dtype == "float32" else f", {dtype}"),
        heads=checkpoint.heads,
        card=checkpoint.card,
        rules=checkpoint.rules,
        notes=checkpoint.notes,
    )


def padded(rows: Sequence[Sequence[int]], pad_id: int, device: torch.device) -> Tensor:
    """(batch, longest) ids."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[pad_id] * (longest - len(row))] for row in rows], device=device)


def _capture(capture: bool | Capture) -> Capture | None:
    if isinstance(capture, Capture):
        return capture
    return Capture() if capture else None


def _method(beam_size: int, sample: Sampling | None) -> str:
    if sample is not None:
        return f"sample-{sample.seed}"
    return "greedy" if beam_size == 1 else f"beam-{beam_size}"
