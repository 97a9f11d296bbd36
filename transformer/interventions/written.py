"""Interventions as text: JSON values for files, and a compact text for an address.

JSON counts from 0, as programs do: ``{"do": "ablate", "kind": "cross", "layer": 1, "head": [5], …}``.
The compact text counts from 1, as people do: ``ablate_cross_2.6_mean~choose_4_▁ist`` ablates head 6 of layer
2 and chooses the token of step 4. ``~`` separates changes and ``_`` separates fields; inside a field, both
and ``%`` are written as ``%7E``, ``%5F`` and ``%25``. Apart from pieces and texts, a field uses only
characters that an address holds unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import transformer.interventions.heads as heads
import transformer.interventions.masks as masks
import transformer.interventions.patching as patching
import transformer.interventions.stacks as stacks
import transformer.interventions.tokens as tokens
from transformer.interventions.base import Intervention, InterventionError
from transformer.interventions.fields import (
    count_down,
    count_up,
    escaped,
    read_cells,
    read_heads,
    read_place,
    read_rows,
    read_sublayer,
    read_token,
    unescaped,
    write_cells,
    write_heads,
    write_place,
    write_rows,
    write_sublayer,
    write_token,
)
from transformer.model.sites import Sublayer

Json = dict[str, Any]
MOST_CHANGES = 64
LONGEST = 20_000
"""Most characters of a compact text."""
UNREADABLE = "The change {!r:.60} cannot be read."


def write_text(changes: Iterable[Intervention]) -> str:
    """Interventions as compact text; empty without any."""
    return "~".join("_".join(map(escaped, (each.name, *_FORMS[each.name].write(each)))) for each in changes)


def read_text(text: str) -> tuple[Intervention, ...]:
    """Reads what ``write_text`` wrote.

    Raises:
        InterventionError: The text is too long, or holds something else.
    """
    if len(text) > LONGEST:
        raise InterventionError(f"The changes take more than {LONGEST:,} characters.")
    return _few([_read(each) for each in text.split("~")] if text else [])


def _read(text: str) -> Intervention:
    name, *parts = map(unescaped, text.split("_"))
    form = _FORMS.get(name)
    if form is None:
        raise InterventionError(f"There is no change {name!r:.40}; known are {', '.join(_FORMS)}.")
    try:
        return form.read(*parts)
    except InterventionError:
        raise
    except (ValueError, TypeError, IndexError, KeyError) as error:
        raise InterventionError(UNREADABLE.format(text)) from error


def to_json(changes: Iterable[Intervention]) -> list[Json]:
    """Interventions as JSON values."""
    return [{"do": each.name, **_arguments(each)} for each in changes]


def from_json(values: Any) -> tuple[Intervention, ...]:
    """Reads what ``to_json`` wrote.

    Raises:
        InterventionError: The values are something else.
    """
    if not isinstance(values, list) or not all(isinstance(each, dict) for each in values):
        raise InterventionError("Changes are a list of objects.")
    return _few([_from_json(each) for each in values])


def _from_json(values: Json) -> Intervention:
    form = _FORMS.get(str(values.get("do")))
    if form is None:
        raise InterventionError(
            f"There is no change {values.get('do')!s:.40}; known are {', '.join(_FORMS)}."
        )
    try:
        return form.make(**{name: value for name, value in values.items() if name != "do"})
    except InterventionError:
        raise
    except (ValueError, TypeError, IndexError, KeyError, AttributeError) as error:
        raise InterventionError(UNREADABLE.format(str(values))) from error


def _few(changes: Sequence[Intervention]) -> tuple[Intervention, ...]:
    if len(changes) > MOST_CHANGES:
        raise InterventionError(f"A run takes at most {MOST_CHANGES} changes; there are {len(changes)}.")
    return tuple(changes)


def _arguments(value: Any) -> Json:
    return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}


def _plain(value: Any) -> Any:
    if isinstance(value, Sublayer):
        return {"side": value.side, "layer": value.layer, "sublayer": value.name}
    if isinstance(value, patching.PatchPlace):
        return {"at": _PLACES[type(value)], **_flat(_arguments(value))}
    if isinstance(value, patching.OtherRun):
        target = None if value.target is None else list(value.target)
        return {"text": value.text, "target": target, "interventions": to_json(value.interventions)}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, str) else value


def _flat(values: Json) -> Json:
    return values.get("sublayer", values) if isinstance(values.get("sublayer"), dict) else values


_PLACES: dict[type, str] = {
    patching.Embeddings: "embeddings",
    patching.Stream: "stream",
    patching.HeadOutput: "head",
    patching.EncoderOutput: "encoder output",
}
_MADE: dict[str, Callable[..., patching.PatchPlace]] = {
    "embeddings": patching.embeddings,
    "stream": patching.stream,
    "head": patching.head_output,
    "encoder output": patching.encoder_output,
}


class _Form(NamedTuple):
    """How one sort of intervention is written: to fields, from fields, and from JSON."""

    write: Callable[[Any], list[str]]
    read: Callable[..., Intervention]
    make: Callable[..., Intervention]


def _norm_from(text: str) -> Intervention:
    return stacks.drop_norm(*read_sublayer(text)) if "." in text else stacks.drop_norm(text)


def _patch(value: patching.Patch) -> list[str]:
    pairs = value.positions
    positions = "all" if pairs is None else "-".join(f"{count_up(a)}.{count_up(b)}" for a, b in pairs)
    target = value.from_run.target
    ids = "none" if target is None else ".".join(map(str, target))
    return [
        write_place(value.place),
        positions,
        value.from_run.text,
        ids,
        write_text(value.from_run.interventions),
    ]


def _patch_from(place: str, positions: str, text: str, ids: str, changes: str) -> Intervention:
    pairs = None
    if positions != "all":
        pairs = [tuple(map(count_down, pair.split("."))) for pair in positions.split("-")]
    target = None if ids == "none" else [int(each) for each in ids.split(".")]
    other = patching.run(text, target, read_text(changes))
    return patching.patch(read_place(place), other, pairs)  # type: ignore[arg-type]


def _row(value: heads.SetRow) -> list[str]:
    given = [part for key, weight in value.given for part in (count_up(key), f"{weight!r}")]
    return [*write_heads(value), count_up(value.query), *given]


def _row_from(kind: str, place: str, query: str, *given: str) -> Intervention:
    pairs = {count_down(key): float(weight) for key, weight in zip(given[::2], given[1::2], strict=True)}
    if 2 * len(pairs) != len(given):
        raise InterventionError("A row is set by one weight for each key.")
    return heads.set_row(kind, *read_heads(place), count_down(query), pairs)


def _mask_from(kind: str, layer: str, allow: str, forbid: str) -> Intervention:
    at = None if layer == "all" else count_down(layer)
    return masks.mask(kind, read_cells(allow), read_cells(forbid), at)


# --- from JSON --------------------------------------------------------------------------------------------


def _ablate_json(kind: Any, layer: Any, head: Any, by: Any, rows: Any) -> Intervention:
    return heads.ablate(kind, layer, head, by, rows)


def _row_json(kind: Any, layer: Any, head: Any, query: Any, given: Any) -> Intervention:
    pairs = dict(given)
    if len(pairs) != len(given):
        raise InterventionError("A row is set by one weight for each key.")
    return heads.set_row(kind, layer, head, query, pairs)


def _sublayer_json(sublayer: Any) -> Intervention:
    return stacks.drop_sublayer(**sublayer)


def _norm_json(place: Any) -> Intervention:
    return stacks.drop_norm(place) if isinstance(place, str) else stacks.drop_norm(**place)


def _patch_json(place: Any, from_run: Any, positions: Any) -> Intervention:
    made = _MADE[place["at"]](**{name: value for name, value in place.items() if name != "at"})
    other = patching.run(from_run["text"], from_run["target"], from_json(from_run["interventions"]))
    return patching.patch(made, other, positions)


_FORMS: dict[str, _Form] = {
    "choose": _Form(
        lambda v: [count_up(v.step), write_token(v.token)],
        lambda step, token: tokens.choose(count_down(step), read_token(token)),
        tokens.choose,
    ),
    "forbid": _Form(
        lambda v: [write_token(v.token), *([] if v.step is None else [count_up(v.step)])],
        lambda token, *step: tokens.forbid(read_token(token), *map(count_down, step)),
        tokens.forbid,
    ),
    "prefix": _Form(
        lambda v: [write_token(each) for each in v.token_ids],
        lambda *each: tokens.prefix(list(map(read_token, each))),
        tokens.prefix,
    ),
    "edit": _Form(
        lambda v: [count_up(v.position), write_token(v.token)],
        lambda at, token: tokens.edit_source(count_down(at), read_token(token)),
        tokens.edit_source,
    ),
    "drop": _Form(
        lambda v: [count_up(v.position)], lambda at: tokens.drop_source(count_down(at)), tokens.drop_source
    ),
    "ablate": _Form(
        lambda v: [*write_heads(v), v.by, *write_rows(v.rows)],
        lambda kind, place, by, *rows: heads.ablate(kind, *read_heads(place), by, read_rows(rows)),
        _ablate_json,
    ),
    "scale": _Form(
        lambda v: [*write_heads(v), f"{v.factor!r}", *write_rows(v.rows)],
        lambda kind, place, factor, *rows: heads.scale(
            kind, *read_heads(place), float(factor), read_rows(rows)
        ),
        heads.scale,
    ),
    "row": _Form(_row, _row_from, _row_json),
    "temperature": _Form(
        lambda v: [*write_heads(v), f"{v.temperature!r}"],
        lambda kind, place, value: heads.temperature(kind, *read_heads(place), float(value)),
        lambda kind, layer, head, temperature: heads.temperature(kind, layer, head, temperature),
    ),
    "unscaled": _Form(
        write_heads, lambda kind, place: heads.unscaled(kind, *read_heads(place)), heads.unscaled
    ),
    "hide": _Form(lambda v: [count_up(v.source_token)], lambda at: masks.hide(count_down(at)), masks.hide),
    "mask": _Form(
        lambda v: [
            str(v.kind),
            "all" if v.layer is None else count_up(v.layer),
            write_cells(v.allow),
            write_cells(v.forbid),
        ],
        _mask_from,
        masks.mask,
    ),
    "nopositions": _Form(lambda v: [v.side], stacks.no_positions, stacks.no_positions),
    "dropsublayer": _Form(
        lambda v: [write_sublayer(v.sublayer)],
        lambda text: stacks.drop_sublayer(*read_sublayer(text)),
        _sublayer_json,
    ),
    "dropnorm": _Form(
        lambda v: [write_sublayer(v.place) if isinstance(v.place, Sublayer) else v.place],
        _norm_from,
        _norm_json,
    ),
    "patch": _Form(_patch, _patch_from, _patch_json),
}
