"""Saves and opens a run with its whole trace as one NPZ file, which needs no model to be opened.

Layout, version 4. ``meta`` holds UTF-8 JSON: the run (``transformer.exports.record``), the type that the
model computed in, and the largest difference between the log-probabilities of the decode and of its replay.
Every other array is float32, or bool for masks, and has the name by which hooks know it
(``transformer.hooks``), without the batch:

* ``decoder.0.cross_attention.query``, ``.key``, ``.value``, ``.heads``: (heads, length, d_head), after
  rotation if any; ``.padding``: (keys,), True for tokens, absent if nothing is padded. The causal mask is
  not stored: the decoder always has it;
* ``….bias``: the table of the rule by which the config's encoding adds to the scores; ``….vector``:
  (heads, d_head) of additive scores; ``….centres``: (queries,) where each query of local attention looks;
* ``….value_norms``: (heads, keys) ‖v_j W_O^h‖ with this head's rows of W_O. Multiplied by the weight w_ij,
  this norm is exactly what key j contributes to the update at query i, ‖w_ij · v_j W_O^h‖;
* ``encoder.tokens``, ``.positions``, ``.input``: (length, d_model); and if a norm stands between sum and
  input, its ``.input.gain`` and ``.input.shift`` (d_model,).

What interventions changed is in the run's JSON, counted from 0; all maps are derived from it. A changed run
also has those of these arrays that its changes need: a name with ``.own``, the value before the change;
``change.0``, what the run's first change put in, (heads, d_head) mean outputs or (positions, width) of
another run; ``encoder.0.self_attention.read``, ``.output``, ``.stream`` of every sub-layer and
``encoder.output``, (length, d_model), if only the stream shows what was changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer.audit import LOG_PROB_LIMIT, TOKENS, audit
from transformer.config import ENCODINGS, Place
from transformer.encodings import bias_rule
from transformer.equations import audited_tokens
from transformer.exports.record import (
    TraceFileError,
    in_one_sentence,
    number,
    read_json,
    run_from_dict,
    run_to_dict,
    write_json,
)
from transformer.hooks import STREAM
from transformer.interventions import Ablate, Intervention, NoPositions, Patch
from transformer.interventions.edits import Change
from transformer.model import Network
from transformer.run import NotCapturedError, Translation
from transformer.storage.packed import ArrayFile, write_arrays
from transformer.trace import AttentionTrace
from transformer.view import AS_RECORDED, AuditReport, Check

VERSION = 4
ONE_MATRIX = "The file is JSON, which holds one matrix and is not opened again: save the run as NPZ."
MAX_BYTES = 256 * 2**20
"""Most bytes that a file may unpack to."""
_TYPES = (np.float32, np.bool_, np.uint8)
RECORDED = f"log-probabilities{AS_RECORDED}"
NOTE = (
    "Imported file: its attention was recomputed and checked; its log-probabilities, and what it says of its "
    "model, are as recorded."
)

Arrays = dict[str, NDArray[Any]]
Source = Path | str | IO[bytes]


def model_digest(model: Network) -> str:
    """SHA-256 of the names and values of all weights."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().float().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def save_trace(
    translation: Translation, target: Path | str | IO[bytes], model: Network | None = None
) -> None:
    """Writes a translation with everything that was recorded.

    Args:
        translation: Made with ``capture=True`` and without hooks; with any interventions.
        target: A path, or an open binary file.
        model: The file gets the model's digest, and the norms of the values after its W_O. Without a model,
            the file gets only what an earlier file held.

    Raises:
        NotCapturedError: Nothing was recorded.
        TraceFileError: Hooks changed the run, or the run holds numbers that are not finite.
    """
    trace = translation.attention
    if trace is None:
        raise NotCapturedError("Attention was not recorded; translate with capture=True.")
    if trace.functions:
        raise TraceFileError(
            "Hooks changed this translation, so it cannot be saved as a trace; translate without hooks."
        )
    if model is not None:
        translation = replace(translation, model_sha256=model_digest(model))
        trace = with_value_norms(trace, model)
    meta = {
        "version": VERSION,
        "run": run_to_dict(translation),
        "dtype": str(trace.dtype).removeprefix("torch."),
        "replay_error": max(c.value for c in trace.audit().checks if c.name.startswith("log-probabilities")),
    }
    stream = any(value.part == "stream" for value in trace.interventions)
    arrays = {name: each.numpy() for name, each in trace.tensors.items() if stream or not _of_stream(name)}
    arrays |= {
        f"change.{i}": c.material.float().numpy()
        for i, c in enumerate(trace.changes)
        if c.material is not None
    }
    arrays["meta"] = np.frombuffer(write_json(meta), np.uint8)
    if not isinstance(target, Path | str):
        np.savez_compressed(target, allow_pickle=False, **arrays)
        return
    path = Path(target)
    write_arrays(path if path.suffix == ".npz" else path.with_name(f"{path.name}.npz"), arrays)


