"""Looking at a run and changing it: one object that the model calls with the name of every place.

A name is a path that a person can type, such as ``decoder.2.cross_attention.weights``
(``hook_names`` lists all). The model goes on with what the call returns. Where nobody looks,
``hooks`` is None and nothing is called. One ``Hooks`` belongs to one request and travels where its
cache travels, so threads share the model.

| name | value |
|---|---|
| ``encoder.tokens``, ``.input`` | (batch, new, d_model) scaled token embeddings; with their
    encoding |
| ``encoder.positions`` | (new, d_model) the encoding that is added |
| ``encoder.output`` | (batch, source, d_model) what cross-attention reads |
| ``encoder.0.self_attention.query``, ``.key``, ``.value`` | (batch, heads, length, d_head) |
| ``….scores``, ``….weights`` | (batch, heads, queries, keys) of equation 1 |
| ``….centres`` | (batch, 1, queries) positions that local attention looks at |
| ``….mask`` | (batch or 1, 1, queries, keys) bool, True = may attend |
| ``….heads`` | (batch, heads, queries, d_head) weights @ values, which W_O reads |
| ``encoder.0.feed_forward.hidden`` | (batch, new, d_ff) inner units after the activation |
| ``encoder.0.self_attention.read``, ``.output``, ``.stream`` | (batch, new, d_model) what a \
sub-layer reads, what it adds, the residual stream after it |
| ``encoder.encoding``, ``encoder.0.self_attention.norm``, ``encoder.norm`` | modules: the
    positional \
encoding of a stack, and LayerNorms |
| ``logits`` | (batch, new, pieces) |
| ``….own`` | in a recording: the value of the name before it, where something changed that |
| ``….padding``, ``.bias``, ``.vector``, ``.gain``, ``.shift`` | recorded beside the place that
    reads them |
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

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
_WHOLE = (".key", ".value")
"""What each call gives whole, the cached rows too."""


@dataclass(frozen=True)
class Capture:
    """Parts of a run to record: queries, keys, values, outputs, padding and embeddings."""

    residual: bool = (
        False  # also every sub-layer's input and output, and the residual stream around it
    )

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


class Hooks:
    """Records values by name, and changes some; the model refuses names of places that it does not
    have.

    ``function_edits`` makes edits of a user's functions.
    """

    def __init__(
        self,
        record: Collection[
            str
        ] = (),  # names, or last parts of names such as "query", that are recorded
        edits: Mapping[str, Sequence[Edit]]
        | None = None,  # by name, the changes, one after another
    ) -> None:
        self.record = frozenset(record)
        self.edits = dict(edits or {})
        # in the order of the calls; of what each call gives whole, such as keys, the last; where an
        # edit acted, ``name.own`` has the value before it
        self.recorded: dict[str, list[Tensor]] = {}
        if wrong := [name for name in self.edits if "." not in name and name != "logits"]:
            whole = f"An edit needs a whole name, not {wrong[0]!r:.40}"
            raise ValueError(f"{whole}; model.hook_names() lists them.")
        places = [name.rpartition(".") for name in (*self.edits, *self.record)]
        # attentions whose scores or weights somebody wants, which fused kernels do not have; "" for
        # all
        self.unfused = {place for place, _, part in places if part in UNFUSED}
        # whether somebody looks at the residual stream; residual connections call nothing otherwise
        self.in_stream = any(
            part in STREAM | {"norm"} and place not in ("encoder", "decoder")
            for place, _, part in places
        )
        self._checked: ModelConfig | None = None  # of the model that has all these places
        # the same name comes again with every step
        self._plans: dict[str, tuple[Sequence[Edit], bool, bool]] = {}

    def __call__(self, name: str, value: Any, at: At = START) -> Any:
        """The value with which the model goes on."""
        plan = self._plans.get(name)
        if plan is None:
            recorded = name in self.record or name.rpartition(".")[2] in self.record
            plan = self._plans[name] = self.edits.get(name, ()), recorded, name.endswith(_WHOLE)
        edits, recorded, whole = plan
        own = value
        for edit in edits:
            value = edit(value, at)
        if recorded and isinstance(value, Tensor):
            kept = ((name, value),) if value is own else ((name, value), (f"{name}.own", own))
            for place, each in kept:
                if whole or place not in self.recorded:
                    self.recorded[place] = [each]
                else:
                    self.recorded[place].append(each)
        return value

    def check(self, config: ModelConfig) -> None:
        """ValueError if a model of this config lacks a place; it asks at the beginning of every
        pass."""
        if self._checked is config:
            return
        places = {*hook_names(config), *module_names(config)}
        check_places((name for name in (*self.edits, *self.record) if name not in PARTS), places)
        self._checked = config

    def constants(self, name: str, **values: Tensor | None) -> None:
        """Records what belongs to an attention or an input but never changes, if that is
        recorded."""
        if {"query", "input", f"{name}.query", name} & self.record:
            self.recorded |= {
                f"{name}.{part}": [each] for part, each in values.items() if each is not None
            }

    def values(self, name: str) -> Tensor:
        """Everything that was recorded under a name, rows side by side; KeyError if nothing was."""
        parts = self.recorded[name]
        part = name.removesuffix(".own").rpartition(".")[2]
        if part in UNFUSED:  # while decoding, each row sees one key more
            keys = parts[-1].shape[-1]
            parts = [torch.nn.functional.pad(each, (0, keys - each.shape[-1])) for each in parts]
        return (
            parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1 if part == "centres" else -2)
        )


def hook_names(config: ModelConfig) -> tuple[str, ...]:
    """Every name of a value that a model of this config calls its hooks with, in the order of a
    run.

    Modules have names, too (see above); only interventions put others in their places.
    """
    names = list[str]()
    adds = ("positions",) * (ENCODINGS[config.positions].acts == "embeddings")
    for side, stack in config.stacks.items():
        names += [f"{side}.{part}" for part in ("tokens", *adds, "input")]
        for sublayer in stack.passed():
            parts = ("hidden",) if sublayer.name == "feed_forward" else _ATTENDING
            names += [f"{sublayer.path}.{part}" for part in ("read", *parts, "output", "stream")]
        names += ["encoder.output"] if side == "encoder" else []
    for site in config.sites.values():
        if not config.stacks[site.query_side].passed():
            local = ("centres",) * (config.score == "local")
            names += [f"{site.sublayer(0).path}.{part}" for part in (*local, *_ATTENDING)]
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
    by_name = {
        name: tuple(each) if isinstance(each, Sequence) else (each,)
        for name, each in functions.items()
    }
    for name, each in by_name.items():
        if not each or not all(map(callable, each)):
            raise ValueError(f"The hook at {name!r:.60} is no function.")
    check_places(by_name, hook_names(config))

    def changed(name: str, function: HookFunction, value: Tensor, at: At) -> Tensor:
        result: Any = function(value.clone(), at.first)  # it may change its copy in place
        kinds = [
            f"{x.layout} {x.dtype} on {x.device}" for x in (result, value) if isinstance(x, Tensor)
        ]
        if not isinstance(result, Tensor):
            returned, must = type(result).__name__, "return a tensor"
        elif result.shape != value.shape:
            returned = f"shape {tuple(result.shape)}"
            must = f"keep {tuple(value.shape)}"
        elif kinds[0] != kinds[1]:
            returned, must = (kind.replace("torch.", "") for kind in (kinds[0], f"keep {kinds[1]}"))
        elif bool(result.isnan().any()) and not bool(value.isnan().any()):
            returned, must = "what is not a number", "return numbers"
        else:
            return result
        raise ValueError(f"The hook at {name} returned {returned}; it must {must}.")

    return {
        name: [partial(changed, name, function) for function in each]
        for name, each in by_name.items()
    }
