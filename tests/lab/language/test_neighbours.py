from __future__ import annotations

import numpy as np
import pytest

from lab.language.embeddings import Neighbours, nearest, shared


def test_the_nearest_candidates_come_first_and_a_word_is_not_its_own_neighbour():
    cosines = np.array([[1.0, 0.2, 0.9, 0.2], [0.1, 0.3, 0.2, 1.0]])
    found = nearest(cosines, [5, 8], [5, 6, 7, 8], 2)
    assert found.ids.tolist() == [[7, 6], [6, 7]]
    assert found.cosines.tolist() == [[0.9, 0.2], [0.3, 0.2]]


@pytest.mark.parametrize("k", [0, 4])
def test_as_many_neighbours_as_candidates_are_refused(k):
    with pytest.raises(ValueError, match="cannot be taken"):
        nearest(np.ones((1, 4)), [5], [5, 6, 7, 8], k)


def test_shared_is_the_part_of_the_first_list_that_the_second_has_too():
    one = Neighbours(np.array([[1, 2], [3, 4]]), np.zeros((2, 2)))
    other = Neighbours(np.array([[2, 9, 1], [5, 6, 4]]), np.zeros((2, 3)))
    assert shared(one, other).tolist() == [1, 0.5]
