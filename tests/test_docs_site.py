"""The site of the documentation: built without a warning, and tried in a browser, from files."""

import doctest
import importlib
import os
import re
import sys
import time
from pathlib import Path

import chromium
import pytest
from chromium import ask, window

import iqrl
from iqrl.locks import locked

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Built once for all workers: the one that comes first builds it, the others wait."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "site"
    folder.mkdir(exist_ok=True)
    while True:
        try:
            with locked(folder):
                if not (folder / "built").exists():
                    build(folder)
                    (folder / "built").touch()
                return folder / "html"
        except BlockingIOError:
            time.sleep(0.5)


def build(folder):
    """In this process: JAX is imported already, which autodoc would do again in another."""
    from sphinx.cmd.build import build_main

    flags = ["--fail-on-warning", "--keep-going", "--quiet", "-d", str(folder / "doctrees")]
    before = list(sys.path)
    code = build_main([*flags, str(DOCS), str(folder / "html")])
    sys.path[:] = before
    assert code == 0


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


# In a browser

NOTEBOOKS = ("notebooks/see-interference", "notebooks/own-environment")
CLICK = "[...document.querySelectorAll(arguments[0])].find(part => part.offsetParent !== null).click()"
"""on the part of that kind that can be seen"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium.started(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def opened(browser, site):
    """Opens a page of the site; at the end, nothing may have gone wrong in any."""

    def open_page(name, width=1300, query=""):
        window(browser, width, 900)
        browser.get((site / f"{name}.html").as_uri() + query)
        return browser

    yield open_page
    assert [line for line in browser.get_log("browser") if line["level"] != "INFO"] == []


WIDE = """[document.documentElement, ...document.querySelectorAll('.content')].some(box =>
    box.scrollWidth > box.clientWidth)"""
"""the theme lets the text scroll as well as the page"""


@chromium.REQUIRED
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("width", [1300, 400])
def test_no_page_scrolls_sideways_and_all_pictures_are_there(opened, site, width):
    """Nor has any page an error: the console is empty at the end."""
    names = [path.relative_to(site).with_suffix("").as_posix() for path in site.rglob("*.html")]
    assert {"index", "interference", *NOTEBOOKS} <= set(names)
    wrong = {}
    for name in names:
        page = opened(name, width)
        lost = "[...document.images].filter(image => !image.naturalWidth).map(image => image.src.slice(0, 80))"
        if found := ["wide"] * ask(page, WIDE) + ask(page, lost):
            wrong[name] = found
    assert not wrong


LINES = """[...document.querySelectorAll('article td code')].map(code =>
    [code.textContent, code.getClientRects().length, code.closest('td').nextElementSibling?.clientWidth])"""


@chromium.REQUIRED
@pytest.mark.filterwarnings("ignore")
def test_on_a_phone_names_in_tables_are_whole(opened):
    """And what is said of them is wider than a word: such a table scrolls."""
    found = ask(opened("interference", 400), LINES)
    assert next(width for name, _, width in found if name == "negative_interference") > 150
    assert [name for name, lines, _ in found if lines > 1 and " " not in name] == []


@chromium.REQUIRED
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("width", [1300, 400])
def test_the_theme_can_be_chosen_and_can_be_read(opened, width):
    """In every theme, text stands out from what is behind it: a contrast of 4.5 in a paragraph, a link, a comment."""
    page = opened("interference", width)
    seen = {}
    for _ in range(3):
        page.execute_script(CLICK, "button.theme-toggle")
        theme = ask(page, "document.body.dataset.theme")
        seen[theme] = ask(page, "getComputedStyle(document.body).backgroundColor")
        for part in ("article p", "article a.reference", "article .highlight .c1", "article th"):
            assert ask(page, CONTRAST, part) >= 4.5, (theme, part)
    assert set(seen) == {"dark", "light", "auto"}
    assert seen["dark"] != seen["light"]
    page.execute_script("localStorage.clear()")


CONTRAST = """(selector => {
    const part = document.querySelector(selector);
    const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
    const behind = element => {
        const colour = numbers(getComputedStyle(element).backgroundColor);
        return colour.length === 4 && colour[3] < 1 ? behind(element.parentElement) : colour;
    };
    const light = colour => colour.slice(0, 3).map(it => it / 255)
        .map(it => it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4)
        .reduce((sum, it, i) => sum + it * [0.2126, 0.7152, 0.0722][i], 0.05);
    const pair = [light(numbers(getComputedStyle(part).color)), light(behind(part))];
    return Math.max(...pair) / Math.min(...pair);
})(arguments[0])"""


@chromium.REQUIRED
@pytest.mark.filterwarnings("ignore")
def test_search_finds_a_page(opened):
    page = opened("search", query="?q=distillation")
    for _ in range(100):
        found = ask(page, "[...document.querySelectorAll('#search-results li a')].map(link => link.textContent)")
        if "Concepts" in found:
            return
        time.sleep(0.1)
    pytest.fail(f"found {found}")


@chromium.REQUIRED
@pytest.mark.filterwarnings("ignore")
def test_the_navigation_leads_to_every_page(opened):
    page = opened("index")
    links = ask(page, "[...document.querySelectorAll('.sidebar-tree a')].map(link => link.getAttribute('href'))")
    names = {path.stem for path in DOCS.glob("*.md")} - {"index"} | set(NOTEBOOKS)
    assert {f"{name}.html" for name in names} <= set(links)


@chromium.REQUIRED
@pytest.mark.filterwarnings("ignore")
def test_on_a_phone_the_navigation_is_opened_by_its_button(opened):
    page = opened("index", 400)
    left = "document.querySelector('.sidebar-drawer').getBoundingClientRect().left"
    assert ask(page, left) < 0
    page.execute_script(CLICK, "label[for=__navigation]")
    for _ in range(50):
        if ask(page, left) == 0:
            return
        time.sleep(0.1)
    pytest.fail("the navigation stays out of sight")


@chromium.REQUIRED
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_shows_its_code_and_what_came_out(opened, name):
    page = opened(name)
    shown = lambda selector: ask(page, f"document.querySelectorAll('article {selector}').length")
    assert shown(".highlight-python") > 3
    assert shown(".highlight-text") + shown("img") > 1
