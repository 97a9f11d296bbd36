"""`python -m transformer train`: trains a model on files of pairs and writes a model directory."""

import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_type_hints

import torch

from transformer.commands.models import Device
from transformer.config import TransformerConfig, config_from
from transformer.devices import AUTO, choose_device
from transformer.model import EncoderDecoder, count_parameters
from transformer.storage.card import training_card
from transformer.storage.directory import NETWORKS
from transformer.storage.files import UNFINISHED
from transformer.text.kinds import at_least, one_of
from transformer.text.pairs import SentencePair, read_pairs
from transformer.text.tokenizer import Tokenizer
from transformer.training import trainer as training
from transformer.training.augment import MAKERS, augmented
from transformer.training.data import EncodedPairs, encode_pairs
from transformer.training.distributed import joined
from transformer.training.options import TrainingOptions
from transformer.training.presets import PRESETS, preset_name
from transformer.training.progress import TerminalLine, peak
from transformer.training.quality import GreedyBleu
from transformer.training.run import STATE_FILE, Exported, RunDirectory, load_exported
from transformer.training.toys import LENGTH, TOYS, toy_data

SMALL = 5_000_000
"""Parameters below which a CPU trains on one thread: in such small products, threads wait for each
other."""
MOST_WEIGHT = 100
_CONFIG = get_type_hints(TransformerConfig, include_extras=True)
_TEXTS = {
    "vocab_size": "pieces of the joint vocabulary",
    "d_model": "width of the residual stream",
    "d_ff": "inner width of the feed-forward network",
    "n_heads": "heads per layer",
    "n_encoder_layers": "layers of the encoder",
    "n_decoder_layers": "layers of the decoder",
    "dropout": "probability",
    "norm": "post (as in the paper) or pre",
    "positions": "name of the positional encoding",
}
SIZES = {name: Annotated[_CONFIG[name], text] for name, text in _TEXTS.items()}
OPTIONS = get_type_hints(TrainingOptions, include_extras=True)
SHARES = {
    f"{name}_share": Annotated[float, f"add X {text} per pair"]
    for name, (_, text) in MAKERS.items()
}


class PairsOfRun(NamedTuple):
    """What a training run learns from."""

    train: Sequence[SentencePair]
    weights: list[float] | None  # of the training pairs; None if each is 1
    valid: Sequence[SentencePair]  # pairs to evaluate on
    words: Sequence[str] = ()  # for the vocabulary alone

    def texts(self) -> Iterator[str]:
        """All that a vocabulary is made of."""
        yield from self.words
        for pair in self.train:
            yield pair.source
            yield pair.target


