import numpy as np
import pytest

from iqrl.diagnostics.analysis.neighbours import nearest_neighbours
from iqrl.errors import BadInput

CODES = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0], [0.0, 2.0], [6.0, 8.0]])


def test_nearest_first_without_the_query_itself():
    found = nearest_neighbours(CODES, [0, 4], 2)
    np.testing.assert_array_equal(found.indices, [[2, 3], [1, 3]])
    np.testing.assert_allclose(found.distances, [[1, 2], [5, np.hypot(6, 6)]])
    np.testing.assert_array_equal(found.queries, [0, 4])


def test_frames_of_the_same_moment_do_not_count():
    found = nearest_neighbours(CODES, [2], 2, apart=1)
    np.testing.assert_array_equal(found.indices, [[0, 4]])


def test_what_cannot_be_is_refused():
    with pytest.raises(BadInput, match="there are 2 states to choose neighbours from"):
        nearest_neighbours(CODES, [0, 2], 3, apart=1)
    for queries in ([5], [-1], []):
        with pytest.raises(BadInput, match="positions in the codes, 0 to 4"):
            nearest_neighbours(CODES, queries, 1)
