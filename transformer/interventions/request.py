"""Which changes fit a request: the bounds of what they count, and what contradicts what."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from transformer import interventions as do
from transformer.config import ModelConfig, Side


@dataclass(frozen=True)
class RunShape:
    """The request that a change is checked against: the model and the lengths of both sides."""

    config: ModelConfig
    typed: int  # number of source tokens as typed, ``</s>`` included
    source: int  # number of source tokens as the model reads them
    target: int  # most tokens of the output
    forced: int | None = None  # number of tokens of the output in a forced pass; None while decoding

    def exact(self, side: Side) -> int | None:
        """Number of tokens of a side; None if it is not known before the output is."""
        return self.source if side == "encoder" else self.forced


def check(changes: Sequence[do.Intervention], shape: RunShape) -> None:
    """Raises InterventionError if a change does not fit the request, or if two contradict each other."""
    decided = list[str]()
    for change in changes:
        if problem := _lacks(change, shape) or _refusal(change, changes, shape):
            raise do.InterventionError(problem)
        match change:
            case do.Choose(step):
                decided.append(f"step {step + 1}")
            case do.Prefix(tokens):
                decided += [f"step {step + 1}" for step in range(len(tokens))]
            case do.EditSource(position) | do.DropSource(position):
                decided.append(f"source token {position + 1}")
    if twice := [each for each in decided if decided.count(each) > 1]:
        raise do.InterventionError(f"Two changes decide {twice[0]}; keep one of them.")


def _lacks(change: do.Intervention, shape: RunShape) -> str:
    """What a change names that the model or the texts do not have, in one sentence."""
    config, where = shape.config, "this run"
    lengths = {"encoder": shape.source, "decoder": shape.target}
    counts = {"step": shape.target, "typed": shape.typed, "source token": shape.source}
    counts["head"] = config.n_heads
    kind, side, name = (getattr(change, each, None) for each in ("kind", "side", "sublayer"))
    if kind is not None and not isinstance(change, do.Patch):
        if (site := config.sites.get(kind)) is None:
            return f"This model has no {do.SITES[kind]}."
        counts |= {"query": lengths[site.query_side], "key": lengths[site.key_side], "layer": site.n_layers}
        where = do.SITES[kind]
    if side is not None:
        if (stack := config.stacks.get(side)) is None:
            return f"This model has no {side}."
        if name is not None and name not in stack.sublayers:
            return f"A layer of the {side} has no {do.PARTS[name]}."
        counts |= {"position": lengths[side], "layer": stack.n_layers}
        where = f"the {side}"
    for noun, at in (found for _, field, value in change.values() for found in field.indices(value)):
        if at >= (count := counts.get(noun, inf)):
            most = "at most " * (shape.forced is None and noun in ("step", "query", "key", "position"))
            noun = "source token" if noun == "typed" else noun
            return f"There is no {noun} {at + 1} in {where}: there are {most}{count:,}, counted from 1."
    return ""


def _refusal(change: do.Intervention, changes: Sequence[do.Intervention], shape: RunShape) -> str:
    """Why a change does not fit a request that has what it names, in one sentence; empty if it does."""
    config, sites, decoding = shape.config, shape.config.sites, shape.forced is None
    relative = {*do.REGIONS} - {"all"}
    match change:
        case do.Prefix(tokens) if len(tokens) > shape.target:
            return f"There is no step {len(tokens)}: the output is limited to {shape.target:,} tokens."
        case do.Ablate(kind="cross", by="previous"):
            return "A query of cross-attention has no previous key: its keys belong to another sentence."
        case do.Ablate(by="previous", rows=(0, *_)):
            return "Query 1 has no previous key, so it cannot look there."
        case do.SetRow(given=given) if sum(weight for _, weight in given) > 1 + do.SUM_LIMIT:
            return "The weights of a row sum to more than 1."
        case do.SetRow(kind=kind, query=query, given=given) if sites[kind].causal:
            masks = [each for each in changes if isinstance(each, do.Mask) and each.kind == kind]
            for key, weight in given:
                if weight and key > query and not any(do.allows(mask, query, key) for mask in masks):
                    return f"Query {query + 1} cannot attend to key {key + 1}, which comes after it."
        case do.Unscaled(kind=kind) if sites[kind].score != "scaled_dot":
            return f"The scores of this model's {do.SITES[kind]} are not divided by √d_k."
        case do.Mask(allow=(), forbid=()):
            return "A mask is changed by cells to allow or to forbid; name some."
        case do.Mask(kind=kind) if not sites[kind].own_keys and relative.intersection(
            change.allow + change.forbid
        ):
            return f"Queries and keys of {do.SITES[kind]} belong to two sentences: name cells, or all."
        case do.Mask(kind=kind) if decoding and sites[kind].causal and do.lifts(change):
            return "While decoding, later tokens do not exist yet; lift the mask over a given translation."
        case do.NoPositions(side) if config.positions == "none":
            return f"This model has no positions in the {side} that could be left out."
        case do.DropNorm(_, layer, part) if (layer is None) != (part is None):
            return "A norm is that of a sub-layer of a layer, or the last of a side; name both, or none."
        case do.DropNorm(side, None) if not config.stacks[side].passed():
            return f"This model has no norm in the {side}."
        case do.DropNorm(side, None) if config.norm != "pre":
            return f"The {side} of this model ends without a norm of its own (post-norm)."
        case do.Patch(place):
            from transformer.hooks import hook_names  # needs PyTorch, as the run does

            if change.hook not in hook_names(config) or max(change.head, default=0) >= config.n_heads:
                return f"This model has no {do.counted(place)}, counted from 1."
            if change.side == "decoder" and change.target is None:
                return "A patch into the decoder needs the output of the other run; give one."
            if change.positions is None and shape.exact(change.side) is None:
                return "While decoding, the output has no length yet; name positions, or patch a forced pass."
    return ""
