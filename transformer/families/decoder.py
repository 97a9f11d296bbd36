"""A family of decoders alone, as transformers and the Hub have them: its values, and how its config
is ours.

No PyTorch at import: a model is described without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from transformer.config import LanguageModelConfig
from transformer.families.alone import MOST_POSITIONS, Layout, Shape, StackFamily, number
from transformer.families.family import Json, listed_ids, require
from transformer.storage.files import CheckpointError

if TYPE_CHECKING:
    from torch import Tensor

OUTPUT, FINAL_NORM = "output", "decoder.final_norm"
"""Our names of the parts beside the table and the layers."""


@dataclass(frozen=True, kw_only=True)
class DecoderFamily(StackFamily[LanguageModelConfig]):
    """What opening a decoder asks of its family; only old files lack its prefix."""


def decoder_config(ours: Json, values: Json, path: Path) -> LanguageModelConfig:
    """The config of our fields, with the ids of the special tokens.

    CheckpointError if an entry is of another kind or out of range. Whether a text begins with a
    start token only the vocabulary knows.
    """
    size = ours["vocab_size"]
    eos_id = _first_id(values, "eos_token_id")
    if eos_id is None:
        raise CheckpointError(f"{path} names no eos_token_id, so no text would ever end.")
    bos_id = _first_id(values, "bos_token_id")
    pad_id = _first_id(values, "pad_token_id")
    ids = {
        "eos_id": eos_id,
        "bos_id": eos_id if bos_id is None else bos_id,
        "pad_id": size if pad_id is None or pad_id == eos_id else pad_id,
        "unk_id": size,
    }
    ours = {"dropout": 0.0, "norm": "pre", "scaled_embeddings": False, **ours, **ids}
    if isinstance(ours.get("max_positions"), int):
        ours["max_positions"] = min(ours["max_positions"], MOST_POSITIONS)
    try:
        return LanguageModelConfig(**ours)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{path} describes no usable model: {error}") from error


def _first_id(values: Json, entry: str) -> int | None:
    """The first id that an entry names; None if it names none."""
    return next(iter(listed_ids(values.get(entry))), None)


def rotation(values: Json, path: Path) -> Json:
    """Our fields of rotary positions, from the present and the older entries.

    CheckpointError, by name, if the angles were changed in a way that this package does not
    compute.
    """
    entries = values.get("rope_parameters") or values.get("rope_scaling") or {}
    if not isinstance(entries, dict):
        raise CheckpointError(f"{path} says rope_parameters = {entries!r:.80}, which is no table.")
    kind = entries.get("rope_type", entries.get("type", "default"))
    base = number(values, "rope_theta", 10_000.0, path)
    ours: Json = {"rotary_base": number(entries, "rope_theta", base, path)}
    if kind == "default":
        return ours
    if kind not in ("linear", "llama3"):
        raise CheckpointError(
            f"{path} scales its rotary positions by {kind!r:.80}, which this package does not "
            "compute; it knows default, linear and llama3."
        )
    ours |= {
        "rotary_scaling": kind,
        "rotary_factor": number(entries, "factor", 1.0, path),
    }
    if kind == "llama3":
        ours |= {
            "rotary_low": number(entries, "low_freq_factor", 1.0, path),
            "rotary_high": number(entries, "high_freq_factor", 4.0, path),
            "rotary_trained_length": entries.get("original_max_position_embeddings", 8192),
        }
    return ours


def check_window(values: Json, longest: int, path: Path) -> None:
    """CheckpointError if a query sees only the last keys of a text that is read."""
    window = values.get("sliding_window")
    used = values.get("use_sliding_window", window is not None)
    kinds = values.get("layer_types") or []
    used = used and (not kinds or "sliding_attention" in kinds)
    if used and isinstance(window, int) and window < longest:
        raise CheckpointError(
            f"{path} says sliding_window = {window:,}: a query sees only the last keys of a text, "
            "which this package does not compute."
        )


LONGEST_TEXT = 1_024
"""Tokens of the longest text that is read."""
UNSUPPORTED: dict[str, object] = {
    "attn_logit_softcapping": None,
    "final_logit_softcapping": None,
    "num_local_experts": None,
    "kv_lora_rank": None,
    "logit_scale": None,
}
"""Entries of soft caps, experts and latent attention, with the value that means none."""


def refuse(values: Json, required: Mapping[str, object], path: Path) -> None:
    """CheckpointError, by name, for what no model of these families is computed with."""
    require(values, {**UNSUPPORTED, **required}, path)


# --- how tensors lie in files --------------------------------------------------------------------


def transposed() -> Layout:
    """A matrix (in, out), as GPT-2 has them; a bias as it is."""
    return Layout(lambda ours: ours[::-1], lambda theirs: theirs.t())


def third(number: int) -> Layout:
    """Queries, keys or values of GPT-2's one product: (in, 3 × out), and (3 × out,)."""

    def shape(ours: Shape) -> Shape:
        return (*ours[1:], 3 * ours[0])

    def columns(theirs: Tensor) -> Tensor:
        return theirs.chunk(3, dim=-1)[number].t()

    return Layout(shape, columns)


def of_each_head(number: int, n_heads: int, rotated: int | None = None) -> Layout:
    """Queries, keys or values of GPT-NeoX's one product: (heads × 3 × d_head, in)."""

    def shape(ours: Shape) -> Shape:
        return (3 * ours[0], *ours[1:])

    def rows(theirs: Tensor) -> Tensor:
        heads = theirs.reshape(n_heads, 3, -1, *theirs.shape[1:])[:, number]
        ours = heads.reshape(-1, *theirs.shape[1:])
        return ours if rotated is None else neighbours(ours, heads.shape[1], rotated)

    return Layout(shape, rows)


def halves(width: int, rotated: int | None = None) -> Layout:
    """Rows whose two halves are rotated together; ours are neighbours."""
    return Layout(lambda ours: ours, lambda theirs: neighbours(theirs, width, rotated or width))


def neighbours(rows: Tensor, width: int, rotated: int) -> Tensor:
    """(heads × width, …) of which the first ``rotated`` rows of each head, two halves, become
    pairs."""
    import torch

    numbers = torch.arange(len(rows)).reshape(-1, width)
    first, second = numbers[:, :rotated].chunk(2, dim=1)
    pairs = torch.stack([first, second], dim=2).flatten(1)
    order = torch.cat([pairs, numbers[:, rotated:]], dim=1).flatten().numpy()
    # by NumPy and as the rows lie: PyTorch's threads wait for one another on a busy machine
    if rows.dim() == 2 and rows.t().is_contiguous():
        return torch.from_numpy(rows.t().numpy().take(order, axis=1)).t()
    return torch.from_numpy(rows.numpy().take(order, axis=0))
