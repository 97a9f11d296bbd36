"""Saves and opens a run with its whole trace as one NPZ file, which needs no model to be opened.

Layout, version 3. ``meta`` holds UTF-8 JSON: the run (``transformer.exports.record``), the type that the
model computed in, the largest difference between the log-probabilities of the decode and of its replay, and
for each kind the name of the rule that adds a bias to the scores. Every other array is float32, or bool for
masks; layers count from 0:

* ``encoder.0.query``, ``.key``, ``.value``, ``.output``: (heads, length, d_head), after rotation if any; also
  ``decoder.…`` and ``cross.…``;
* ``encoder.0.key_padding``: (keys,), True for tokens; absent if nothing is padded. The causal mask is not
  stored: the decoder always has it;
* ``cross.0.score.vector``: (heads, d_head), the vector of additive scores; ``cross.0.centres``: (queries,),
  where each query of local attention looks. The JSON names the rule, and says how far such a query sees;
* ``encoder.0.bias.table``: the table of the bias rule (``transformer.model.encodings.biases``);
* ``encoder.0.value_norms``: (heads, keys) ‖v_j W_O^h‖ with this head's rows of W_O. Multiplied by the weight
  w_ij, this norm is exactly what key j contributes to the update at query i, ‖w_ij · v_j W_O^h‖, stored in
  O(n) numbers;
* ``embeddings.encoder.tokens``, ``.positions``, ``.input``: (length, d_model); also ``embeddings.decoder.…``;
  and if a norm stands between sum and input, its ``.gain`` and ``.shift`` (d_model,).

What interventions changed is in the run's JSON, counted from 0 (``transformer.interventions.written``);
all maps are derived from it. A changed run also has those of these arrays that its changes need:

* ``cross.0.own_output``, ``embeddings.encoder.own_input``: ``output`` and ``input`` before a change;
* ``change.0``: what the run's first change put in, (heads, d_head) mean outputs or (positions, width) of
  another run;
* ``stream.encoder.0.self_attention.stream``, ``.read``, ``.update``, ``.output``: (length, d_model) around
  every sub-layer, with ``.own_update`` and ``.own_output`` before a change; ``memory.used`` and
  ``memory.own``: the encoder's output. They are stored if only the stream shows what was changed.

Version 2 is the same without changes, and opens too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer.exports.changes import change_arrays, check_positions, read_changes, read_residuals
from transformer.exports.record import (
    TraceFileError,
    in_one_sentence,
    number,
    read_json,
    run_from_dict,
    run_to_dict,
    whole,
    write_json,
)
from transformer.model.config import ModelConfig
from transformer.model.encodings.biases import BiasRule, rule_from
from transformer.model.masks import Focus
from transformer.model.network import Network
from transformer.model.norms import make_norm, shift
from transformer.model.scores import ScoreRule, score_rule
from transformer.model.sites import AttentionKind, Place, Side, Site
from transformer.run import NotCapturedError, Translation
from transformer.storage.packed import ArrayFile, write_arrays
from transformer.trace.audit import LOG_PROB_LIMIT, audit
from transformer.trace.equations import TOKENS, audited_tokens
from transformer.trace.heads import output_projections
from transformer.trace.recorder import changed
from transformer.trace.records import AttentionTrace, EmbeddingTrace, LayerTrace
from transformer.trace.report import AS_RECORDED, AuditReport, Check

VERSION = 3
READABLE = (2, 3)
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
    if model is not None:
        translation = replace(translation, model_sha256=model_digest(model))
        trace = with_value_norms(trace, model)
    arrays: Arrays = {"meta": np.frombuffer(write_json(_meta(translation)), np.uint8)}
    for kind, layer in trace.places:
        arrays |= _layer_arrays(f"{kind}.{layer}", trace.layer(kind, layer))
    for side, embedding in trace.embeddings.items():
        parts = {name: getattr(embedding, name) for name in ("tokens", "positions", "input")}
        if embedding.norm is not None:
            norm = embedding.norm
            parts |= {"gain": norm.weight.float().cpu(), "shift": shift(norm).float().cpu()}
        arrays |= {f"embeddings.{side}.{name}": part for name, part in _present(parts).items()}
    arrays |= change_arrays(trace)
    if not isinstance(target, Path | str):
        np.savez_compressed(target, allow_pickle=False, **arrays)
        return
    path = Path(target)
    write_arrays(path if path.suffix == ".npz" else path.with_name(f"{path.name}.npz"), arrays)


def with_value_norms(trace: AttentionTrace, model: Network) -> AttentionTrace:
    """The trace with ‖v_j W_O^h‖ of every key, so that ``contributions`` needs no model."""
    projections = output_projections(model)
    layers = {
        kind: tuple(
            replace(record, value_norms=(record.value @ torch.from_numpy(projections(kind, i))).norm(dim=-1))
            for i, record in enumerate(records)
        )
        for kind, records in trace.layers.items()
    }
    return replace(trace, layers=layers)


@contextmanager
def _opened(source: Source) -> Iterator[IO[bytes]]:
    """Opens the file at a path; passes an open file through."""
    if isinstance(source, Path | str):
        with Path(source).open("rb") as file:
            yield file
    else:
        yield source


def _starts_as_json(file: IO[bytes]) -> bool:
    """True if the file starts with a JSON object; rewinds the file afterwards."""
    start = file.read(16)
    file.seek(0)
    return start.lstrip()[:1] == b"{"


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
        if _starts_as_json(file):
            raise TraceFileError(ONE_MATRIX)
        stored = ArrayFile(file, MAX_BYTES)
        meta = read_json(stored.read("meta", (np.uint8,)).tobytes())
        if meta["version"] not in READABLE:
            version, known = str(meta["version"])[:12], " and ".join(map(str, READABLE))
            raise TraceFileError(f"The file has version {version!r}; this package reads versions {known}.")
        run = run_from_dict(meta["run"])
        arrays = {name: stored.read(name, _TYPES) for name in stored.names() if name != "meta"}
        if not all(np.isfinite(array).all() for array in arrays.values() if array.dtype == np.float32):
            raise TraceFileError("The file holds numbers that are not finite, which no model computes.")
        return _translation(run, meta, arrays)


def _meta(translation: Translation) -> dict[str, Any]:
    trace = translation.attention
    assert trace is not None
    if any(trace.layer(*place).replaced_rows is not None for place in trace.places):
        raise TraceFileError(
            "Hooks changed this translation, so it cannot be saved as a trace; translate without hooks."
        )
    first = {str(kind): records[0].bias for kind, records in trace.layers.items()}
    return {
        "version": VERSION,
        "run": run_to_dict(translation),
        "dtype": str(trace.dtype).removeprefix("torch."),
        "replay_error": max(c.value for c in trace.audit().checks if c.name.startswith("log-probabilities")),
        "bias": {kind: rule.name for kind, rule in first.items() if rule is not None},
        **_rules({str(kind): records[0] for kind, records in trace.layers.items()}),
    }


def _rules(first: Mapping[str, LayerTrace]) -> dict[str, dict[str, Any]]:
    """By kind, the name of a rule other than the scaled dot product, and the reach of local attention."""
    scores = {kind: each.score.name for kind, each in first.items() if each.score.name != "scaled_dot"}
    reaches = {kind: each.focus.reach for kind, each in first.items() if each.focus is not None}
    return ({"score": scores} if scores else {}) | ({"reach": reaches} if reaches else {})


def _layer_arrays(prefix: str, record: LayerTrace) -> Arrays:
    names = ("query", "key", "value", "output", "key_padding", "value_norms")
    parts = _present({name: getattr(record, name) for name in names})
    if record.bias is not None:
        parts |= _present({f"bias.{name}": table for name, table in record.bias.arrays().items()})
    parts |= _present({f"score.{name}": array for name, array in record.score.arrays().items()})
    if record.focus is not None:
        parts["centres"] = record.focus.centres.numpy()
    return {f"{prefix}.{name}": part for name, part in parts.items()}


def _present(parts: dict[str, Tensor | None]) -> Arrays:
    return {name: part.numpy() for name, part in parts.items() if part is not None}


def _translation(run: Translation, meta: dict[str, Any], arrays: Arrays) -> Translation:
    layers = {kind: _layers(site, run, arrays, meta) for kind, site in run.config.sites.items()}
    embeddings = {
        side: _embedding(side, len(run.tokens(side)), run.config, arrays) for side in run.config.stacks
    }
    dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[meta["dtype"]]
    recorded = Check(RECORDED, number(meta["replay_error"]), LOG_PROB_LIMIT[dtype])

    check_positions(run, embeddings, _biased(run, layers))
    written = [(step.token, step.token_id) for step in run.steps]
    kept = Check(TOKENS, float(not audited_tokens(run.interventions, run.source_tokens, written)), 0.0)
    others = (kept, recorded) if run.interventions else (recorded,)

    def auditor(trace: AttentionTrace, places: tuple[Place, ...]) -> AuditReport:
        return audit(trace, places, basis=run.config).joined(AuditReport(others))

    def read(name: str, shape: tuple[int, ...]) -> Tensor:
        return _tensor(arrays, name, shape)

    residuals, memory = read_residuals(run, arrays, read)
    trace = AttentionTrace(layers, embeddings, residuals, dtype, auditor, memory=memory)
    trace = changed(trace, read_changes(run, arrays, read))
    return replace(run, notes=tuple(dict.fromkeys((*run.notes, NOTE))), attention=trace)


def _biased(run: Translation, layers: Mapping[AttentionKind, Sequence[LayerTrace]]) -> set[Side]:
    """Sides whose self-attention has a bias in every layer; TraceFileError if only some layers have one."""
    found = set[Side]()
    for kind, records in layers.items():
        have = [record.bias is not None for record in records]
        if any(have) != all(have):
            raise TraceFileError(f"The file has a bias in some layers of the {kind} attention only.")
        if all(have):
            found.add(run.config.sites[kind].query_side)
    return found


def _layers(site: Site, run: Translation, arrays: Arrays, meta: dict[str, Any]) -> tuple[LayerTrace, ...]:
    kind, config = site.kind, run.config
    bias = meta["bias"].get(str(kind))
    if meta.get("score", {}).get(str(kind), "scaled_dot") != site.score:
        raise TraceFileError("The file's rule for scores contradicts its config.")
    queries, keys = (len(run.tokens(side)) for side in (site.query_side, site.key_side))
    rows, columns = (config.n_heads, queries, config.d_head), (config.n_heads, keys, config.d_head)
    if f"{kind}.{site.n_layers - 1}.query" not in arrays:
        raise TraceFileError(f"The file lacks the {kind} attention that its config promises.")
    return tuple(
        LayerTrace(
            query=_tensor(arrays, f"{kind}.{layer}.query", rows),
            key=_tensor(arrays, f"{kind}.{layer}.key", columns),
            value=_tensor(arrays, f"{kind}.{layer}.value", columns),
            output=_tensor(arrays, f"{kind}.{layer}.output", rows),
            key_padding=_padding(arrays, f"{kind}.{layer}.key_padding", keys),
            causal=site.causal,
            bias=_bias(arrays, f"{kind}.{layer}.bias", bias, config),
            value_norms=_optional(arrays, f"{kind}.{layer}.value_norms", columns[:2]),
            own_output=_optional(arrays, f"{kind}.{layer}.own_output", rows),
            score=_score(arrays, f"{kind}.{layer}.score", site, config),
            focus=_focus(arrays, f"{kind}.{layer}.centres", queries, meta.get("reach", {}).get(str(kind))),
        )
        for layer in range(site.n_layers)
    )


def _score(arrays: Arrays, prefix: str, site: Site, config: ModelConfig) -> ScoreRule:
    found = {key: torch.from_numpy(array) for key, array in _under(arrays, prefix).items()}
    return score_rule(site.score, found, config.n_heads, config.d_head)


def _focus(arrays: Arrays, name: str, queries: int, reach: Any) -> Focus | None:
    if (reach is None) != (name not in arrays):
        raise TraceFileError("The file's local attention lacks its centres, or how far it reaches.")
    if reach is None:
        return None
    return Focus(_tensor(arrays, name, (queries,)), max(1, whole(reach)))


def _under(arrays: Arrays, prefix: str) -> Arrays:
    return {key.removeprefix(f"{prefix}."): value for key, value in arrays.items() if key.startswith(prefix)}


def _bias(arrays: Arrays, prefix: str, name: Any, config: ModelConfig) -> BiasRule | None:
    tables = _under(arrays, prefix)
    if name is None:
        if tables:
            raise TraceFileError("The file holds a bias without the name of its rule.")
        return None
    if any(table.dtype != np.float32 for table in tables.values()):
        raise TraceFileError("The file holds a bias of a type other than float32.")
    named = {key: torch.from_numpy(table) for key, table in tables.items()}
    return rule_from(str(name)[:40], named, config.n_heads, config.d_head)


def _embedding(side: Side, length: int, config: ModelConfig, arrays: Arrays) -> EmbeddingTrace:
    name, shape, norm = f"embeddings.{side}", (length, config.d_model), None
    if config.embedding_norm:
        norm = make_norm(config).requires_grad_(False)
        norm.weight.copy_(_tensor(arrays, f"{name}.gain", shape[1:]))
        shift(norm).copy_(_tensor(arrays, f"{name}.shift", shape[1:]))
    return EmbeddingTrace(
        tokens=_tensor(arrays, f"{name}.tokens", shape),
        positions=_optional(arrays, f"{name}.positions", shape),
        input=_tensor(arrays, f"{name}.input", shape),
        own_input=_optional(arrays, f"{name}.own_input", shape),
        norm=norm,
    )


def _optional(arrays: Arrays, name: str, shape: tuple[int, ...]) -> Tensor | None:
    return _tensor(arrays, name, shape) if name in arrays else None


def _tensor(arrays: Arrays, name: str, shape: tuple[int, ...]) -> Tensor:
    array = arrays[name]
    if array.shape != shape or array.dtype != np.float32:
        raise TraceFileError(
            f"The array {name} has the shape {array.shape}; the file's config requires {shape}."
        )
    return torch.from_numpy(array)


def _padding(arrays: Arrays, name: str, keys: int) -> Tensor | None:
    if name not in arrays:
        return None
    if arrays[name].shape != (keys,) or arrays[name].dtype != np.bool_:
        raise TraceFileError(f"The array {name} is not a mask of {keys} keys.")
    return torch.from_numpy(arrays[name])
