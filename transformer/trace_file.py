"""A translation with its whole trace as one NPZ file, out and in; opens on a machine without the model.

Layout, version 1. ``meta`` holds UTF-8 JSON (tokens, steps, config, the log-probabilities of the replay, a
digest of the model); every other array is float32, or bool for masks, and is named by its place:
``encoder.0.query``, ``cross.2.output``, ``embeddings.decoder.tokens`` and so on, with layers from 0. Masks
are kept as rules: a padding vector, and "causal" for the decoder.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .audit import LOG_PROB_LIMIT, audit
from .capture import (
    AttentionKind,
    AttentionTrace,
    AuditReport,
    Check,
    EmbeddingTrace,
    LayerTrace,
    Place,
    Side,
)
from .config import TransformerConfig
from .model import Transformer
from .translation import Alternative, DecodeStep, NotCapturedError, Translation

VERSION = 1
MAX_BYTES = 256 * 2**20
"""Most bytes that a file may unpack to."""
SIDES: tuple[Side, ...] = ("encoder", "decoder")
RECORDED = "log-probabilities (as recorded)"

Arrays = dict[str, NDArray[Any]]


class TraceFileError(ValueError):
    """A trace file cannot be opened; the message says what is wrong with it."""


def model_digest(model: Transformer) -> str:
    """SHA-256 over names and values of all weights."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().float().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def save_trace(
    translation: Translation, target: Path | io.BufferedIOBase, model: Transformer | None = None
) -> None:
    """Writes a translation with everything it recorded.

    Args:
        translation: Made with ``capture=True`` and without hooks.
        target: A path, or an open binary file.
        model: Its digest goes into the file; without it, none does.

    Raises:
        NotCapturedError: Nothing was recorded.
    """
    trace = translation.attention
    if trace is None:
        raise NotCapturedError("Attention was not recorded; translate with capture=True.")
    meta = _meta(translation, trace) | {"model_sha256": None if model is None else model_digest(model)}
    arrays: Arrays = {"meta": np.frombuffer(json.dumps(meta, ensure_ascii=False).encode(), np.uint8)}
    for kind, layer in trace.places:
        record = trace.layer(kind, layer)
        parts = {name: getattr(record, name) for name in ("query", "key", "value", "output", "key_padding")}
        arrays |= {f"{kind}.{layer}.{name}": part.numpy() for name, part in parts.items() if part is not None}
    for side, embedding in trace.embeddings.items():
        parts = {name: getattr(embedding, name) for name in ("tokens", "positions", "input")}
        arrays |= {
            f"embeddings.{side}.{name}": part.numpy() for name, part in parts.items() if part is not None
        }
    np.savez_compressed(target, allow_pickle=False, **arrays)


def load_trace(source: Path | str | io.BufferedIOBase) -> Translation:
    """Opens a file that ``save_trace`` wrote.

    The checks that need no model run again; the log-probabilities of the replay are held against those of the
    decode as the file gives them.

    Raises:
        TraceFileError: The file is damaged, foreign, too large, or its parts contradict each other.
    """
    try:
        arrays = _read(source)
        meta = json.loads(arrays.pop("meta").tobytes().decode("utf-8"))
        if meta["version"] != VERSION:
            raise TraceFileError(
                f"The file has version {meta['version']!r}; this package reads version {VERSION}."
            )
        return _translation(meta, arrays)
    except TraceFileError:
        raise
    except (OSError, ValueError, KeyError, TypeError, EOFError, RecursionError, zipfile.BadZipFile) as error:
        raise TraceFileError("The file is damaged, or is no trace that this package wrote.") from error


def _meta(translation: Translation, trace: AttentionTrace) -> dict[str, Any]:
    if any(trace.layer(*place).replaced_rows is not None for place in trace.places):
        raise TraceFileError(
            "A translation with hooks holds what a visitor changed; it is not saved as a trace."
        )
    return {
        "version": VERSION,
        "source_text": translation.source_text,
        "text": translation.text,
        "source_tokens": translation.source_tokens,
        "decoder_input_tokens": translation.decoder_input_tokens,
        "target_tokens": translation.target_tokens,
        "log_probs": translation.log_probs,
        "steps": [asdict(step) for step in translation.steps],
        "method": translation.method,
        "model": translation.model,
        "config": translation.config.to_dict(),
        "notes": translation.notes,
        "dtype": str(trace.dtype).removeprefix("torch."),
        "replay_error": max(c.value for c in trace.audit().checks if c.name.startswith("log-probabilities")),
    }


def _read(source: Path | str | io.BufferedIOBase) -> Arrays:
    """All arrays; sizes are checked against the archive's before memory is taken."""
    arrays: Arrays = {}
    with zipfile.ZipFile(source) as archive:
        entries = archive.infolist()
        if sum(entry.file_size for entry in entries) > MAX_BYTES:
            raise TraceFileError(
                f"The file unpacks to more than {MAX_BYTES // 2**20} MiB, the most that is opened."
            )
        for entry in entries:
            with archive.open(entry) as file:
                arrays[entry.filename.removesuffix(".npy")] = _read_array(file, entry.file_size)
    return arrays


