"""Numbers on their way into memory: which are refused, and where they lie."""

import mmap

import pytest
import torch

from transformer import pages
from transformer.packed import copied_for_few_rows, for_few_rows
from transformer.storage.tensors import all_finite

LARGEST = torch.finfo(torch.float32).max


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_none_is_found_wherever_it_stands(wrong: float) -> None:
    for place in (0, 17, 99):
        numbers = torch.randn(100)
        numbers[place] = wrong
        assert not all_finite(numbers)
        assert not all_finite(numbers.view(20, 5).t())


def test_finite_numbers_pass_though_their_sum_is_none() -> None:
    assert all_finite(torch.full((3, 4), LARGEST))
    assert all_finite(torch.full((3, 4), -LARGEST))
    assert all_finite(torch.empty(0, 4))


@pytest.mark.parametrize("shape", [(7,), (3, 5), (5, 3), (1_024, 520), (520, 1_024)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_a_copy_lies_as_a_converted_model_has_it(
    shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    tensor = torch.randn(shape).to(dtype)
    copy = copied_for_few_rows(tensor)
    assert torch.equal(copy, tensor.float())
    assert copy.stride() == for_few_rows(tensor).stride()
    tensor.zero_()
    assert copy.any(), "The copy shares memory with what it was copied from."


@pytest.mark.parametrize("refused", ["mapping", "advice", ""])
def test_a_matrix_has_memory_of_its_own(refused: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large pages are asked for, and done without."""

    class Mapping(mmap.mmap):
        def madvise(self, *arguments: int) -> None:
            if refused == "advice":
                raise OSError
            super().madvise(*arguments)

    def mapped(*arguments: int, **options: int) -> mmap.mmap:
        if refused == "mapping":
            raise OSError
        return Mapping(*arguments, **options)

    monkeypatch.setattr(pages.mmap, "mmap", mapped)
    first = pages.empty(1_024, 700).fill_(1.0)
    second = pages.empty(1_024, 700).fill_(2.0)
    assert (first.shape, first.dtype) == ((1_024, 700), torch.float32)
    assert bool((first == 1).all() and (second == 2).all())
