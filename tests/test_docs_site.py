"""The site of the documentation is built without a warning, and its links lead somewhere."""

import doctest
import importlib
import re
import sys
from pathlib import Path

import pytest

import iqrl

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """In this process: JAX is imported already, which autodoc would do again in another."""
    from sphinx.cmd.build import build_main

    folder = tmp_path_factory.mktemp("site")
    flags = ["--fail-on-warning", "--keep-going", "--quiet", "-d", str(folder / "doctrees")]
    before = list(sys.path)
    code = build_main([*flags, str(DOCS), str(folder / "html")])
    sys.path[:] = before
    assert code == 0
    return folder / "html"


@pytest.mark.filterwarnings("ignore")
def test_the_site_is_built_without_a_warning(site):
    pages = {path.relative_to(DOCS).with_suffix("") for path in (*DOCS.glob("*.md"), *DOCS.glob("notebooks/*.ipynb"))}
    built = {path.relative_to(site).with_suffix("") for path in site.rglob("*.html")}
    assert pages <= built
    assert "Approximate Expected Interference" in (site / "glossary.html").read_text()
    assert (site / "notebooks" / "see-interference.html").read_text().count("data:image/png") >= 2


@pytest.mark.filterwarnings("ignore")
def test_the_site_asks_for_nothing_from_elsewhere(site):
    for page in site.glob("*.html"):
        assert not re.findall(r'(?:src|href)="(?:https?:)?//[^"]*\.(?:js|css|woff2?)', page.read_text()), page


@pytest.mark.filterwarnings("ignore")
def test_every_public_name_is_in_the_reference(site):
    page = (site / "api.html").read_text()
    for name in iqrl.__all__:
        assert re.search(rf"iqrl\.{name}\b", page), f"docs/api.md does not name iqrl.{name}"


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "benchmarks/README.md"])
def test_links_of_pages_outside_the_site(page):
    path = ROOT / page
    for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text()):
        assert (path.parent / link).exists(), f"{page} links to {link}"


@pytest.mark.parametrize("name", ["notebook_pages", "repository_pages"])
def test_extensions_of_the_site(name, monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    assert doctest.testmod(importlib.import_module(name)).failed == 0
