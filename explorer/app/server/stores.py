"""The server's memory for all visitors together: the values and models used most recently."""

from __future__ import annotations

import gc
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeAlias, TypeVar
from weakref import WeakSet, WeakValueDictionary

import transformer
from explorer.app.server import memory
from transformer.hub.files import size
from transformer.run import Translation

if TYPE_CHECKING:
    from explorer.app.server.writer import LanguageWriter

MOST_BYTES = 512 * 2**20
"""Most bytes of translations that a store keeps for all visitors together, not counting the newest."""
_NODE = 400
"""Bytes that a node of a search's tree takes, about."""
V = TypeVar("V")
P = ParamSpec("P")
S = TypeVar("S")
Key = tuple[str, str, int]
"""Name, directory and modification time of a model."""
Model: TypeAlias = "transformer.Translator | LanguageWriter"
"""Model behind the requests of pages: one that translates, or one that writes."""
Size = Callable[[Any], int] | None
"""Gives the bytes of a value, of a store that is bounded by them, too."""


class Recent(Generic[V]):
    """A thread-safe store, shared by all visitors, of the values used most recently."""

    def __init__(
        self,
        entries: int,  # most values kept
        size: Size = None,  # if given, the store keeps at most `MOST_BYTES`
    ) -> None:
        self.entries, self._size, self._lock = entries, size, threading.Lock()
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
            while len(self._values) > 1 and self._full():
                self._values.popitem(last=False)
        return value

    def _full(self) -> bool:
        return len(self._values) > self.entries or sum(size for _, size in self._values.values()) > MOST_BYTES

    def drop(self, model: str) -> None:
        """Forgets what was made with a model: keys that begin with the model's name or a request for it."""
        with self._lock:
            for key in list(self._values):
                first = key[0] if isinstance(key, tuple) and key else key
                if getattr(first, "model", first) == model:
                    del self._values[key]

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._values.clear()

    def __contains__(self, key: Hashable) -> bool:
        with self._lock:
            return key in self._values


_stores = WeakSet[Recent[Any]]()
_looked_up: ContextVar[dict[Hashable, Any] | None] = ContextVar("looked_up", default=None)


def begin() -> None:
    """Notes that a page or a part of one runs, and forgets what was looked up before."""
    memory.give_back()
    memory.used()
    _looked_up.set({})


def once(key: Hashable, make: Callable[[], V]) -> V:
    """A value that is looked up once per run of a page or a part; outside of them, each time."""
    remember = _looked_up.get()
    if remember is None:
        return make()
    if key not in remember:
        remember[key] = make()
    value: V = remember[key]
    return value


def bytes_of(translation: Translation) -> int:
    """Bytes that a translation holds in memory: the trace, the residual stream, the tree of a search."""
    trace = translation.attention
    if trace is None:
        return 0
    records = [*trace.embeddings.values(), *trace.residuals.values()]
    sizes = [getattr(part, "nbytes", 0) for record in records for part in vars(record).values()]
    nodes = 0 if translation.tree is None else len(translation.tree.nodes)
    return trace.nbytes + sum(sizes) + _NODE * nodes


class Decorator(Protocol[S]):
    """What `remembered` returns: it decorates functions of a subject and of hashable values."""

    def __call__(self, make: Callable[Concatenate[S, P], V], /) -> Callable[Concatenate[S, P], V]: ...


def remembered(
    key: Callable[[S], tuple[Hashable, ...]],  # what tells one state of a subject from another
    entries: int,  # most values that are kept
    size: Size = None,
) -> Decorator[S]:
    """Keeps what a function of a subject and of hashable values returns, as long as the key is the same.

    What merely listens, such as a progress bar, is given by keyword, and is no part of the key.
    """

    def decorate(make: Callable[Concatenate[S, P], V]) -> Callable[Concatenate[S, P], V]:
        store = Recent[V](entries, size)

        @wraps(make)
        def remember(subject: S, /, *of: P.args, **listens: P.kwargs) -> V:
            return store.get((*key(subject), *of), lambda: make(subject, *of, **listens))

        return remember

    return decorate


class NoRoomError(ValueError):
    """A model does not fit into the free memory."""


class Residents:
    """Models in memory: at most `most`, and only as many as fit; the least recently used one leaves first.

    A model that leaves while somebody computes with it stays alive until they finish. Until then `get` finds
    it again.
    """

    def __init__(
        self,
        most: int,  # most models that stay
    ) -> None:
        self._most = most
        self._recent = OrderedDict[Key, Model]()
        self._alive = WeakValueDictionary[Key, Model]()
        self._lock, self._loading = threading.RLock(), threading.Lock()

    def __contains__(self, key: Key) -> bool:
        with self._lock:
            return key in self._alive

    def leave_gpu(self) -> None:
        """Lets every model in memory compute on the CPU from now on."""
        for model in list(self._alive.values()):
            model.leave_gpu()

    def get(
        self,
        key: Key,  # which model
        needed: int,  # bytes of memory that the model takes
        load: Callable[[], Model],  # loads the model
    ) -> Model:
        """The model of a key, loaded if nobody has it; models load one at a time.

        NoRoomError if the model does not fit into memory.
        """
        if (model := self._used(key)) is not None:
            return model
        with self._loading:
            if (model := self._used(key)) is not None:
                return model
            self._make_room(key[0], needed)
            model = load()
            self._use(key, model)
            return model

    def _used(self, key: Key) -> Model | None:
        """The model of a key, which is now the one used last; None if nobody has it."""
        with self._lock:
            if (model := self._alive.get(key)) is not None:
                self._use(key, model)
            return model

    def _use(self, key: Key, model: Model) -> None:
        with self._lock:
            self._alive[key] = self._recent[key] = model
            self._recent.move_to_end(key)
            while len(self._recent) > self._most:
                self._leave()

    def _make_room(self, name: str, needed: int) -> None:
        while memory.available() < needed and self._recent:
            self._leave()
            gc.collect()
        if (free := memory.available()) < needed:
            raise NoRoomError(
                f"{name} needs {size(needed)} of memory, but only {size(free)} is free: "
                "choose a smaller model."
            )

    def _leave(self) -> None:
        with self._lock:
            (name, _, _), _ = self._recent.popitem(last=False)
        for store in list(_stores):
            store.drop(name)
