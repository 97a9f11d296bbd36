"""The formula of attention as the running model computes it: with its mask, its bias and its
rotation."""

from explorer.app.address.encodings import ENCODINGS

_SIDES = {
    "encoder": ("", ""),
    "decoder": ("", ""),
    "cross": (r"_{\text{decoder}}", r"_{\text{encoder}}"),
}


_SAID = {
    "dot": "Queries and keys are multiplied as they are, without division by √d_k.",
    "additive": "Every query q is added to every key k: its score is vᵀ tanh(q + k).",
}


def attention(
    kind: str,  # encoder, decoder or cross
    positions: str,  # the model's encoding; in cross-attention no encoding acts
    masked: bool,  # whether M is written; without a mask that hides something, M is 0
    # how scores come from queries and keys, as ``config.sites`` names it
    score: str = "scaled_dot",
) -> str:
    r"""LaTeX of softmax(QKᵀ/√d_k) V, with everything that this model adds to it."""
    queries, keys = _SIDES[kind]
    acts = "nowhere" if kind == "cross" else ENCODINGS[positions].acts
    product = rf"Q{queries}K{keys}^{{\top}}"
    if acts == "rotation":
        product = rf"Q^{{\prime}}{queries}K{keys}^{{\prime\top}}"
    added = ""
    if acts == "scores":
        added += " + B"
    if masked:
        added += " + M"
    written = {
        "scaled_dot": rf"\frac{{{product}}}{{\sqrt{{d_k}}}}",
        "dot": product,
        "additive": rf"v^{{\top}} \tanh(Q{queries} \oplus K{keys})",
    }
    scores = f"{written[score]}{added}"
    return rf"\mathrm{{softmax}}\!\left({scores}\right)V{keys}"


def explained(kind: str, positions: str, score: str = "scaled_dot") -> str:
    """A sentence on B, on Q' and K', or on another score, if the formula has them; else empty."""
    if kind == "cross":
        return _SAID.get(score, "")
    if ENCODINGS[positions].acts == "rotation":
        return "Q′ and K′ are the queries and keys, turned by their positions."
    if ENCODINGS[positions].acts == "scores":
        return " ".join(
            filter(None, ("B is what this model's positions add to the scores.", _SAID.get(score)))
        )
    return _SAID.get(score, "")
