"""Opening a model beside transformers, which maps the file, copies nothing, and reads no
vocabulary.

Both open the same directory, in turns, in a process that has opened it before.
"""

import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.decoders import smollm2, write_vocabulary
from benchmarks.families import nllb, opus_mt, quiet, t5
from benchmarks.timing import Repeats, Threads, interleaved, report
from transformer import load_language_model, load_translator


def decoder(directory: Path) -> Any:
    """SmolLM2-135M, with a small vocabulary."""
    model = smollm2(directory)
    write_vocabulary(directory)
    return model


SHAPES: dict[str, Callable[[Path], Any]] = {
    "T5-small": t5,
    "NLLB-600M": nllb,
    "OPUS-MT": opus_mt,
    "SmolLM2-135M": decoder,
}


def opening(
    *,
    only: str = "",
    gguf: Path | None = None,
    threads: Threads = 2,
    repeats: Repeats = 9,
) -> int:
    """Time of opening a model, beside transformers.

    only [NAME]: one shape: T5-small, NLLB-600M, OPUS-MT or SmolLM2-135M
    gguf [FILE]: open this file instead, which transformers does not
    """
    quiet(threads)
    if gguf is not None:
        opened = {gguf.name: partial(load_language_model, gguf, "cpu")}
        seconds = interleaved(opened, repeats, 1)[gguf.name]
        print(f"{gguf.name}: {statistics.median(seconds):.2f} s (wanted at most 2 s)")
        return 0
    for name, write in SHAPES.items():
        if only in ("", name):
            with tempfile.TemporaryDirectory() as folder:
                _compare(name, Path(folder), write(Path(folder)), repeats)
    return 0


def _compare(name: str, directory: Path, model: Any, repeats: int) -> None:
    load = load_language_model if name.startswith("SmolLM2") else load_translator
    opens = {
        "ours": lambda: load(directory, "cpu"),
        "transformers": lambda: model.from_pretrained(directory).eval(),
    }
    seconds = interleaved(opens, repeats, 1)
    report(f"{name}, opening", seconds, "ours", "transformers", "at most 1")