def with_value_norms(trace: AttentionTrace, model: Network) -> AttentionTrace:
    """The trace with ‖v_j W_O^h‖ of every key, so that ``contributions`` needs no model."""
    projections, norms = model.output_projection, dict[str, Tensor]()
    for kind, layer in trace.places:
        value = trace.layer(kind, layer).value @ torch.from_numpy(projections(kind, layer))
        norms[f"{trace.config.sites[kind].sublayer(layer).path}.value_norms"] = value.norm(dim=-1)
    return replace(trace, tensors={**trace.tensors, **norms})


@contextmanager
def _opened(source: Source) -> Iterator[IO[bytes]]:
    """Opens the file at a path; passes an open file through."""
    if isinstance(source, Path | str):
        with Path(source).open("rb") as file:
            yield file
    else:
        yield source


def load_trace(source: Source) -> Translation:
    """Opens a file that ``save_trace`` wrote.

    All checks that need no model run again. The difference between the log-probabilities of the replay and of
    the decode comes from the file.

    Args:
        source: A path, or an open binary file.

    Raises:
        TraceFileError: The file is damaged, foreign, too large, or its parts contradict each other.
    """
    with in_one_sentence(), _opened(source) as file:
        start = file.read(16)
        file.seek(0)
        if start.lstrip()[:1] == b"{":
            raise TraceFileError(ONE_MATRIX)
        stored = ArrayFile(file, MAX_BYTES)
        meta = read_json(stored.read("meta", (np.uint8,)).tobytes())
        if meta["version"] != VERSION:
            raise TraceFileError("The file was written by another version of this package.")
        run = run_from_dict(meta["run"])
        arrays = {name: stored.read(name, _TYPES) for name in stored.names() if name != "meta"}
        if not all(np.isfinite(array).all() for array in arrays.values() if array.dtype == np.float32):
            raise TraceFileError("The file holds numbers that are not finite, which no model computes.")
        return _translation(run, meta, arrays)


def _translation(run: Translation, meta: dict[str, Any], arrays: Arrays) -> Translation:
    dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[meta["dtype"]]
    recorded = Check(RECORDED, number(meta["replay_error"]), LOG_PROB_LIMIT[dtype])
    written = [(step.token, step.token_id) for step in run.steps]
    tokens = Check(TOKENS, float(not audited_tokens(run.interventions, run.source_tokens, written)), 0.0)
    others = (tokens, recorded) if run.interventions else (recorded,)

    def auditor(trace: AttentionTrace, places: tuple[Place, ...]) -> AuditReport:
        return audit(trace, places, basis=run.config).joined(AuditReport(others))

    changes = tuple(_change(run, i, value, arrays) for i, value in enumerate(run.interventions))
    _check_names(run, changes, arrays)
    shapes = _shapes(run)
    for name in arrays:
        if name.removesuffix(".own") not in shapes and not name.startswith("change."):
            raise TraceFileError(f"The file holds an array {name[:60]!r} that no run of its config has.")
    tensors = {
        name: _tensor(arrays, name, shapes[name.removesuffix(".own")])
        for name in arrays
        if name.removesuffix(".own") in shapes
    }
    _check_rules(run, tensors)
    trace = AttentionTrace(tensors, run.config, dtype, auditor, changes)
    return replace(run, notes=tuple(dict.fromkeys((*run.notes, NOTE))), attention=trace)


def _change(run: Translation, i: int, value: Intervention, arrays: Arrays) -> Change:
    """A change with what it puts in."""
    config, name = run.config, f"change.{i}"
    shape: tuple[int, ...] | None = None
    if isinstance(value, Ablate) and value.by == "mean":
        shape = len(value.heads(config.n_heads)), config.d_head
    if isinstance(value, Patch):
        width = config.d_head if value.part == "heads" else config.d_model
        length = len(arrays[name]) if value.positions is None else len(value.positions)
        shape = length, width
    return Change(value, None if shape is None else _tensor(arrays, name, shape))


def _of_stream(name: str) -> bool:
    """Whether an array belongs to the residual stream."""
    return name.removesuffix(".own").rpartition(".")[2] in STREAM


