"""Saves and opens a run with its whole trace as one NPZ file, which needs no model to be opened.

Layout, version 4. ``meta`` holds UTF-8 JSON: the run (``transformer.exports.record``; of a language
model with ``prompt``, ``n_given``, ``start_id`` and ``roles``; of an encoder alone with ``fills``),
the type that the model computed in, and the largest difference between the log-probabilities of the
decode and of its replay. Every other array is float32, or bool for masks, and has the name by which
hooks know it (``transformer.hooks``), without the batch:

* ``decoder.0.cross_attention.query``, ``.key``, ``.value``, ``.heads``: (heads, length, d_head),
  after rotation if any, keys and values once for each group of heads that shares them;
  ``.padding``: (keys,), True for tokens, absent if nothing is padded;
* ``….bias``: the table of the rule by which the config's encoding adds to the scores; ``….vector``:
  (heads, d_head) of additive scores; ``….centres``: (queries,) where each query of local attention
  looks;
* ``….value_norms``: (heads, keys) ‖v_j W_O^h‖. Multiplied by the weight w_ij, it is what key j
  contributes to the update at query i, ‖w_ij · v_j W_O^h‖;
* ``encoder.tokens``, ``.positions``, ``.input``: (length, d_model); and if a norm stands between
  sum and input, its ``.input.gain`` and ``.input.shift`` (d_model,).

What interventions changed is in the run's JSON; all maps are derived from it. A changed run also
has those of these arrays that its changes need: a name with ``.own``, the value before the change;
``change.0``, what the run's first change put in, (heads, d_head) mean outputs or (positions, width)
of another run; and ``.read``, ``.output``, ``.stream`` of every sub-layer and ``encoder.output``,
(length, d_model), if only the stream shows what was changed.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer.audit import LOG_PROB_LIMIT, TOKENS, audit
from transformer.config import ENCODINGS, Place, Side, Site
from transformer.encodings import bias_rule
from transformer.equations import audited_tokens
from transformer.exports.record import TraceFileError, number, run_from_dict, run_to_dict
from transformer.hooks import STREAM, HookName
from transformer.interventions import Ablate, NoPositions, Patch
from transformer.interventions.edits import Change
from transformer.model import Network
from transformer.run import NotCapturedError, Translation
from transformer.storage.packed import ArrayFile, ArraysError, write_arrays
from transformer.trace import AttentionTrace
from transformer.view import AS_RECORDED, AuditReport, Check

VERSION = 4
ONE_MATRIX = (
    "The file is JSON, which holds one matrix and is not opened again: save the run as NPZ."
)
HOOKED = (
    "Hooks changed this translation, so it cannot be saved as a trace; translate without hooks."
)
MAX_BYTES = 256 * 2**20
"""Most bytes that a file may unpack to."""
MOST_JSON = 4 * 2**20
"""Most bytes of JSON in a file."""
FOREIGN = "The file is damaged, or this package did not write it."
_TYPES = (np.float32, np.bool_, np.uint8)
_OPTIONAL = (".padding", ".value_norms")
RECORDED = f"log-probabilities{AS_RECORDED}"
NOTE = (
    "Imported file: its attention was recomputed and checked; its log-probabilities, and what it "
    "says of its model, are as recorded."
)

File = Path | str | IO[bytes]
"""A path, or an open binary file."""
Shape = tuple[int | None, ...]
"""Lengths of the axes of an array; None stands for any length."""


def model_digest(model: Network) -> str:
    """SHA-256 of the names and values of all weights."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().float().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def save_trace(translation: Translation, target: File, model: Network | None = None) -> None:
    """Writes a translation, made with ``capture=True`` and without hooks, with everything that was
    recorded.

    The file gets the model's digest, and the norms of the values after its W_O. Without a model, it
    gets only what an earlier file held. NotCapturedError if nothing was recorded; TraceFileError if
    hooks changed the run, or it holds numbers that are not finite.
    """
    trace = translation.attention
    if trace is None:
        raise NotCapturedError("Attention was not recorded; translate with capture=True.")
    if trace.functions:
        raise TraceFileError(HOOKED)
    if model is not None:
        translation = replace(translation, model_sha256=model_digest(model))
    tensors = _saved_tensors(trace) | _value_norms(trace, model)
    replayed = [
        check.value for check in trace.audit().checks if check.name.startswith("log-probabilities")
    ]
    meta = {
        "version": VERSION,
        "run": run_to_dict(translation),
        "replay_error": max(replayed, default=0.0),
        "dtype": str(trace.dtype).removeprefix("torch."),
    }
    try:
        content = json.dumps(meta, ensure_ascii=False, allow_nan=False).encode()
    except ValueError as error:
        raise TraceFileError(
            "The run holds numbers that are not finite, so it cannot be saved."
        ) from error
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    arrays["meta"] = np.frombuffer(content, np.uint8)
    if not isinstance(target, Path | str):
        np.savez_compressed(target, allow_pickle=False, **arrays)
        return
    path = Path(target)
    if path.suffix != ".npz":
        path = path.with_name(f"{path.name}.npz")
    write_arrays(path, arrays)


