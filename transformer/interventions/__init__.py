"""Interventions: one thing changed in a running model, as a value.

    from transformer import interventions as do
    base = translator.translate(text)
    changed = translator.translate(text, interventions=[do.ablate("cross", layer=1, head=5, by="mean")])

**A value, not a closure.** An intervention is frozen and compares by its fields. So it can be a key, a line
of a caption (``str``, counted from 1), JSON (``to_json``, counted from 0) and a part of an address
(``write_text``, counted from 1). Each sort is a frozen dataclass whose fields declare a ``codec.Kind`` that
checks, writes and reads them, so a value that means nothing is refused, in one sentence, when it is made.
``ablate`` is ``Ablate`` for whoever types it; where a function reads better, there is one.

**A second implementation of the observer.** The model asks its observer at every place of the forward pass
(``transformer.model.watching.observer``) and continues with the answer. ``Changes`` answers with changed
values; a recorder around it keeps both what the model had computed and what it then used. Nothing in the
forward pass knows that interventions exist, and no module is touched: a request carries its own
``Changes``, which holds no state. Only an attention layer that is changed leaves the fused path, and only
if more than a head's output changes.

**What may be changed, in the order of the forward pass.** Source tokens (``edit_source``, ``drop_source``);
positions of a side (``no_positions``); masks (``mask``, ``hide``); a head's scores (``temperature``,
``unscaled``), its weights (``set_row``, ``ablate`` by "uniform", "previous", "first"), its output
(``ablate`` by "zero", "mean", ``scale``); a sub-layer or LayerNorm (``drop_sublayer``, ``drop_norm``);
tokens of the output (``choose``, ``forbid``, ``prefix``). ``patch`` puts what another run held into the
input of a stack, the stream after a sub-layer, a head's output or the encoder's output. Within one
attention, masks come first, then scores, weights and outputs; changes of one sort act in the order of the
list.

**Three rules.** Tokens are steered in the search (``transformer.decode.steering``), which never changes the
model's log-probabilities. Positions of ``edit_source`` and ``drop_source`` are those of the text as typed,
all other positions those of the source as the model reads it. While decoding, later keys do not exist, so
only in a forced pass can the causal mask be lifted or the whole output be patched.

**What must be computed first.** The mean output of a head and the vectors of another run are put beside the
value before the pass (``Change``). ``transformer.runs.call`` computes them.

**The proof.** ``transformer.trace.equations`` holds, for each sort of intervention, what a trace records of
it and which equation the audit checks.
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
