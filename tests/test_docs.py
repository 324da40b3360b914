"""What the documentation must not leave out."""

import re
import runpy
from pathlib import Path

import pytest

from iqrl.config import fields_of
from iqrl.methods import METHODS

DOCS = Path(__file__).parent.parent / "docs"


def entry(method):
    """The section of docs/methods.md on a method."""
    found = re.search(rf"^### `{re.escape(method)}`\n(.*?)(?=^##|\Z)", (DOCS / "methods.md").read_text(), re.M | re.S)
    assert found, f"docs/methods.md has no entry ### `{method}`"
    return found[1]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_an_entry_with_its_settings_and_source(method):
    text = entry(method)
    record = METHODS[method]
    for author in re.findall(r"([A-Z]\w+)(?: & \w+| et al\.)", record.source):
        assert author in text, f"the entry of {method} does not name {author}"
    if shared := re.search(r"Settings: as `([\w-]+)`", text):
        text += entry(shared[1])
    for group in record.extra_groups:
        for field in fields_of(group):
            assert f"`{field.name}`" in text, f"the entry of {method} does not name {field.name}"


def test_no_entry_without_a_method():
    headings = re.findall(r"^### `([\w-]+)`", (DOCS / "methods.md").read_text(), re.M)
    assert sorted(headings) == sorted(METHODS)


def test_the_page_of_results_is_what_the_results_say():
    """Every table between comments, made again from the curves in results/."""
    script = Path(__file__).parent.parent / "scripts" / "results"
    filled = runpy.run_path(str(script))["filled"]
    page = (DOCS / "results.md").read_text()
    assert "| CartPole-v0 | iq |" in page
    assert filled(page) == page
