"""Directories that tests of faults damage copies of."""

import damage
import pytest


@pytest.fixture(scope="session")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("originals")
    damage.make_originals(folder)
    return folder
