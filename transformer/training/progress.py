"""A progress line for training, on standard error, with the share of a device's speed that it
reaches."""

import sys
import time
import timeit
from collections import deque

import torch

from transformer.training.trainer import TrainingStep

BAR_WIDTH = 24
RECENT_STEPS = 50
CLEAR_REST = "\x1b[K"
PEAKS = {"H200": 989, "H100": 989, "A100": 312, "L40S": 362, "L4": 121, "V100": 125, "T4": 65}
"""Dense 16-bit products per second of GPUs, in TFLOP/s, by a part of their name (NVIDIA's data
sheets)."""
SIZE = 512


class TerminalLine:
    """Rewrites one line on a terminal; elsewhere writes one line per minute."""

    def __init__(
        self,
        steps: int,  # number of steps of the run
        peak: float,  # FLOP/s that the devices of all processes can reach together
        source: str,  # where that number comes from
    ) -> None:
        self._steps = steps
        self._peak = peak
        self._source = source
        self._recent: deque[TrainingStep] = deque(maxlen=RECENT_STEPS)
        self._terminal = sys.stderr.isatty()
        self._next = 0.0
        self._measured = ""

    def show(self, done: TrainingStep) -> None:
        """Records a step, and writes the line if it is due."""
        self._recent.append(done)
        if done.valid_loss is not None:
            losses = [
                loss for loss in (done.valid_loss, done.valid_loss_average) if loss is not None
            ]
            self._measured = " · valid " + " / ".join(f"{loss:.3f}" for loss in losses)
            if done.bleu is not None:
                self._measured += f" · BLEU {done.bleu:.1f}"
            if done.exact is not None:
                self._measured += f" · {100 * done.exact:.0f} % exact"
        now = time.monotonic()
        if now >= self._next or done.step == self._steps:
            self._next = now + (0.2 if self._terminal else 60)
            line = f"\r{self.line()}{CLEAR_REST}" if self._terminal else f"{self.line()}\n"
            print(line, end="", file=sys.stderr, flush=True)

    def line(self) -> str:
        """The line as text: bar, step, loss, tokens per second, time left, last validation losses,
        BLEU."""
        recent = self._recent
        step = recent[-1].step
        seconds = sum(done.seconds for done in recent)
        tokens = sum(done.tokens for done in recent)
        loss = sum(done.loss * done.tokens for done in recent) / max(1, tokens)
        used = sum(done.flops for done in recent) / max(seconds, 1e-9) / self._peak
        return (
            f"{bar(step, self._steps)} {step:,}/{self._steps:,} · loss {loss:.3f} · "
            f"{tokens / max(seconds, 1e-9):,.0f} tokens/s · {100 * used:.0f} % of {self._source} · "
            f"{duration((self._steps - step) * seconds / len(recent))} left{self._measured}"
        )

    def close(self) -> None:
        """Ends the line."""
        if self._terminal and self._recent:
            print(file=sys.stderr)


def bar(done: int, steps: int) -> str:
    """Share that is done, as a bar of ``BAR_WIDTH`` characters."""
    filled = BAR_WIDTH * done // steps
    return f"{'█' * filled}{'·' * (BAR_WIDTH - filled)}"


def duration(seconds: float) -> str:
    """Seconds as h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def peak(device: torch.device, dtype: torch.dtype) -> tuple[float, str]:
    """The speed in FLOP/s that products can reach on a device, and where the number comes from.

    That is a data sheet, or the best of three products of 512 × 512 matrices made now with this
    process's threads.
    """
    if device.type == "cuda" and dtype == torch.bfloat16:
        name = torch.cuda.get_device_name(device)
        for model, flops in PEAKS.items():
            if model in name:
                return 1e12 * flops, f"peak of {name}"
    matrix = torch.full((SIZE, SIZE), 0.5, device=device, dtype=dtype)
    times = timeit.repeat(lambda: (matrix @ matrix)[0, 0].item(), number=1, repeat=3)
    return 2 * SIZE**3 / min(times), "a measured product"
