"""The commit that a run's record names."""

import json
import subprocess
from types import SimpleNamespace

import pytest

from iqrl.training import run_directory
from iqrl.training.run_directory import provenance


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A repository with one commit and a copy of the module; returns what runs git in it."""
    file = tmp_path / "run_directory.py"
    file.write_text("")
    monkeypatch.setattr(run_directory, "__file__", str(file))

    def git(*arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        done = subprocess.run(
            ["git", "-C", tmp_path, *identity, *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "a project")
    return git


def install_from(monkeypatch, origin):
    text = None if origin is None else json.dumps(origin)
    found = SimpleNamespace(version="1", read_text=lambda name: text if name == "direct_url.json" else None)
    monkeypatch.setattr(run_directory.metadata, "distribution", lambda name: found)


def test_the_tree_that_the_package_is_used_from(project):
    project("add", ".")
    project("commit", "-q", "-m", "the module")
    assert provenance()["commit"] == project("rev-parse", "HEAD")


def test_an_environment_in_the_tree_of_another_project(project, monkeypatch):
    install_from(monkeypatch, None)
    assert provenance()["commit"] is None


@pytest.mark.parametrize(
    ("origin", "commit"),
    [
        ({"url": "https://example.org/a", "vcs_info": {"vcs": "git", "commit_id": "ab12"}}, "ab12"),
        ({"url": "file:///a", "dir_info": {}}, None),
        ([], None),
    ],
)
def test_installed_from_a_repository(project, monkeypatch, origin, commit):
    install_from(monkeypatch, origin)
    assert provenance()["commit"] == commit