def _saved_tensors(trace: AttentionTrace) -> dict[str, Tensor]:
    """What a file holds of a recording: the stream only if a change shows in nothing else."""
    in_stream = any(change.value.part == "stream" for change in trace.changes)
    tensors = {
        name: tensor
        for name, tensor in trace.tensors.items()
        if in_stream or HookName.of(name).part not in STREAM
    }
    for i, change in enumerate(trace.changes):
        if change.material is not None:
            tensors[f"change.{i}"] = change.material.float()
    return tensors


def _value_norms(trace: AttentionTrace, model: Network | None) -> dict[str, Tensor]:
    """By name, (heads, keys) norms of the values after their W_O; none without a model."""
    norms = dict[str, Tensor]()
    if model is None:
        return norms
    for kind, layer in trace.places:
        projection = torch.from_numpy(model.output_projection(kind, layer))
        update = trace.layer(kind, layer).values() @ projection
        path = trace.config.sites[kind].sublayer(layer).path
        norms[f"{path}.value_norms"] = update.norm(dim=-1)
    return norms


def load_trace(source: File) -> Translation:
    """Opens a file that ``save_trace`` wrote; all checks that need no model run again.

    TraceFileError if the file is damaged, foreign, too large, or its parts contradict each other.
    """
    try:
        if not isinstance(source, Path | str):
            return _read(source)
        with Path(source).open("rb") as file:
            return _read(file)
    except TraceFileError:
        raise
    except ArraysError as error:
        raise TraceFileError(str(error)) from error
    # zip, zlib, NumPy's tokenizer and JSON raise twenty kinds for damaged bytes
    except Exception as error:
        raise TraceFileError(FOREIGN) from error


def _read(file: IO[bytes]) -> Translation:
    start = file.read(16)
    file.seek(0)
    if start.lstrip()[:1] == b"{":
        raise TraceFileError(ONE_MATRIX)
    stored = ArrayFile(file, MAX_BYTES)
    content = stored.read("meta", (np.uint8,)).tobytes()
    if len(content) > MOST_JSON:
        limit = f"{MOST_JSON // 2**20} MiB of text, the limit for opening a file"
        raise TraceFileError(f"The file holds more than {limit}.")
    meta = json.loads(content.decode("utf-8"), parse_constant=number)
    if meta["version"] != VERSION:
        raise TraceFileError("The file was written by another version of this package.")
    run = run_from_dict(meta["run"])
    arrays = {name: stored.read(name, _TYPES) for name in stored.entries if name != "meta"}
    tensors = _tensors(run, arrays)
    changes = tuple(
        Change(value, tensors.pop(f"change.{i}", None)) for i, value in enumerate(run.interventions)
    )
    dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[meta["dtype"]]
    checks = list[Check]()
    if run.interventions:
        checks.append(_changed_tokens(run))
    recorded = Check(RECORDED, number(meta["replay_error"]), LOG_PROB_LIMIT[dtype])
    if run.steps or run.fills:
        checks.append(recorded)
    of_file = AuditReport(tuple(checks))

    def auditor(trace: AttentionTrace, places: tuple[Place, ...]) -> AuditReport:
        return audit(trace, places, basis=run.config).joined(of_file)

    trace = AttentionTrace(
        tensors=tensors, config=run.config, dtype=dtype, auditor=auditor, changes=changes
    )
    notes = tuple(dict.fromkeys((*run.notes, NOTE)))
    return replace(run, notes=notes, attention=trace)


def _changed_tokens(run: Translation) -> Check:
    """Whether the tokens that a run's changes name are what they must be."""
    written = [(step.token, step.token_id) for step in run.steps]
    right = audited_tokens(run.interventions, run.source_tokens, written)
    return Check(TOKENS, float(not right), 0.0)


