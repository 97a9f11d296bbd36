"""Looking at a run and changing it: one object that the model calls with the name of every place.

A name is a path that a person can type, such as ``decoder.2.cross_attention.weights``
(``hook_names`` lists all). The model goes on with what the call returns. Where nobody looks,
``hooks`` is None and nothing is called. One ``Hooks`` belongs to one request and travels where its
cache travels, so threads share the model.

| name | value |
|---|---|
| ``encoder.tokens``, ``.input`` | (batch, new, d_model) scaled token embeddings; with positions |
| ``encoder.positions`` | (new, d_model) the encoding that is added |
| ``encoder.output`` | (batch, source, d_model) what cross-attention reads |
| ``encoder.0.self_attention.query`` | (batch, heads, length, d_head) |
| ``….key``, ``….value`` | (batch, key heads, length, d_head), each read by a group of heads |
| ``….scores``, ``….weights`` | (batch, heads, queries, keys) of equation 1 |
| ``….centres`` | (batch, 1, queries) positions that local attention looks at |
| ``….mask`` | (batch or 1, 1, queries, keys) bool, True = may attend |
| ``….heads`` | (batch, heads, queries, d_head) weights @ values, which W_O reads |
| ``encoder.0.feed_forward.hidden`` | (batch, new, d_ff) inner units after the activation |
| ``encoder.0.self_attention.read`` | (batch, new, d_model) what a sub-layer reads |
| ``encoder.0.self_attention.output`` | (batch, new, d_model) what it adds |
| ``encoder.0.self_attention.stream`` | (batch, new, d_model) the residual stream after it |
| ``encoder.encoding`` | a module: the positional encoding of a stack |
| ``encoder.norm``, ``encoder.0.self_attention.norm`` | modules: LayerNorms |
| ``logits`` | (batch, new, pieces) |
| ``….own`` | in a recording: the value of the name before it, where something changed that |
| ``….padding``, ``.bias``, ``.vector``, ``.gain``, ``.shift`` | recorded beside what reads them |
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from transformer.config import ENCODINGS, ModelConfig

HookFunction = Callable[[Tensor, int], Tensor]
"""(value, position of its first row, from 0) → a value of the same shape."""
HookFunctions = HookFunction | Sequence[HookFunction]
"""What changes one value: a function, or several in the order in which they act."""
ATTENTION = frozenset({"query", "key", "value", "centres", "heads", "tokens", "positions", "input"})
"""The parts that a trace of attention needs, those of the embeddings among them."""
STREAM = frozenset({"read", "output", "stream"})
"""The parts of the residual stream."""
CONSTANTS = frozenset({"padding", "bias", "vector", "gain", "shift"})
"""Parts that never change in a run; recorded wherever the attention or the embedding beside them
is."""
UNFUSED = frozenset({"mask", "scores", "weights"})
"""Parts that fused attention does not compute."""
_ATTENDING = ("query", "key", "value", "scores", "mask", "weights", "heads")
PARTS = ATTENTION | STREAM | CONSTANTS | UNFUSED | {"hidden", "logits"}
"""Last parts of names; of those that a model does not have, nothing is recorded."""
OWN = ".own"
"""Ends the name of a value before something changed it."""
_CACHED = frozenset({"key", "value"})
"""Parts that each call gives in full, the cached rows too."""


@dataclass(frozen=True)
class HookName:
    """A name of a value, taken apart: ``decoder.0.cross_attention.query.own``."""

    path: str  # where it is: ``decoder.0.cross_attention``; "" for the logits, or a part alone
    part: str  # which value of that place it is: ``query``
    original: bool = False  # whether it is the value before something changed it

    @classmethod
    def of(cls, name: str) -> Self:
        """Takes a name apart."""
        used = name.removesuffix(OWN)
        (path, _, part) = used.rpartition(".")
        return cls(path=path, part=part, original=used != name)

    @property
    def used(self) -> str:
        """The name of the value with which the model goes on."""
        return f"{self.path}.{self.part}" if self.path else self.part

    @property
    def side(self) -> str:
        """The stack in which it is; "" for the logits, or a part alone."""
        return self.path.partition(".")[0]


@dataclass(frozen=True)
class Capture:
    """Parts of a run to record: queries, keys, values, outputs, padding and embeddings."""

    # also every sub-layer's input and output, and the residual stream around it
    residual: bool = False

    @property
    def parts(self) -> frozenset[str]:
        """What hooks record."""
        return ATTENTION | STREAM if self.residual else ATTENTION


class At(NamedTuple):
    """What an edit may need to know of the place where it acts."""

    first: int = 0  # position of the first row, from 0
    mask: Tensor | None = None  # at weights: (…, queries, keys), True = may attend
    bias: Tensor | None = None  # at scores: the part of them that positions add, undivided by √d_k


START = At()
Edit = Callable[[Any, At], Any]
"""(value, where it is) → the value with which the model goes on."""


class _Plan(NamedTuple):
    """What is done at one place, alike in every call."""

    edits: Sequence[Edit]
    recorded: bool
    cached: bool  # whether each call gives all rows, so that only the last is kept


class Hooks:
    """Records values by name, and changes some; the model refuses names that it does not have.

    ``function_edits`` makes edits of a user's functions.
    """

    def __init__(
        self,
        # names, or last parts of names such as "query", that are recorded
        record: Collection[str] = (),
        # by name, the changes, one after another
        edits: Mapping[str, Sequence[Edit]] | None = None,
    ) -> None:
        self.record = frozenset(record)
        self.edits = dict(edits or {})
        # in the order of the calls; of what each call gives in full, such as keys, the last; where
        # an edit acted, ``name.own`` has the value before it
        self.recorded: dict[str, list[Tensor]] = {}
        for name in self.edits:
            if "." not in name and name != "logits":
                raise ValueError(
                    f"An edit needs a whole name, not {name!r:.40}; model.hook_names() lists them."
                )
        names = [HookName.of(name) for name in (*self.edits, *self.record)]
        # attentions whose scores or weights somebody wants, which fused kernels do not have; "" for
        # all
        self.unfused = {name.path for name in names if name.part in UNFUSED}
        # whether somebody looks at the residual stream; residual connections call nothing otherwise
        self.in_stream = any(
            name.part in STREAM | {"norm"} and name.path not in ("encoder", "decoder")
            for name in names
        )
        self._checked: ModelConfig | None = None  # of the model that has all these places
        # the same name comes again with every step
        self._plans: dict[str, _Plan] = {}

    def __call__(self, name: str, value: Any, at: At = START) -> Any:
        """The value with which the model goes on."""
        plan = self._plans.get(name)
        if plan is None:
            plan = self._plans[name] = self._plan(name)
        before = value
        for edit in plan.edits:
            value = edit(value, at)
        if plan.recorded and isinstance(value, Tensor):
            self._keep(name, value, plan.cached)
            if value is not before:
                self._keep(name + OWN, before, plan.cached)
        return value

    def _plan(self, name: str) -> _Plan:
        part = HookName.of(name).part
        return _Plan(
            edits=self.edits.get(name, ()),
            recorded=name in self.record or part in self.record,
            cached=part in _CACHED,
        )

    def _keep(self, name: str, value: Tensor, cached: bool) -> None:
        if cached or name not in self.recorded:
            self.recorded[name] = [value]
        else:
            self.recorded[name].append(value)

    def check(self, config: ModelConfig) -> None:
        """ValueError if a model of this config lacks a place; it asks at the beginning of every
        pass."""
        if self._checked is config:
            return
        names = [name for name in (*self.edits, *self.record) if name not in PARTS]
        if names:  # a capture asks for general parts alone
            check_places(names, {*hook_names(config), *module_names(config)})
        self._checked = config

    def constants(self, name: str, **values: Tensor | None) -> None:
        """Records what belongs to an attention or an input but never changes, if that is
        recorded."""
        if {"query", "input", f"{name}.query", name}.isdisjoint(self.record):
            return
        for part, value in values.items():
            if value is not None:
                self.recorded[f"{name}.{part}"] = [value]

    def values(self, name: str) -> Tensor:
        """Everything that was recorded under a name, rows side by side; KeyError if nothing was."""
        rows = self.recorded[name]
        part = HookName.of(name).part
        if part in UNFUSED:  # while decoding, each row sees one key more
            n_keys = rows[-1].shape[-1]
            rows = [torch.nn.functional.pad(row, (0, n_keys - row.shape[-1])) for row in rows]
        if len(rows) == 1:
            return rows[0]
        return torch.cat(rows, dim=-1 if part == "centres" else -2)


def hook_names(config: ModelConfig) -> tuple[str, ...]:
    """Every name of a value that a model of this config calls its hooks with, in the order of a
    run.

    Modules have names, too (see above); only interventions put others in their places.
    """
    names = list[str]()
    for side, stack in config.stacks.items():
        names.append(f"{side}.tokens")
        if ENCODINGS[config.positions].acts == "embeddings":
            names.append(f"{side}.positions")
        names.append(f"{side}.input")
        for sublayer in stack.passed():
            inner = ("hidden",) if sublayer.name == "feed_forward" else _ATTENDING
            parts = ("read", *inner, "output", "stream")
            names += [f"{sublayer.path}.{part}" for part in parts]
        if side == "encoder":
            names.append("encoder.output")
    for site in config.sites.values():
        if config.stacks[site.query_side].passed():
            continue
        path = site.paths[0]
        if config.score == "local":
            names.append(f"{path}.centres")
        names += [f"{path}.{part}" for part in _ATTENDING]
    return (*names, "logits")


def module_names(config: ModelConfig) -> tuple[str, ...]:
    """Every name of a module that a model of this config calls its hooks with, and may get another
    for."""
    names = list[str]()
    for side, stack in config.stacks.items():
        names += [f"{side}.encoding", f"{side}.norm"]
        names += [f"{sublayer.path}.norm" for sublayer in stack.passed()]
    return tuple(names)


def check_places(names: Iterable[str], places: Collection[str]) -> None:
    """ValueError if a name is none of a model's places."""
    for name in names:
        if name not in places:
            lists = "model.hook_names() lists all, layers from 0."
            raise ValueError(f"There is no place {name!r:.60} in this model; {lists}")


