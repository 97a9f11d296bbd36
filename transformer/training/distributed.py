"""The processes that train or measure one model together, each with its share of the work.

`torchrun --nproc-per-node=N -m transformer train …` starts N processes (`torch.distributed`: gloo
on CPUs, NCCL on GPUs). Without dropout they make the same steps as one process with N times
`accumulate`:

- Of the batches of a step, process r of N takes number r, r + N, …, so no pair is read twice.
- DistributedDataParallel *averages* gradients over processes. The loss of a step is a sum over
    tokens, so
  each process scales its own sum by N ÷ (tokens of all processes).
- Process 0 alone writes files. All processes agree when to stop, since a process that leaves on
    its own would
  leave the others waiting for its gradients.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
    """This process among those that work together; alone, it exchanges nothing."""

    rank: int = 0  # number of this process, from 0; process 0 writes the files
    world: int = 1  # number of processes
    device: torch.device | str = "cpu"  # where the numbers are that the processes exchange

    @property
    def first(self) -> bool:
        """True if this process writes files and progress."""
        return self.rank == 0

    def sum(self, *numbers: float) -> list[float]:
        """The sums of numbers over all processes."""
        if self.world == 1:
            return list(numbers)
        total = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        with self.together():
            distributed.all_reduce(total)
        return [float(number) for number in total]

    def gather(self, work: Callable[[], T]) -> list[T]:
        """Results of all processes, by rank; an error of one (`ValueError`, `OSError`) is raised in
        all."""
        if self.world == 1:
            return [work()]
        result: T | Exception
        try:
            result = work()
        except (ValueError, OSError) as error:
            result = error
        results: list[T | Exception] = [result] * self.world
        with self.together():
            distributed.all_gather_object(results, result)
        answers = list[T]()
        for answer in results:
            if isinstance(answer, Exception):
                raise answer
            answers.append(answer)
        return answers

    def shared_map(self, work: Callable[[Item], T], items: Iterable[Item]) -> Iterator[T]:
        """Results of `work` for each item, in their order, in every process; each process does its
        share."""
        if self.world == 1:
            return map(work, items)
        items = list(items)
        shares = self.gather(lambda: [*map(work, items[self.rank :: self.world])])
        return (shares[place % self.world][place // self.world] for place in range(len(items)))

    def agree(self, make: Callable[[], T]) -> T:
        """Result of process 0, in every process."""
        return self.gather(lambda: [make()] if self.first else [])[0][0]

    def share(self, module: nn.Module) -> nn.Module:
        """The module, with gradients averaged over all processes."""
        if self.world == 1:
            return module
        devices = [torch.device(self.device)] if torch.device(self.device).type == "cuda" else None
        return DistributedDataParallel(module, devices, forward_sync_buffers=False)

    @contextmanager
    def together(self) -> Iterator[None]:
        """A context for work of all processes; JobError if one of them has ended."""
        try:
            yield
        except RuntimeError as error:
            if self.world == 1 or isinstance(error, torch.OutOfMemoryError):
                raise
            raise JobError("Another process of the job has ended; this one stops, too.") from error


ALONE = Workers()


@contextmanager
def joined(device: torch.device) -> Iterator[tuple[Workers, torch.device]]:
    """Joins the group that torchrun has started, if any; this process among the others, and its own
    device.

    After a restart torchrun keeps its store, with the addresses of the processes that have ended.
    Each attempt therefore writes under a prefix of its own.
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
        yield Workers(rank, world, device), device
    finally:
        distributed.destroy_process_group()
