"""Saves and opens a run with its whole trace as one NPZ file, which needs no model to be opened.

Layout, version 4. ``meta`` holds UTF-8 JSON: the run (``transformer.exports.record``), the type
that the model computed in, and the largest difference between the log-probabilities of the decode
and of its replay. Every other array is float32, or bool for masks, and has the name by which hooks
know it (``transformer.hooks``), without the batch:

* ``decoder.0.cross_attention.query``, ``.key``, ``.value``, ``.heads``: (heads, length,
    d_head), after
  rotation if any; ``.padding``: (keys,), True for tokens, absent if nothing is padded;
* ``….bias``: the table of the rule by which the config's encoding adds to the scores; ``….vector``:
  (heads, d_head) of additive scores; ``….centres``: (queries,) where each query of local
      attention looks;
* ``….value_norms``: (heads, keys) ‖v_j W_O^h‖. Multiplied by the weight w_ij, it is what key j
    contributes to
  the update at query i, ‖w_ij · v_j W_O^h‖;
* ``encoder.tokens``, ``.positions``, ``.input``: (length, d_model); and if a norm stands
    between sum and
  input, its ``.input.gain`` and ``.input.shift`` (d_model,).

What interventions changed is in the run's JSON; all maps are derived from it. A changed run also
has those of these arrays that its changes need: a name with ``.own``, the value before the change;
``change.0``, what the run's first change put in, (heads, d_head) mean outputs or (positions, width)
of another run; and ``.read``, ``.output``, ``.stream`` of every sub-layer and ``encoder.output``,
(length, d_model), if only the stream shows what was changed.
"""

import hashlib
import json
from collections.abc import Mapping
from contextlib import nullcontext
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
from transformer.exports.record import TraceFileError, number, run_from_dict, run_to_dict
from transformer.hooks import STREAM
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
    stream = any(each.value.part == "stream" for each in trace.changes)
    recorded = trace.tensors.items()
    plain = {name: name.removesuffix(".own").rpartition(".")[2] for name in trace.tensors}
    tensors = {name: each for name, each in recorded if stream or plain[name] not in STREAM}
    for i, change in enumerate(trace.changes):
        if change.material is not None:
            tensors[f"change.{i}"] = change.material.float()
    if model is not None:
        translation = replace(translation, model_sha256=model_digest(model))
        for kind, layer in trace.places:
            value = trace.layer(kind, layer).value @ torch.from_numpy(
                model.output_projection(kind, layer)
            )
            sublayer = trace.config.sites[kind].sublayer(layer)
            tensors[f"{sublayer.path}.value_norms"] = value.norm(dim=-1)
    replayed = [c.value for c in trace.audit().checks if c.name.startswith("log-probabilities")]
    meta = {"version": VERSION, "run": run_to_dict(translation), "replay_error": max(replayed)}
    meta["dtype"] = str(trace.dtype).removeprefix("torch.")
    try:
        content = json.dumps(meta, ensure_ascii=False, allow_nan=False).encode()
    except ValueError as error:
        raise TraceFileError(
            "The run holds numbers that are not finite, so it cannot be saved."
        ) from error
    arrays = {name: each.numpy() for name, each in tensors.items()}
    arrays["meta"] = np.frombuffer(content, np.uint8)
    if not isinstance(target, Path | str):
        np.savez_compressed(target, allow_pickle=False, **arrays)
        return
    path = Path(target)
    write_arrays(path if path.suffix == ".npz" else path.with_name(f"{path.name}.npz"), arrays)


def load_trace(source: File) -> Translation:
    """Opens a file that ``save_trace`` wrote; all checks that need no model run again.

    TraceFileError if the file is damaged, foreign, too large, or its parts contradict each other.
    """
    try:
        with (
            Path(source).open("rb")
            if isinstance(source, Path | str)
            else nullcontext(source) as file
        ):
            return _read(file)
    except TraceFileError:
        raise
    except ArraysError as error:
        raise TraceFileError(str(error)) from error
    except (
        Exception
    ) as error:  # zip, zlib, NumPy's tokenizer and JSON raise twenty kinds for damaged bytes
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
    tensors = _tensors(
        run, {name: stored.read(name, _TYPES) for name in stored.entries if name != "meta"}
    )
    changes = tuple(
        Change(do, tensors.pop(f"change.{i}", None)) for i, do in enumerate(run.interventions)
    )
    dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[meta["dtype"]]
    others = [Check(RECORDED, number(meta["replay_error"]), LOG_PROB_LIMIT[dtype])]
    if run.interventions:
        written = [(step.token, step.token_id) for step in run.steps]
        wrong = not audited_tokens(run.interventions, run.source_tokens, written)
        others.insert(0, Check(TOKENS, float(wrong), 0.0))

    def auditor(trace: AttentionTrace, places: tuple[Place, ...]) -> AuditReport:
        return audit(trace, places, basis=run.config).joined(AuditReport(tuple(others)))

    trace = AttentionTrace(tensors, run.config, dtype, auditor, changes)
    return replace(run, notes=tuple(dict.fromkeys((*run.notes, NOTE))), attention=trace)


