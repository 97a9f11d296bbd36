from __future__ import annotations

import numpy as np
import torch

from explorer.lenses.what_if.two_heads import WORDS, two_heads


def test_seven_matrices_compute_what_multi_head_attention_computes():
    toy = two_heads()
    assert len(toy.matrices) == 7
    assert toy.numbers == sum(each.size for each in toy.matrices)
    x = torch.tensor(toy.x, dtype=torch.float64)
    outputs = []
    for head in toy.heads:
        q, k, v = (x @ torch.tensor(each, dtype=torch.float64) for each in head.matrices)
        outputs.append(torch.nn.functional.scaled_dot_product_attention(q, k, v))
        np.testing.assert_allclose(head.output, outputs[-1], atol=1e-12)
    whole = torch.cat(outputs, dim=1) @ torch.tensor(toy.w_o, dtype=torch.float64)
    np.testing.assert_allclose(toy.output, whole, atol=1e-12)


def test_the_verb_finds_one_noun_with_each_head():
    first, last = (head.weights[WORDS.index("sees")] for head in two_heads().heads)
    assert (WORDS[int(first.argmax())], WORDS[int(last.argmax())]) == ("cat", "mouse")
    assert min(first.max(), last.max()) > 0.9
