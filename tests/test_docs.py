"""What the documentation must not leave out."""

import json
import re
import runpy
from pathlib import Path

import pytest

from iqrl.methods.registry import METHODS
from iqrl.reproduction.claims.page import claims_page
from iqrl.settings import settings_of

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
    for author in re.findall(r"([A-Z]\w+)(?: & \w+| et al\.)", record.paper):
        assert author in text, f"the entry of {method} does not name {author}"
    if shared := re.search(r"Settings: as `([\w-]+)`", text):
        text += entry(shared[1])
    for name in settings_of(record.settings):
        assert f"`{name}`" in text, f"the entry of {method} does not name {name}"


def test_no_entry_without_a_method():
    headings = re.findall(r"^### `([\w-]+)`", (DOCS / "methods.md").read_text(), re.M)
    assert sorted(headings) == sorted(METHODS)


SCRIPT = runpy.run_path(str(DOCS.parent / "scripts" / "results"))


@pytest.mark.parametrize("path", SCRIPT["PAGES"], ids=lambda path: path.name)
def test_the_pages_of_results_are_what_the_results_say(path):
    """Every table between comments, made again from the curves in results/."""
    page = path.read_text()
    assert re.search(r"<!-- .+ -->\n.*\|.*<!-- end -->", page, re.DOTALL)
    assert SCRIPT["fill"](page) == page


def test_the_table_of_lunar_lander_is_what_the_seeds_say():
    files = sorted((DOCS.parent / "benchmarks" / "results" / "lunar_lander").glob("iqrl-recommended-300000-*.json"))
    greedy = [json.loads(file.read_text())["greedy"] for file in files]
    row = re.search(r"^\| `iqrl train LunarLander-v3` .*$", (DOCS / "from-sb3.md").read_text(), re.M)[0].split(" | ")
    assert (row[1], row[3]) == (
        str(len(greedy)), f"{sum(greedy) / len(greedy):.0f} ({min(greedy):.0f}…{max(greedy):.0f})"
    )  # fmt: skip


def test_the_page_of_claims_is_what_the_results_say():
    assert claims_page(DOCS.parent / "results") == (DOCS / "claims.md").read_text()


ROOT = DOCS.parent
PLACES = (ROOT / "src" / "iqrl", ROOT, DOCS)
ELSEWHERE = ("my.toml", "best.toml", "deepq/experiments/custom_cartpole.py")
FILE_NAME = r"`((?:[\w.-]+/)*[\w-]+\.(?:py|toml))`"


NAMING = ["CONTRIBUTING.md", "README.md", *sorted(f"docs/{path.name}" for path in DOCS.glob("*.md"))]


@pytest.mark.parametrize("page", NAMING)
def test_files_and_functions_that_a_page_names_are_there(page):
    text = (ROOT / page).read_text()
    for name in set(re.findall(FILE_NAME, text)):
        assert find_file(name) or name in ELSEWHERE, f"{page} names {name}"
    for name, function in set(re.findall(FILE_NAME + r"\s+`(?:\w+\.)?(\w+)`", text)):
        source = find_file(name).read_text()
        assert re.search(rf"\b(def|class) {function}\b|^{function}\b", source, re.M), f"{page}: {function} in {name}"


def find_file(name):
    """By its path, or by its name where a page is about its folder."""
    paths = [place / name for place in PLACES if (place / name).is_file()]
    return next(iter(paths or sorted((ROOT / "src").rglob(name))), None)
