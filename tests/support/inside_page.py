"""What "Inside a head" shows, read back from its slots, and the same numbers computed elsewhere."""

import json
import math

import numpy as np
import torch
from app_pages import array, slots, words
from streamlit.testing.v1 import AppTest

from transformer.translator import Translator

PAGE = "pages/inside_a_head.py"
KINDS = ("encoder", "decoder", "cross")


def charts(at: AppTest) -> dict[str, dict]:
    """The figures in the slots of the page, by name."""
    return {picture["name"]: json.loads(picture["figure"]) for picture in pictures(at)}


def pictures(at: AppTest) -> list[dict]:
    """The pictures in the slots, with their captions, badges and legends."""
    return [each for slot in slots(at).values() for each in slot.get("pictures", [])]


def told(at: AppTest) -> str:
    """Everything that the page says: its own words, the texts in the slots, captions and badges."""
    texts = [str(slot.get("text", "")) for slot in slots(at).values()]
    captions = [picture["caption"] for picture in pictures(at)]
    badges = [each["badge"]["text"] for each in pictures(at) if each["badge"]]
    return " ".join([words(at), *texts, *captions, *badges])


def line(chart: dict, name: str) -> np.ndarray:
    """The numbers of a line of the calculation."""
    place = next(i for i, text in enumerate(chart["layout"]["yaxis"]["ticktext"]) if text == name)
    y0 = chart["layout"]["yaxis"]["tickvals"][place]
    return next(array(each["z"])[0] for each in chart["data"] if each.get("y0") == y0)


def equal(shown: np.ndarray, true: np.ndarray) -> None:
    """Numbers of the page and numbers computed elsewhere differ by at most 1e-5 of the largest."""
    np.testing.assert_allclose(shown, true, rtol=0, atol=1e-5 * max(1.0, float(np.abs(true).max())))


def independent(
    translator: Translator, text: str, kind: str, place: tuple[int, int], row: int
) -> dict:
    """The head by torch's own modules, step by step; nothing of `explorer.lenses.inside.inside`."""
    model, (layer, head) = translator.model, place
    translation = translator.translate(text)
    src = torch.tensor([[*translator.ids(text), translator.config.eos_id]])
    ids = [step.token_id for step in translation.steps]
    tgt = torch.tensor([[translator.config.bos_id, *ids[:-1]]])
    name = "cross_attention" if kind == "cross" else "self_attention"
    stack = model.encoder if kind == "encoder" else model.decoder
    attention = getattr(stack.layers[layer], name)
    seen: dict[str, torch.Tensor] = {}

    def keep(_module: object, given: tuple, named: dict, result: torch.Tensor) -> None:
        memory = named.get("memory")
        seen.update(
            x=given[0][0], a=(given[0] if memory is None else memory)[0], update=result[0, row]
        )

    handle = attention.register_forward_hook(keep, with_kwargs=True)
    model(src, tgt)
    handle.remove()
    width = translator.config.d_head
    cut = slice(head * width, (head + 1) * width)
    q = attention.q_proj(seen["x"])[row, cut]
    k = attention.k_proj(seen["a"])[:, cut]
    v = attention.v_proj(seen["a"])[:, cut]
    seen_keys = slice(0, row + 1) if kind == "decoder" else slice(None)

    def weighed(scores: torch.Tensor) -> torch.Tensor:
        weights = torch.zeros(len(scores))
        weights[seen_keys] = scores[seen_keys].softmax(0)
        return weights

    weights = weighed(k @ q / math.sqrt(width))
    found = {"x": seen["x"][row], "a": seen["a"], "q": q, "k": k, "v": v, "products": k @ q}
    found |= {"weights": weights, "seen": weights > 0, "b": weights @ v, "update": seen["update"]}
    return {name: each.numpy() for name, each in found.items()}