@dataclass(frozen=True, kw_only=True)
class PairOptions:
    """The pairs of a training run.

    train [FILE[:WEIGHT]]: source<TAB>target lines (.gz too); weight 2 uses each pair twice per
    epoch, weight
        0.35 uses a new 35 % of the pairs in each epoch
    toy: instead of files: pairs of a toy task, which the package makes itself
    """

    train: tuple[str, ...] = ()
    valid: Annotated[tuple[str, ...], "FILE", "pairs to evaluate on"] = ()
    toy: Annotated[str | None, one_of(*TOYS)] = None
    toy_length: Annotated[int, "with --toy: most letters of a sequence"] = LENGTH

    def read(self, shares: dict[str, float], seed: int) -> PairsOfRun:
        """The pairs of the files or of the toy task.

        ValueError if the options name no pairs, or both files and a toy task, or a file cannot be
        used.
        """
        if self.toy and (self.train or self.valid):
            raise ValueError("--toy makes its own pairs; leave out --train and --valid.")
        if self.toy:
            toy = toy_data(self.toy, self.toy_length, seed)
            return PairsOfRun(train=toy.train, weights=None, valid=toy.valid, words=toy.words)
        if not (self.train and self.valid):
            raise ValueError(
                "Give pairs to train on and to evaluate on: --train and --valid, or --toy."
            )
        pairs = list[SentencePair]()
        weights = list[float]()
        for file in self.train:
            path, weight = _weighted(file)
            pairs += augmented(read_pairs(path), shares, seed)
            weights += [weight] * (len(pairs) - len(weights))
        valid = [pair for path in self.valid for pair in read_pairs(path)]
        even = set(weights) == {1.0}
        return PairsOfRun(train=pairs, weights=None if even else weights, valid=valid)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Where and how a training run computes.

    resume_if_present: resume the run in DIR if there is one, otherwise begin: for torchrun
        --max-restarts
    obey_input: stop once standard input ends: it is a pipe that a program keeps open, and the
        system closes
        with it, however it ends
    """

    output: Annotated[Path, "DIR", "model directory to write"]
    device: Device = AUTO
    threads: Annotated[
        int | None,
        f"threads of a CPU; without it or OMP_NUM_THREADS, one for models of fewer than {SMALL:,} "
        "parameters, and as many as PyTorch chooses for larger ones",
    ] = None
    resume: Annotated[bool, "resume the run in DIR exactly where it was saved"] = False
    resume_if_present: bool = False
    new_data: Annotated[bool, "with --resume: continue with other training data"] = False
    obey_input: bool = False

    def resumed(self) -> Exported | None:
        """What a saved run exports that continues, or None; ValueError if the directory does not
        fit."""
        path = self.output
        if path.exists() and not path.is_dir():
            raise ValueError(f"The output {path} is a file; choose a directory.")
        if self.resume or (self.resume_if_present and (path / STATE_FILE).is_file()):
            return load_exported(path)
        # A kill in a run's very first save leaves unfinished files behind.
        if path.is_dir() and set(path.iterdir()) - {*path.glob(UNFINISHED)}:
            ways = "add --resume to continue its run, or choose another directory"
            raise ValueError(f"The output {path} is not empty; {ways}.")
        return None


def train(
    *,
    files: PairOptions,
    preset: Annotated[str | None, one_of(*sorted(PRESETS))] = None,
    max_length: Annotated[int, "leave out pairs with more than N tokens on a side"] = 256,
    bleu_sentences: int = 200,
    shares: Annotated[dict[str, float], SHARES],
    languages: Annotated[str, "A,B", "source and target language, for the model card"] = "en,de",
    run: RunOptions,
    tokenizer: Annotated[
        Path | None, "use this sentencepiece model instead of training one"
    ] = None,
    smaller_vocabulary: bool = False,
    sizes: Annotated[dict[str, Any], SIZES],
    settings: Annotated[dict[str, Any], OPTIONS],
) -> int:
    """Train a model on parallel text.

    preset: sizes and settings to start from: en-de, or toy with --toy
    bleu_sentences: translate N validation sentences greedily at each evaluation and log their
        BLEU; 0 for
        none
    smaller_vocabulary: if the text cannot give --vocab-size pieces, take as many as it can give
    """
    if run.threads is not None:
        at_least(1).check("--threads", run.threads)
    with joined(choose_device(run.device)) as (workers, device):
        defaults = PRESETS[preset_name(preset, files.toy)]
        options = TrainingOptions(**defaults.options | settings)
        config = config_from(defaults.sizes | sizes)
        resumed = workers.agree(run.resumed)
        torch.manual_seed(options.seed)
        if not 2 <= max_length <= config.max_positions:
            raise ValueError(f"--max-length is {max_length}; choose 2 to {config.max_positions:,}.")
        shares = defaults.shares | {
            name.removesuffix("_share"): share for name, share in shares.items()
        }
        pairs = files.read(shares, options.seed)

        def vocabulary() -> Exported:
            if resumed:
                return resumed
            if tokenizer is not None:
                return Exported(Tokenizer.load(tokenizer))
            at_most = bool(smaller_vocabulary or files.toy)
            return Exported(_trained_tokenizer(pairs, config.vocab_size, at_most))

        exported = workers.agree(vocabulary)
        data = encode_pairs(pairs.train, exported.tokenizer, pairs.weights).up_to(max_length)
        valid = encode_pairs(pairs.valid, exported.tokenizer).up_to(max_length)
        if workers.first and len(data) < len(pairs.train):
            left_out = f"{len(pairs.train) - len(data):,} pairs with more than {max_length} tokens"
            print(f"Left out {left_out} on a side.", file=sys.stderr)
        quality = GreedyBleu(pairs.valid, exported.tokenizer, bleu_sentences, max_length)
        config = replace(
            config, vocab_size=exported.tokenizer.vocab_size, trained_length=data.longest
        )
        model = NETWORKS[type(config)](config).to(device)
        assert isinstance(model, EncoderDecoder)
        trainer = training.Trainer(model, data, options, workers)
        if not exported.card:
            exported.card = training_card(
                run.output.name,
                [] if files.toy else [code.strip() for code in languages.split(",")],
                command=shlex.join(["python", "-m", "transformer", *sys.argv[1:]]),
                files=[f"toy task: {files.toy}"] if files.toy else list(files.train),
                config=config,
                parameters=count_parameters(model),
            )
        directory = RunDirectory(run.output, trainer, exported, data.fingerprint())
        directory.begin(resumed is not None, run.new_data)
        return take_steps(directory, valid, quality, run)


def _trained_tokenizer(pairs: PairsOfRun, size: int, at_most: bool) -> Tokenizer:
    """A vocabulary of the pairs, of so many pieces, or as many as they can give."""
    least = "at most " if at_most else ""
    print(f"Training a vocabulary of {least}{size:,} pieces.", file=sys.stderr)
    return Tokenizer.train(pairs.texts(), size, at_most)


def take_steps(
    directory: RunDirectory, valid: EncodedPairs, quality: GreedyBleu | None, run: RunOptions
) -> int:
    """Takes the steps of a run, each with its line in the log and on the terminal; the exit status.

    A signal lets the current step finish, so that the saved state lies between two steps.
    """
    stops = list[int]()
    before = torch.get_num_threads()
    trainer = directory.trainer
    workers = trainer.workers
    device = trainer.device
    data = trainer.data
    steps = trainer.options.steps
    parameters = count_parameters(trainer.model)
    is_small = device.type == "cpu" and parameters < SMALL and "OMP_NUM_THREADS" not in os.environ
    if run.obey_input:
        threading.Thread(target=_await_end_of_input, args=(stops,), daemon=True).start()
    with ExitStack() as stack:
        stack.callback(torch.set_num_threads, before)
        torch.set_num_threads(run.threads or (1 if is_small else before))
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.signal(number, lambda stop, _: stops.append(stop))
            stack.callback(signal.signal, number, handler)
        if workers.first:
            pairs = f"{len(data):,} {data.noun}, the longest {data.longest} tokens"
            span = f"steps {trainer.step + 1:,} to {steps:,} into {run.output}"
            print(
                f"{parameters:,} parameters on {device}; {pairs}; {span}.",
                file=sys.stderr,
                flush=True,
            )
            speed, source = peak(device, trainer.dtype)
            log = stack.enter_context(directory.log())
            line = TerminalLine(steps, speed * workers.world, source)
            stack.callback(line.close)
        for done in training.train(trainer, valid, quality):
            if workers.first:
                log(done)
                line.show(done)
            directory.choose(done)
            if done.step % trainer.options.checkpoint_every == 0:
                directory.save()
            if any(workers.sum(len(stops))):
                break
        directory.save()
    if trainer.step == steps:
        return 0
    if workers.first:
        print(f"Stopped after step {trainer.step:,}; add --resume to continue.", file=sys.stderr)
    return 130


def _await_end_of_input(stops: list[int]) -> None:
    """Notes that the run has to stop, once standard input has ended."""
    with suppress(OSError):
        while os.read(sys.stdin.fileno(), 4096):
            pass
    stops.append(signal.SIGTERM)


def _weighted(file: str) -> tuple[str, float]:
    """Splits `FILE:WEIGHT`; an existing file whose name looks like that is not split."""
    path, colon, text = file.rpartition(":")
    try:
        weight = float(text)
    except ValueError:
        return file, 1.0
    if not colon or Path(file).exists():
        return file, 1.0
    if not 0 < weight <= MOST_WEIGHT:
        raise ValueError(
            f"The weight of {path} is {text}; it must be above 0 and at most {MOST_WEIGHT}."
        )
    return path, weight
