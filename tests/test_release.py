"""The scripts of those who change the library: what a release needs, and which tests are quick."""

import runpy
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def release():
    return runpy.run_path(str(ROOT / "scripts" / "release"))


@pytest.fixture
def copy(tmp_path):
    """What the script reads, as of a version that could be released."""
    (tmp_path / "src" / "iqrl").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    (tmp_path / "src" / "iqrl" / "__init__.py").write_text('__version__ = "1.2.0"\n')
    (tmp_path / "CITATION.cff").write_text("version: 1.2.0\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.0, 2030-01-01\n")
    return tmp_path


def test_the_version_is_the_same_everywhere(release):
    assert len(set(release["versions"]().values())) == 1


def test_versions_that_differ_are_named(release, copy):
    assert release["complaints"](copy) == []
    (copy / "CITATION.cff").write_text("version: 1.1.0\n")
    (wrong,) = release["complaints"](copy)
    assert "CITATION.cff 1.1.0" in wrong


def test_a_version_needs_a_heading_in_the_changelog(release, copy):
    (copy / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n")
    assert "no heading ## 1.2.0" in release["complaints"](copy)[0]


def test_a_wheel_without_a_file_of_the_package(release, copy, tmp_path):
    (copy / "src" / "iqrl" / "page.css").write_text("")
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as wheel:
        wheel.writestr("iqrl/__init__.py", "")
    assert release["missing"](tmp_path / "a.whl", copy / "src" / "iqrl") == ["iqrl/page.css"]


def test_fast_tests_are_those_about_what_was_changed():
    script = runpy.run_path(str(ROOT / "scripts" / "fast_tests"))
    assert all((ROOT / name).exists() for name in (*script["QUICK"], *script["LONG"]))
    tests_of = script["tests_of"]
    assert tests_of(["src/iqrl/core/replay/ring.py"])[0] == "tests/core/replay/test_ring.py"
    assert "tests/envs/test_changing.py" in tests_of(["src/iqrl/envs/adapter.py"])
    assert tests_of(["README.md"]) == ["tests/test_docs_blocks.py"]
    assert tests_of(["tests/test_files.py"]) == ["tests/test_files.py"]
