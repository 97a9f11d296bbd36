"""Compares gradients of this package with captum's, on transformers' model of the same weights.

    pip install --no-deps captum==0.9.0 && python benchmarks/referees.py

A small Marian model with random weights, as the tests make them. Largest differences by token, in nats, for
one step. captum is no requirement: nothing else here needs it.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from explorer.lenses.measures.attribution import saliency
from transformer import Capture, load_translator

STEP, POINTS = 2, 1000


def main() -> None:
    """Prints both comparisons."""
    from captum.attr import InputXGradient, IntegratedGradients
    from marian_models import reference, write_marian

    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        directory = write_marian(Path(folder), seed=1)
        translator, model = load_translator(directory), reference(directory)
    run = translator.force("the cat sat on a mat", "die Katze saß auf", capture=Capture(residual=True))
    token, scale = run.target_ids[STEP], translator.config.embedding_scale
    assert run.attention is not None
    sides = run.attention.embeddings
    own = sides["encoder"].tokens[None], sides["decoder"].tokens[None, : STEP + 1]

    def logit(source: torch.Tensor, prefix: torch.Tensor) -> torch.Tensor:
        # transformers scales what the decoder is given, and not what the encoder is given
        found = model(inputs_embeds=source, decoder_inputs_embeds=prefix / scale)
        return torch.as_tensor(found.logits[:, -1, token])

    more = {"n_steps": POINTS, "internal_batch_size": 64}
    theirs = {
        "gradient × input": InputXGradient(logit).attribute(own),
        "integrated gradients": IntegratedGradients(logit).attribute(own, **more),
    }
    for name, parts in theirs.items():
        ours = saliency(translator, run, STEP, token, integrated=name.startswith("integrated"))
        pairs = zip(parts, (ours.source, ours.prefix), strict=True)
        missed = max(float(np.abs(part.sum(-1)[0].detach().numpy() - mine).max()) for part, mine in pairs)
        print(f"{name}: largest difference {missed:.1e}, largest value {np.abs(ours.source).max():.2f}")


if __name__ == "__main__":
    main()
