"""The server's memory for all visitors together: the values and models used most recently."""

from __future__ import annotations

import gc
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload
from weakref import WeakSet, WeakValueDictionary

import transformer
from explorer.app.server import memory
from transformer.hub.files import size
from transformer.run import Translation

MOST_BYTES = 512 * 2**20
"""Most bytes of translations that a store keeps for all visitors together, not counting the
newest."""
_NODE = 400
"""Bytes that a node of a search's tree takes, about."""
V = TypeVar("V")
P = ParamSpec("P")
S = TypeVar("S", bound="Subject")
Owner = TypeVar("Owner")
Size = Callable[[V], int] | None
"""Gives the bytes of a value, of a store that is bounded by them, too."""


class Fact(Generic[Owner, V]):
    """An attribute that is read once, without the lock of `cached_property`, which others await."""

    def __init__(self, read: Callable[[Owner], V]) -> None:
        self._read = read
        self.__doc__ = read.__doc__

    @overload
    def __get__(self, subject: None, _: type) -> Self: ...
    @overload
    def __get__(self, subject: Owner, _: type) -> V: ...
    def __get__(self, subject: Owner | None, _: type) -> Self | V:
        if subject is None:
            return self
        value = self._read(subject)
        vars(subject)[self._read.__name__] = value
        return value


class Recent(Generic[V]):
    """A thread-safe store, shared by all visitors, of the values used most recently."""

    def __init__(
        self,
        entries: int,  # most values kept
        size: Size[V] = None,  # if given, the store keeps at most `MOST_BYTES`
    ) -> None:
        self.entries = entries
        self._size = size
        self._lock = threading.Lock()
        self._values = OrderedDict[Hashable, tuple[V, int]]()
        _stores.add(self)

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        """The value of a key, made if it is missing; two visitors at once may both make it."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key][0]
        value = make()
        with self._lock:
            self._values[key] = value, 0 if self._size is None else self._size(value)
            sizes = [size for _, size in self._values.values()]  # the oldest first
            while len(sizes) > 1 and (len(sizes) > self.entries or sum(sizes) > MOST_BYTES):
                self._values.popitem(last=False)
                del sizes[0]
        return value

    def drop(self, model: str) -> None:
        """Forgets what was made with a model: keys that begin with the model's name or a request
        for it."""
        with self._lock:
            for key in list(self._values):
                first = key[0] if isinstance(key, tuple) and key else key
                if getattr(first, "model", first) == model:
                    del self._values[key]

    def __contains__(self, key: Hashable) -> bool:
        with self._lock:
            return key in self._values


class Store(Protocol):
    """What keeps values that models made."""

    def drop(self, model: str) -> None:
        """Forgets those of a model."""


_stores = WeakSet[Store]()


def bytes_of(translation: Translation) -> int:
    """Bytes that a translation holds in memory: the trace, the residual stream, the tree of a
    search."""
    trace = translation.attention
    if trace is None:
        return 0
    records = [*trace.embeddings.values(), *trace.residuals.values()]
    sizes = [
        getattr(field_value, "nbytes", 0)
        for record in records
        for field_value in vars(record).values()
    ]
    nodes = 0 if translation.tree is None else len(translation.tree.nodes)
    return trace.nbytes + sum(sizes) + _NODE * nodes


class Subject(Protocol):
    """What values are made of: a model, a request for a run, or a run."""

    @property
    def identity(self) -> tuple[Hashable, ...]:
        """Tells one state of the subject from another.

        Begins with the model's name, or the request.
        """


def remembered(
    entries: int,  # most values that are kept
    size: Size[Any] = None,  # the bytes of a value, if they are bounded, too
) -> Callable[[Callable[Concatenate[S, P], V]], Callable[Concatenate[S, P], V]]:
    """Keeps what a function of a subject and of hashable values returns, as long as the subject is
    the same: of a model until it is loaded again, of a sentence for the same run of it.

    What merely listens, such as a progress bar, is given by keyword, and is no part of the key.
    """

    def decorate(make: Callable[Concatenate[S, P], V]) -> Callable[Concatenate[S, P], V]:
        store = Recent[V](entries, size)

        @wraps(make)
        def remember(subject: S, /, *of: P.args, **listens: P.kwargs) -> V:
            return store.get((*subject.identity, *of), lambda: make(subject, *of, **listens))

        return remember

    return decorate


class Handle(Hashable, Protocol):
    """A model that may be loaded."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def needs(self) -> int:
        """The bytes of memory that it needs."""


@dataclass(eq=False)
class Residents:
    """Models in memory: at most `most`, and only as many as fit; the least recently used one leaves
    first.

    A model that leaves while somebody computes with it stays alive until they finish. Until then
    `get` finds it again.
    """

    most: int  # most models that stay
    # the models that somebody has, be it only until they have finished
    alive: WeakValueDictionary[Handle, transformer.Translator] = field(
        default_factory=WeakValueDictionary
    )
    _recent: OrderedDict[Handle, transformer.Translator] = field(default_factory=OrderedDict)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _loading: threading.Lock = field(default_factory=threading.Lock)

    def leave_gpu(self) -> None:
        """Lets every model in memory compute on the CPU from now on."""
        with self._lock:
            models = list(self.alive.values())
        for model in models:
            model.leave_gpu()

    def get(
        self,
        handle: Handle,  # which model
        load: Callable[[], transformer.Translator],  # loads the model
        loads: Callable[[], object] = lambda: None,  # hears that it has to be loaded
    ) -> transformer.Translator:
        """The model, loaded if nobody has it, one at a time; it is now the one used last.

        ValueError if the model does not fit into memory.
        """
        if (model := self.alive.get(handle)) is None:
            loads()
            with self._loading:
                if (model := self.alive.get(handle)) is None:
                    self._make_room(handle)
                    model = load()
        with self._lock:
            self.alive[handle] = self._recent[handle] = model
            self._recent.move_to_end(handle)
            while len(self._recent) > self.most:
                self._leave()
        return model

    def _make_room(self, handle: Handle) -> None:
        while memory.available() < handle.needs and self._recent:
            self._leave()
            gc.collect()
        if (free := memory.available()) < handle.needs:
            raise ValueError(
                f"{handle.name} needs {size(handle.needs)} of memory, but only {size(free)} is "
                "free: choose a smaller model."
            )

    def _leave(self) -> None:
        with self._lock:
            handle, _ = self._recent.popitem(last=False)
        for store in list(_stores):
            store.drop(handle.name)