def _tensors(run: Translation, arrays: Mapping[str, NDArray[np.generic]]) -> dict[str, Tensor]:
    """The arrays of a run; TraceFileError if they are not those that its config and its changes
    require."""
    shapes = _shapes(run)
    for name in shapes:
        if name not in arrays and not name.endswith(_OPTIONAL):
            raise TraceFileError(f"The file lacks the array {name}.")
    for name, array in arrays.items():
        used = name if name.startswith("change.") else HookName.of(name).used
        if used not in shapes:
            raise TraceFileError(
                f"The file holds the array {name[:60]!r}, which its run does not have."
            )
        _check_array(name, array, used, shapes[used])
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    for name, table in tensors.items():
        if name.endswith(".bias"):
            bias_rule(run.config.positions, table, run.config.n_heads, run.config.d_head)
    return tensors


def _check_array(name: str, array: NDArray[np.generic], used: str, shape: Shape) -> None:
    """TraceFileError if an array is of another shape or type, or not finite; ``bias_rule`` checks
    the shape of a bias."""
    dtype = "bool" if used.endswith(".padding") else "float32"
    fits = used.endswith(".bias") or (
        array.ndim == len(shape)
        and all(n in (length, None) for length, n in zip(array.shape, shape, strict=True))
    )
    if not fits or array.dtype != dtype:
        raise TraceFileError(
            f"The array {name} has the shape {array.shape} and the type {array.dtype}; "
            f"the file's config requires {shape} of {dtype}."
        )
    if not np.isfinite(array).all():
        raise TraceFileError("The file holds numbers that are not finite, which no model computes.")


def _shapes(run: Translation) -> dict[str, Shape]:
    """By name, the shapes of the arrays of a run; a file must hold all but the ``_OPTIONAL``."""
    shapes = _stack_shapes(run)
    for site in run.config.sites.values():
        of_site = _attention_shapes(run, site)
        for layer in range(site.n_layers):
            path = site.sublayer(layer).path
            shapes |= {f"{path}.{name}": shape for name, shape in of_site.items()}
    for i, value in enumerate(run.interventions):
        if isinstance(value, Ablate) and value.by == "mean":
            n_heads = len(value.heads(run.config.n_heads))
            shapes[f"change.{i}"] = (n_heads, run.config.d_head)
        if isinstance(value, Patch):
            n_rows = None if value.positions is None else len(value.positions)
            width = run.config.d_head if value.part == "heads" else run.config.d_model
            shapes[f"change.{i}"] = (n_rows, width)
    return shapes


def _stack_shapes(run: Translation) -> dict[str, Shape]:
    """Those of what enters each stack, and of its stream if a change needs it."""
    config = run.config
    in_stream = any(value.part == "stream" for value in run.interventions)
    shapes = dict[str, Shape]()
    for side, stack in config.stacks.items():
        rows = (len(run.tokens(side)), config.d_model)
        shapes |= {f"{side}.tokens": rows, f"{side}.input": rows}
        if ENCODINGS[config.positions].acts == "embeddings" and not _bare(run, side):
            shapes[f"{side}.positions"] = rows
        if config.embedding_norm:
            shapes |= {f"{side}.input.{name}": (config.d_model,) for name in ("gain", "shift")}
        if not in_stream:
            continue
        for sublayer in stack.passed():
            shapes |= {f"{sublayer.path}.{name}": rows for name in STREAM}
        if side == "encoder":
            shapes["encoder.output"] = rows
    return shapes


def _attention_shapes(run: Translation, site: Site) -> dict[str, Shape]:
    """Those of one attention, by part."""
    config = run.config
    queries = len(run.tokens(site.query_side))
    keys = len(run.tokens(site.key_side)) if site.key_side in config.stacks else 0
    of_queries = (config.n_heads, queries, config.d_head)
    of_keys = (config.key_heads, keys, config.d_head)
    shapes: dict[str, Shape] = {
        "query": of_queries,
        "heads": of_queries,
        "key": of_keys,
        "value": of_keys,
        "padding": (keys,),
        "value_norms": (config.n_heads, keys),
    }
    if site.score == "additive":
        shapes["vector"] = (config.n_heads, config.d_head)
    if config.score == "local":
        shapes["centres"] = (queries,)
    biased = site.own_keys and ENCODINGS[config.positions].acts == "scores"
    if biased and not _bare(run, site.query_side):
        shapes["bias"] = ()
    return shapes


def _bare(run: Translation, side: Side) -> bool:
    """Whether a change leaves out a side's positions."""
    return any(isinstance(value, NoPositions) and value.side == side for value in run.interventions)