def _tensors(run: Translation, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Tensor]:
    """The arrays of a run; TraceFileError if they are not those that its config and its changes
    require."""
    shapes = _shapes(run)
    for name in shapes:
        if name not in arrays and not name.endswith(_OPTIONAL):
            raise TraceFileError(f"The file lacks the array {name}.")
    for name, array in arrays.items():
        plain = name if name.startswith("change.") else name.removesuffix(".own")
        if plain not in shapes:
            raise TraceFileError(
                f"The file holds the array {name[:60]!r}, which its run does not have."
            )
        shape = shapes[plain]
        dtype = "bool" if plain.endswith(".padding") else "float32"
        fits = array.ndim == len(shape) and all(
            m in (n, None) for n, m in zip(array.shape, shape, strict=True)
        )
        if (not fits and not plain.endswith(".bias")) or array.dtype != dtype:
            raise TraceFileError(
                f"The array {name} has the shape {array.shape} and the type {array.dtype}; "
                f"the file's config requires {shape} of {dtype}."
            )
        if not np.isfinite(array).all():
            raise TraceFileError(
                "The file holds numbers that are not finite, which no model computes."
            )
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    for name, table in tensors.items():
        if name.endswith(".bias"):
            bias_rule(run.config.positions, table, run.config.n_heads, run.config.d_head)
    return tensors


def _shapes(run: Translation) -> dict[str, tuple[int | None, ...]]:
    """By name, the shapes of the arrays of a run; None stands for any length.

    A file must hold all but the ``_OPTIONAL``; `bias_rule` checks the shape of a bias.
    """
    config = run.config
    shapes = dict[str, tuple[int | None, ...]]()
    heads, width = config.n_heads, config.d_head
    length = {side: len(run.tokens(side)) for side in config.stacks}
    adds = ENCODINGS[config.positions].acts
    bare = {
        intervention.side
        for intervention in run.interventions
        if isinstance(intervention, NoPositions)
    }
    stream = any(value.part == "stream" for value in run.interventions)
    for side, n in length.items():
        rows = n, config.d_model
        parts = ["tokens", "input"] + ["positions"] * (adds == "embeddings" and side not in bare)
        shapes |= {f"{side}.{part}": rows for part in parts}
        shapes |= {
            f"{side}.input.{part}": rows[1:] for part in ("gain", "shift") if config.embedding_norm
        }
        for sublayer in config.stacks[side].passed() if stream else ():
            shapes |= {f"{sublayer.path}.{part}": rows for part in STREAM}
        shapes |= {"encoder.output": rows} if stream and side == "encoder" else {}
    for site in config.sites.values():
        queries = length[site.query_side]
        keys = length.get(site.key_side, 0)
        of: dict[str, tuple[int, ...]] = dict.fromkeys(("query", "heads"), (heads, queries, width))
        of |= dict.fromkeys(("key", "value"), (heads, keys, width))
        of |= {"padding": (keys,), "value_norms": (heads, keys)}
        of |= {"vector": (heads, width)} if site.score == "additive" else {}
        of |= {"centres": (queries,)} if config.score == "local" else {}
        of |= (
            {"bias": ()}
            if site.own_keys and adds == "scores" and site.query_side not in bare
            else {}
        )
        paths = (site.sublayer(layer).path for layer in range(site.n_layers))
        shapes |= {f"{path}.{part}": shape for path in paths for part, shape in of.items()}
    for i, value in enumerate(run.interventions):
        if isinstance(value, Ablate) and value.by == "mean":
            shapes[f"change.{i}"] = len(value.heads(heads)), width
        if isinstance(value, Patch):
            n_rows = None if value.positions is None else len(value.positions)
            shapes[f"change.{i}"] = n_rows, width if value.part == "heads" else config.d_model
    return shapes