def function_edits(
    functions: Mapping[str, HookFunctions], config: ModelConfig
) -> dict[str, list[Edit]]:
    """A user's functions as edits; several of one place act one after another.

    ValueError if the model has no such place; and in the run, if a function returns another shape
    or no tensor.
    """
    by_name = dict[str, tuple[HookFunction, ...]]()
    for name, function in functions.items():
        several = tuple(function) if isinstance(function, Sequence) else (function,)
        if not several or not all(map(callable, several)):
            raise ValueError(f"The hook at {name!r:.60} is no function.")
        by_name[name] = several
    check_places(by_name, hook_names(config))
    return {
        name: [partial(_changed, name, function) for function in several]
        for name, several in by_name.items()
    }


def _changed(name: str, function: HookFunction, value: Tensor, at: At) -> Tensor:
    """What a user's function makes of a value; ValueError if it is something else."""
    result = function(value.clone(), at.first)  # it may change its copy in place
    if fault := _fault(result, value):
        (returned, must) = fault
        raise ValueError(f"The hook at {name} returned {returned}; it must {must}.")
    return result


def _fault(result: object, value: Tensor) -> tuple[str, str] | None:
    """What a function returned, and what it must do instead; None if all is well."""
    if not isinstance(result, Tensor):
        return type(result).__name__, "return a tensor"
    if result.shape != value.shape:
        return f"shape {tuple(result.shape)}", f"keep {tuple(value.shape)}"
    if _storage(result) != _storage(value):
        return _storage(result), f"keep {_storage(value)}"
    if bool(result.isnan().any()) and not bool(value.isnan().any()):
        return "what is not a number", "return numbers"
    return None


def _storage(tensor: Tensor) -> str:
    return f"{tensor.layout} {tensor.dtype} on {tensor.device}".replace("torch.", "")
