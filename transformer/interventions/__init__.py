"""Interventions: one thing changed in a running model, as a value.

    from transformer import interventions as do
    base = translator.translate(text)
    changed = translator.translate(text, interventions=[do.ablate("cross", layer=1, head=5, by="mean")])

**A value, not a closure.** An intervention is frozen and compares by its fields. So it can be a key, a line
of a caption (``str``, counted from 1), JSON (``to_json``, counted from 0) and a part of an address
(``write_text``, counted from 1). Each sort is a class with declared fields (``written.Field``), and a field's
type checks, writes and reads it, so a value that means nothing is refused, in one sentence, when it is made.
``ablate`` is ``Ablate``; where a function reads better, there is one.

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

**Three rules.** Tokens are steered in the search (``transformer.decoding``), which never changes the
model's log-probabilities. Positions of ``edit_source`` and ``drop_source`` are those of the text as typed,
all other positions those of the source as the model reads it. While decoding, later keys do not exist, so
only in a forced pass can the causal mask be lifted or the whole output be patched.

**What must be computed first.** The mean output of a head and the vectors of another run are put beside the
value before the pass (``Change``). ``transformer.requests`` computes them.

**The proof.** ``transformer.trace.equations`` holds, for each sort of intervention, what a trace records of
it and which equation the audit checks.
"""

# isort: off
# The order of the files is the order in which messages name the sorts of change.
from transformer.interventions.base import InterventionError, Setting, Token
from transformer.interventions.tokens import *
from transformer.interventions.heads import *
from transformer.interventions.masks import *
from transformer.interventions.stacks import *
from transformer.interventions.places import *
from transformer.interventions.patching import *
from transformer.interventions.written import Intervention, from_json, read_text, to_json, write_text