def _check_names(run: Translation, changes: tuple[Change, ...], arrays: Arrays) -> None:
    """Raises TraceFileError if arrays are missing that a run has, or are there that it does not name."""
    stream = any(value.part == "stream" for value in run.interventions)
    materials = {f"change.{i}" for i, each in enumerate(changes) if each.material is not None}
    for name in arrays:
        if (name.startswith("change.") and name not in materials) or (_of_stream(name) and not stream):
            raise TraceFileError(f"The file holds an array {name[:60]} of a change that it does not name.")
    for kind, site in run.config.sites.items():
        if f"{site.sublayer(site.n_layers - 1).path}.query" not in arrays:
            raise TraceFileError(f"The file lacks the {kind} attention that its config promises.")
    needed = [f"{side}.{part}" for side in run.config.stacks for part in ("tokens", "input")]
    for site in run.config.sites.values():
        paths = (site.sublayer(layer).path for layer in range(site.n_layers))
        needed += [f"{path}.{part}" for path in paths for part in ("query", "key", "value", "heads")]
        needed += [f"{site.sublayer(0).path}.vector"] * (site.score == "additive")
    if getattr(run.config, "score", "") == "local":
        needed.append("decoder.0.cross_attention.centres")
    if run.config.embedding_norm:
        needed += [f"{side}.input.{part}" for side in run.config.stacks for part in ("gain", "shift")]
    if stream:
        sublayers = [each for stack in run.config.stacks.values() for each in stack.passed()]
        needed += [f"{each.path}.{part}" for each in sublayers for part in STREAM]
        needed += ["encoder.output"] * ("encoder" in run.config.stacks)
    for name in needed:
        if name not in arrays:
            raise TraceFileError(f"The file lacks the array {name}.")


def _check_rules(run: Translation, tensors: Mapping[str, Tensor]) -> None:
    """Raises TraceFileError if positions lack that no change leaves out, or are present although one does."""
    config, bare = run.config, {each.side for each in run.interventions if isinstance(each, NoPositions)}
    acts = ENCODINGS[config.positions].acts
    for side in config.stacks:
        if (side not in bare and acts == "embeddings") != (f"{side}.positions" in tensors):
            raise TraceFileError(f"The file's positions of the {side} contradict its config and its changes.")
    for site in config.sites.values():
        expected = site.own_keys and acts == "scores" and site.query_side not in bare
        for layer in range(site.n_layers):
            table = tensors.get(f"{site.sublayer(layer).path}.bias")
            if expected != (table is not None):
                side = site.query_side
                raise TraceFileError(f"The file's bias in the {side} contradicts its config and its changes.")
            if table is not None:
                bias_rule(config.positions, table, config.n_heads, config.d_head)


def _shapes(run: Translation) -> dict[str, tuple[int | str, ...]]:
    """By name, the shape that config and tokens of a run require; `bias_rule` checks tables."""
    config, length = run.config, {side: len(run.tokens(side)) for side in run.config.stacks}
    heads, shapes = (config.n_heads, config.d_head), dict[str, tuple[int | str, ...]]()
    for side, n in length.items():
        stream = (n, config.d_model)
        shapes |= {f"{side}.{part}": stream for part in ("tokens", "positions", "input", "output")}
        shapes |= {f"{side}.input.{part}": stream[1:] for part in ("gain", "shift")}
        for sublayer in config.stacks[side].passed():
            shapes |= {f"{sublayer.path}.{part}": stream for part in STREAM}
    for site in config.sites.values():
        queries, keys = length[site.query_side], length.get(site.key_side, 0)
        rows, columns = (heads[0], queries, heads[1]), (heads[0], keys, heads[1])
        for layer in range(site.n_layers):
            path = site.sublayer(layer).path
            shapes |= {
                f"{path}.query": rows,
                f"{path}.heads": rows,
                f"{path}.key": columns,
                f"{path}.value": columns,
            }
            shapes |= {
                f"{path}.padding": (keys,),
                f"{path}.value_norms": columns[:2],
                f"{path}.bias": ("any",),
            }
            shapes |= {f"{path}.vector": heads, f"{path}.centres": (queries,)}
    return shapes


def _tensor(arrays: Arrays, name: str, shape: tuple[int | str, ...]) -> Tensor:
    array, mask = arrays[name], name.endswith(".padding")
    if (shape != ("any",) and array.shape != shape) or array.dtype != (np.bool_ if mask else np.float32):
        raise TraceFileError(
            f"The array {name} has the shape {array.shape} and the type {array.dtype}; "
            f"the file's config requires {shape} of {'bool' if mask else 'float32'}."
        )
    return torch.from_numpy(array)
