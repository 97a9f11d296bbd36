"""What changes of an attention name: its kind, a layer, heads, rows."""

from collections.abc import Iterable
from typing import Annotated

from transformer.config import AttentionKind
from transformer.interventions.fields import Index, Name, One, OrNone, Several
from transformer.interventions.words import SITES

Kind = Annotated[AttentionKind, One(Name(SITES))]
Layer = Annotated[int, One(Index("layer"))]
LayerOrAll = Annotated[int | None, OrNone(One(Index("layer")))]
Heads = Annotated[tuple[int, ...] | None, OrNone(Several(Index("head")))]
Query = Annotated[int, One(Index("query"))]
Rows = Annotated[tuple[int, ...] | None, OrNone(Several(Index("row", counts="query")))]
Indices = int | Iterable[int] | None
"""What people type for heads or rows: one, several, or (None) all."""
