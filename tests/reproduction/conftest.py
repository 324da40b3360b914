"""The re-analysis, of the authors' curves if they are at hand and of made-up ones."""

import os
from pathlib import Path

import numpy as np
import pytest
from made_up_curves import make_up

from iqrl.reproduction.authors_curves import read_curves
from iqrl.reproduction.reanalysis import reanalyse

AUTHORS_CURVES = Path(
    os.environ.get("IQRL_AUTHORS_CURVES")
    or Path(__file__).parents[2].parent / "shared" / "data" / "authors_atari_runs.npz"
)


@pytest.fixture(scope="session")
def found():
    """The re-analysis of the authors' curves."""
    if not AUTHORS_CURVES.exists():
        pytest.skip(f"the authors' curves are not at hand ({AUTHORS_CURVES}); IQRL_AUTHORS_CURVES names another place")
    return reanalyse(read_curves(AUTHORS_CURVES))


@pytest.fixture(scope="session")
def made_up_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("made up") / "curves.npz"
    np.savez(path, **make_up())
    return path


@pytest.fixture(scope="session")
def noise(made_up_file):
    """The re-analysis of made-up curves."""
    return reanalyse(read_curves(made_up_file))