def _read_array(file: Any, size: int) -> NDArray[Any]:
    version = np.lib.format.read_magic(file)
    read_header: Callable[[Any], tuple[tuple[int, ...], bool, np.dtype[Any]]] = (
        np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    )
    shape, fortran, dtype = read_header(file)
    if dtype not in (np.float32, np.bool_, np.uint8) or fortran or any(n < 0 for n in shape):
        raise TraceFileError("The file holds an array that no trace has.")
    wanted = int(np.prod([int(n) for n in shape], dtype=object)) * dtype.itemsize
    if wanted > size:
        raise TraceFileError("The file is cut off: an array is shorter than it says.")
    return np.frombuffer(file.read(wanted), dtype).reshape(shape).copy()


def _translation(meta: dict[str, Any], arrays: Arrays) -> Translation:
    config = TransformerConfig.from_dict(meta["config"])
    source, target = len(meta["source_tokens"]), len(meta["target_tokens"])
    if (
        not source
        or not target
        or len(meta["decoder_input_tokens"]) != target
        or len(meta["log_probs"]) != target
    ):
        raise TraceFileError("The file's tokens contradict each other.")
    layers = {kind: _layers(kind, config, (source, target), arrays) for kind in AttentionKind}
    embeddings = {
        side: _embedding(side, (source if side == "encoder" else target, config.d_model), arrays)
        for side in SIDES
    }
    dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[meta["dtype"]]
    recorded = Check(RECORDED, float(meta["replay_error"]), LOG_PROB_LIMIT[dtype])

    def auditor(trace: AttentionTrace, places: tuple[Place, ...]) -> AuditReport:
        return AuditReport((*audit(trace, places).checks, recorded))

    return Translation(
        source_text=str(meta["source_text"]),
        text=str(meta["text"]),
        source_tokens=_strings(meta["source_tokens"]),
        decoder_input_tokens=_strings(meta["decoder_input_tokens"]),
        target_tokens=_strings(meta["target_tokens"]),
        log_probs=tuple(float(value) for value in meta["log_probs"]),
        steps=tuple(_step(step) for step in meta["steps"]),
        method=str(meta["method"]),
        model=str(meta["model"]),
        config=config,
        notes=(*_strings(meta["notes"]), "Imported file."),
        attention=AttentionTrace(layers, embeddings, {}, dtype, auditor),
    )


def _layers(
    kind: AttentionKind, config: TransformerConfig, lengths: tuple[int, int], arrays: Arrays
) -> tuple[LayerTrace, ...]:
    source, target = lengths
    queries = source if kind is AttentionKind.ENCODER else target
    keys = target if kind is AttentionKind.DECODER else source
    count = config.n_encoder_layers if kind is AttentionKind.ENCODER else config.n_decoder_layers
    rows, columns = (config.n_heads, queries, config.d_head), (config.n_heads, keys, config.d_head)
    if (f"{kind}.{count - 1}.query") not in arrays:
        raise TraceFileError(f"The file lacks the {kind} attention that its config promises.")
    return tuple(
        LayerTrace(
            query=_tensor(arrays, f"{kind}.{layer}.query", rows),
            key=_tensor(arrays, f"{kind}.{layer}.key", columns),
            value=_tensor(arrays, f"{kind}.{layer}.value", columns),
            output=_tensor(arrays, f"{kind}.{layer}.output", rows),
            key_padding=_padding(arrays, f"{kind}.{layer}.key_padding", keys),
            causal=kind is AttentionKind.DECODER,
        )
        for layer in range(count)
    )


def _embedding(side: Side, shape: tuple[int, int], arrays: Arrays) -> EmbeddingTrace:
    name = f"embeddings.{side}"
    positions = _tensor(arrays, f"{name}.positions", shape) if f"{name}.positions" in arrays else None
    return EmbeddingTrace(
        _tensor(arrays, f"{name}.tokens", shape), positions, _tensor(arrays, f"{name}.input", shape)
    )


def _tensor(arrays: Arrays, name: str, shape: tuple[int, ...]) -> Tensor:
    array = arrays[name]
    if array.shape != shape or array.dtype != np.float32:
        raise TraceFileError(
            f"The array {name} has the shape {array.shape}; the file's config asks for {shape}."
        )
    return torch.from_numpy(array)


def _padding(arrays: Arrays, name: str, keys: int) -> Tensor | None:
    if name not in arrays:
        return None
    if arrays[name].shape != (keys,) or arrays[name].dtype != np.bool_:
        raise TraceFileError(f"The array {name} is no mask of {keys} keys.")
    return torch.from_numpy(arrays[name])


def _strings(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TraceFileError("The file's tokens are no list of texts.")
    return tuple(values)


def _step(values: dict[str, Any]) -> DecodeStep:
    step = DecodeStep(**values)
    return replace(
        step, alternatives=tuple(Alternative(**alternative) for alternative in values["alternatives"])
    )
