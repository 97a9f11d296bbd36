"""Interventions: one thing changed in a running model, as a value.

    from transformer import interventions as do
    base = translator.translate(text)
    changed = translator.translate(text, interventions=[do.ablate("cross", layer=1, head=5, by="mean")])

An intervention is frozen and compares by its fields, so it is a key, a line of a caption (``str``, counted
from 1), JSON (``to_json``, counted from 0) and a part of an address (``write_text``, counted from 1). Within
one attention, masks come first, then scores, weights and outputs; changes of one sort act in their order.

Tokens are steered in the search (``transformer.decoding``), which never changes the model's
log-probabilities. Positions of ``edit_source`` and ``drop_source`` are those of the text as typed, all other
positions those of the source as the model reads it. While decoding, later keys do not exist, so only in a
forced pass can the causal mask be lifted or the whole output be patched. ``transformer.interventions.edits``
makes them changes of the values that a model names; ``transformer.equations`` has the equations that an audit
holds against what was recorded.
"""

# isort: off
from transformer.interventions.codec import Intervention, InterventionError
from transformer.interventions.codec import from_json, read_text, to_json, write_text
from transformer.interventions.request import PARTS, Cell, Cells, RunShape, Token
from transformer.interventions.changes import Choose, DropSource, EditSource, Forbid, Prefix
from transformer.interventions.changes import choose, drop_source, edit_source, forbid, prefix
from transformer.interventions.changes import (
    Ablate,
    InAttention,
    InHeads,
    Scale,
    SetRow,
    Temperature,
    Unscaled,
)
from transformer.interventions.changes import ablate, scale, set_row, temperature, unscaled
from transformer.interventions.changes import Hide, Mask, Masking, hide, mask
from transformer.interventions.changes import DropNorm, DropSublayer, NoPositions
from transformer.interventions.changes import drop_norm, drop_sublayer, no_positions
from transformer.interventions.patches import Embeddings, EncoderOutput, HeadOutput, PatchPlace, Stream
from transformer.interventions.patches import embeddings, encoder_output, head_output, stream
from transformer.interventions.patches import HeadMeans, OtherRun, Patch, patch, run
from transformer.interventions.patches import as_interventions, check, edited
