import numpy as np

from iqrl.analysis.context_matrix import ContextMatrix
from iqrl.report.matrices import percent, plot_context_matrix
from iqrl.settings import resolve


def test_the_heat_map_says_mean_range_shares_and_what_is_left_out(tmp_path):
    change = np.array([[[-0.5, np.nan, 0.2]] * 3, [[-0.7, np.nan, 3.0]] * 3])
    counts = np.array([[600, 10, 390], [800, 20, 180]])
    matrix = ContextMatrix(change, np.ones((2, 3)), counts, np.tile(np.arange(3), (2, 1)), True)
    text = plot_context_matrix(matrix, resolve("CartPole-v0", "iq"), tmp_path / "matrix.svg").read_text()
    for words in ("iq on CartPole-v0, N=100", "−60%", "+160%", "−70% … −50%", "70% of states", "too few"):
        assert words in text
    assert "2 of 6 contexts have too few transitions and are left out" in text
    assert text.count("context 1") == 2


def test_a_matrix_of_nothing_is_drawn(tmp_path):
    nothing = np.full((1, 2, 2), np.nan)
    matrix = ContextMatrix(nothing, nothing[0], np.array([[9, 9]]), np.array([[0, 1]]), False)
    text = plot_context_matrix(matrix, resolve("CartPole-v0", "dqn"), tmp_path / "matrix.svg").read_text()
    assert "clusters of its states, 1 seed<" in text


def test_numbers_are_short():
    assert [percent(x) for x in (0.0, -1e-5, 0.012, -0.0996, 0.5, 12.0)] == [
        "0%",
        "0%",
        "+1.2%",
        "−10%",
        "+50%",
        "+1200%",
    ]
