"""The processes that train or measure one model together, each with its share of the work.

`torchrun --nproc-per-node=N -m transformer train …` starts N processes (`torch.distributed`: gloo on CPUs,
NCCL on GPUs). Without dropout they make the same steps as one process with N times `accumulate`:

- Of the batches of a step, process r of N takes number r, r + N, …, so no pair is read twice.
- DistributedDataParallel *averages* gradients over processes. The loss of a step is a sum over tokens, so
  each process scales its own sum by N ÷ (tokens of all processes).
- Process 0 alone writes files. All processes agree when to stop, since a process that leaves on its own would
  leave the others waiting for its gradients.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TypeVar

import torch
from torch import distributed, nn
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

T = TypeVar("T")
Item = TypeVar("Item")


class JobError(ConnectionError):
    """Another process of the job has ended, so this one cannot continue."""


@dataclass(frozen=True)
class Workers:
    """One process that works alone; `ProcessGroup` does the same work as one of several processes."""

    rank: int = 0  # number of this process, from 0; process 0 writes the files
    world: int = 1  # number of processes

    @property
    def first(self) -> bool:
        """True if this process writes files and progress."""
        return self.rank == 0

    def sum(self, *numbers: float) -> list[float]:
        """The sums of numbers over all processes."""
        return list(numbers)

    def gather(self, value: T) -> list[T]:
        """The values of all processes, by rank."""
        return [value]

    def each(self, work: Callable[[Item], T], items: Iterable[Item]) -> Iterator[T]:
        """Results of `work` for each item, in their order, in every process; each process does its share.

        An error that `work` raises (`ValueError`, `OSError`) is raised in every process.
        """
        return map(work, items)

    def agree(self, make: Callable[[], T]) -> T:
        """Result of process 0, in every process; an error of process 0 is raised in every process."""
        return make()

    def share(self, module: nn.Module) -> nn.Module:
        """The module, with gradients averaged over all processes."""
        return module

    def local(self, module: nn.Module) -> AbstractContextManager[None]:
        """A context in which gradients are added up in this process only."""
        return nullcontext()

    def together(self) -> AbstractContextManager[None]:
        """A context for work of all processes; JobError if one of them has ended."""
        return nullcontext()

    def part_random(self, seed: int) -> None:
        """Gives each process after the first a random stream of its own, for dropout."""


ALONE = Workers()


@dataclass(frozen=True)
class ProcessGroup(Workers):
    """One of several processes of a `torch.distributed` group."""

    device: torch.device = field(kw_only=True)  # where the numbers are that the processes exchange

    def sum(self, *numbers: float) -> list[float]:
        total = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        with _lost_processes_named():
            distributed.all_reduce(total)
        return [float(each) for each in total]

    def gather(self, value: T) -> list[T]:
        values: list[T | None] = [None] * self.world
        with _lost_processes_named():
            distributed.all_gather_object(values, value)
        return values  # type: ignore[return-value]

    def each(self, work: Callable[[Item], T], items: Iterable[Item]) -> Iterator[T]:
        items = list(items)
        shares = list[list[T]]()
        for share in self.gather(self._done(work, items[self.rank :: self.world])):
            if isinstance(share, Exception):
                raise share
            shares.append(share)
        return (shares[place % self.world][place // self.world] for place in range(len(items)))

    @staticmethod
    def _done(work: Callable[[Item], T], items: Sequence[Item]) -> list[T] | Exception:
        try:
            return [work(item) for item in items]
        except (ValueError, OSError) as error:
            return error

    def agree(self, make: Callable[[], T]) -> T:
        made: list[T | Exception | None] = [None]
        if self.first:
            try:
                made = [make()]
            except (ValueError, OSError) as error:
                made = [error]
        with _lost_processes_named():
            distributed.broadcast_object_list(made, src=0)
        if isinstance(made[0], Exception):
            raise made[0]
        return made[0]  # type: ignore[return-value]

    def share(self, module: nn.Module) -> nn.Module:
        devices = [self.device] if self.device.type == "cuda" else None
        return DistributedDataParallel(module, devices, forward_sync_buffers=False)

    def local(self, module: nn.Module) -> AbstractContextManager[None]:
        assert isinstance(module, DistributedDataParallel)
        return module.no_sync()

    def together(self) -> AbstractContextManager[None]:
        return _lost_processes_named()

    def part_random(self, seed: int) -> None:
        if not self.first:
            torch.manual_seed(seed + 1_000_003 * self.rank)


@contextmanager
def _lost_processes_named() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, torch.OutOfMemoryError):
            raise
        raise JobError("Another process of the job has ended; this one stops, too.") from error


@contextmanager
def joined(device: torch.device) -> Iterator[tuple[Workers, torch.device]]:
    """Joins the group that torchrun has started, if any; this process among the others, and its own device.

    After a restart torchrun keeps its store, with the addresses of the processes that have ended. Each
    attempt therefore writes under a prefix of its own.
    """
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        yield ALONE, device
        return
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    backend = "nccl" if device.type == "cuda" else "gloo"
    store, rank, world = next(rendezvous("env://"))
    attempt = PrefixStore(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"), store)
    distributed.init_process_group(backend, store=attempt, rank=rank, world_size=world)
    try:
        yield ProcessGroup(rank, world, device=device), device
    finally:
        distributed.destroy_process_group()
