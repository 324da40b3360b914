"""The page as a reader has it: in a browser, from a file, with nothing else."""

import json
import re

import chromium
import numpy as np
import pytest
from chromium import ask, window
from made_up_studies import METHODS, learned, record, study, whole_report

from iqrl.experiments.report.page.render import render_page

WebDriverWait = pytest.importorskip("selenium.webdriver.support.wait", reason="no selenium").WebDriverWait
pytestmark = chromium.REQUIRED

ODD = 'my_module:x<y>"&,'
BESIDE = "a variant with quite a long name that a head must break"


@pytest.fixture(scope="module")
def studies():
    return [*whole_report(("CartPole-v0", "Pendulum-v0"), seeds=3, points=12), _rough(), *_crowded()]


def _rough():
    """What real data may hold: an odd name, no values at all, values of both signs and of many sizes."""
    runs = [record("rough", method=method) for method in (ODD, "silent", "one-point")]
    first, silent, point = (learned(run, 0.5, seeds=2, points=6) for run in runs)
    draw = np.random.default_rng(0)
    first = first.with_columns(aei=draw.normal(size=12) * 10.0 ** np.arange(12).clip(0, 6), value_loss=np.zeros(12))
    silent = silent.with_columns(**{name: np.full(12, np.nan) for name in ("return", "aei", "value_loss")})
    alone = np.where(np.arange(12) == 3, 20.0, np.nan)
    point = point.with_columns(**{name: alone for name in ("return", "aei", "value_loss")})
    return study(runs, [first, silent, point], name="rough", title="Rough", charts=("return", "aei", "value_loss"))


def _crowded():
    """A study with another beside it: together, too many lines for one chart."""
    runs = [record("base", method=method, buffer_size=n) for n in (1, 100) for method in METHODS]
    more = [
        record("more", variant=variant, method=method, buffer_size=n)
        for variant in ("first", "second", "third", BESIDE) for n in (1, 100) for method in METHODS
    ]  # fmt: skip
    made = lambda name, some, **changes: study(
        some, [learned(run, 0.6, seeds=3, points=6) for run in some], name=name, title=name, **changes
    )
    return [made("base", runs), made("more", more, content={"beside": "base"})]


@pytest.fixture(scope="module")
def page(studies, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render_page(studies), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium.started(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def opened(browser, page):
    """The page freshly opened, in a window of ordinary size; at the end, nothing may have gone wrong in it."""
    window(browser, 1280, 900)
    browser.get(page.as_uri())
    yield browser
    assert browser.get_log("browser") == []


def paths(browser, chart):
    return ask(
        browser, f"[...document.querySelectorAll('[data-chart=\"{chart}\"] svg path')].map(p => p.getAttribute('d'))"
    )


def charts(browser):
    return ask(browser, "iqrl.data.charts")


def test_charts_are_drawn_when_they_come_near(opened):
    # The browser says what is near only after it has shown the page.
    WebDriverWait(opened, 20).until(lambda browser: ask(browser, "iqrl.drawn") > 0)
    assert ask(opened, "iqrl.drawn") < ask(opened, "iqrl.charts")
    opened.execute_script("iqrl.drawAll()")
    assert ask(opened, "iqrl.drawn") == ask(opened, "iqrl.charts") == len(charts(opened))


@pytest.mark.parametrize("spread", ["deviation", "range", "seeds"])
def test_every_chart_has_paths_of_finite_numbers(opened, spread):
    opened.execute_script(f"iqrl.setSpread('{spread}'); iqrl.showPrinted(true); iqrl.drawAll()")
    for number, chart in enumerate(charts(opened)):
        drawn = paths(opened, number)
        assert any(drawn), chart["title"]
        for path in drawn:
            assert re.fullmatch(r"[MLhvZ\d. -]*", path), (chart["title"], path)
    attributes = "[...document.querySelectorAll('svg *')].flatMap(e => [...e.attributes].map(a => a.value)).join()"
    assert not re.search(r"NaN|Infinity|undefined|null", ask(opened, attributes))


def test_marks_lie_within_their_chart(opened):
    opened.execute_script("iqrl.setSpread('seeds'); iqrl.showPrinted(true); iqrl.drawAll()")
    outside = """[...document.querySelectorAll('figure svg')].filter(svg => {
        const outer = svg.getBoundingClientRect();
        return [...svg.querySelectorAll('path, line, text')].some(mark => {
            const box = mark.getBoundingClientRect();
            return box.width + box.height > 0 && (box.left < outer.left - 1 || box.right > outer.right + 1
                || box.top < outer.top - 1 || box.bottom > outer.bottom + 1);
        });
    }).map(svg => svg.getAttribute('aria-label').slice(0, 60))"""
    assert ask(opened, outside) == []


def test_labels_of_ticks_do_not_overlap(opened):
    opened.execute_script("iqrl.drawAll()")
    overlapping = """[...document.querySelectorAll('.axes')].filter(axes => {
        const boxes = [...axes.querySelectorAll('text')].map(text => text.getBoundingClientRect());
        return boxes.some((a, i) => boxes.slice(i + 1).some(b =>
            a.left < b.right && b.left < a.right && a.top + 3 < b.bottom && b.top + 3 < a.bottom));
    }).length"""
    for width in (1280, 360):
        window(opened, width, 900)
        opened.execute_async_script("setTimeout(arguments[0], 120)")
        assert ask(opened, overlapping) == 0


def test_a_chip_hides_its_lines_everywhere(opened):
    opened.execute_script("iqrl.drawAll()")
    of = lambda name: ask(opened, f"document.querySelectorAll('g.line[data-name=\"{name}\"]').length")
    before, others = of("dqn"), of("srnn")
    with_dqn = [chart for chart in charts(opened) if any(part["name"] == "dqn" for part in part_list(chart))]
    assert before >= len(with_dqn) > 10
    boxes = opened.find_elements("css selector", "input[data-line='dqn']")
    assert len(boxes) > 1
    opened.execute_script("arguments[0].click()", boxes[0])
    assert (of("dqn"), of("srnn")) == (0, others)
    assert not any(box.is_selected() for box in boxes)
    opened.execute_script("arguments[0].click()", boxes[-1])
    assert of("dqn") == before


def part_list(chart):
    return chart.get("lines", chart.get("bars", []))


def test_a_chip_works_by_keyboard(opened):
    box = opened.find_element("css selector", "input[data-line='iq']")
    opened.execute_script("arguments[0].focus()", box)
    box.send_keys(" ")
    assert ask(opened, "document.querySelectorAll('g.line[data-name=\"iq\"]').length") == 0


def test_charts_drawn_later_know_what_is_hidden(opened):
    opened.execute_script("iqrl.showLine('iq', false); iqrl.drawAll()")
    assert ask(opened, "document.querySelectorAll('g.line[data-name=\"iq\"]').length") == 0


def test_variants_can_be_hidden(opened):
    opened.execute_script("iqrl.drawAll()")
    of = "document.querySelectorAll('g.line[data-variant=\"same target rule\"]').length"
    assert ask(opened, of) > 0
    opened.execute_script("document.querySelector('[data-variant-choice=\"same target rule\"]').click()")
    assert ask(opened, of) == 0


def test_with_everything_hidden_nothing_breaks(opened):
    opened.execute_script(
        "for (const name of Object.keys(iqrl.data.colours)) iqrl.showLine(name, false); iqrl.drawAll()"
    )
    assert ask(opened, "document.querySelectorAll('g.line').length") == 0


def point_at(browser, figure, share, kind="mouse"):
    """Move the pointer to a share of the width of the first chart, once that is drawn."""
    browser.execute_async_script(
        """const [figure, share, kind, done] = arguments;
        const plot = document.querySelector(`[data-chart="${figure}"] .plot`);
        plot.scrollIntoView({block: 'center'});
        const point = () => {
            const drawn = plot.querySelector('svg');
            if (!drawn) return setTimeout(point, 20);
            const box = drawn.getBoundingClientRect();
            const at = {clientX: box.left + share * box.width, clientY: box.top + box.height / 2, bubbles: true};
            plot.dispatchEvent(new PointerEvent(kind === 'touch' ? 'pointerdown' : 'pointermove',
                {...at, pointerType: kind}));
            done();
        };
        point();""",
        figure,
        share,
        kind,
    )


def read_out(browser):
    rows = ask(
        browser,
        """[...document.querySelectorAll('#readout tr')].map(row =>
        [row.dataset.name, row.dataset.variant, ...[...row.querySelectorAll('td')].map(cell => cell.textContent)])""",
    )
    step = int(ask(browser, "document.querySelector('#readout p').textContent").removeprefix("step ").replace(",", ""))
    return step, {(name, variant): (value, spread) for name, variant, value, spread in rows}


@pytest.mark.parametrize("kind", ["mouse", "touch"])
def test_pointing_reads_the_mean_of_the_data(opened, studies, kind):
    point_at(opened, 0, 0.5, kind)
    step, shown = read_out(opened)
    assert 160_000 <= step <= 200_000, "the middle of the drawing is a little left of that of the axis"
    table = studies[0].curves
    runs = [run for run in studies[0].runs if (run.config["task"], run.config["buffer_size"]) == ("CartPole-v0", 1)]
    assert len(shown) == len(runs)
    for run in runs:
        values = table.filter(run=run.id, step=step)["return"].drop_nans()
        value, spread = shown[run.config["method"], run.variant]
        assert number(value) == pytest.approx(values.mean(), rel=1e-4)
        assert number(spread.removeprefix("± ")) == pytest.approx(values.std(ddof=0), rel=1e-2)


def number(text):
    return float(text.replace("−", "-"))


def test_arrow_keys_read_a_chart(opened, studies):
    drawing = opened.find_element("css selector", "[data-chart='0'] svg")
    opened.execute_script("arguments[0].focus()", drawing)
    drawing.send_keys("\ue012")  # left
    last, _ = read_out(opened)
    drawing.send_keys("\ue012")
    before, _ = read_out(opened)
    steps = sorted(studies[0].curves.filter(run=studies[0].runs[0].id)["step"].unique())
    assert [before, last] == steps[-2:]


def test_the_readout_stays_in_the_window(opened):
    for width in (1280, 360):
        window(opened, width, 740)
        opened.execute_async_script("setTimeout(arguments[0], 120)")
        for share in (0.2, 0.97):
            point_at(opened, 0, share)
            box = ask(opened, "document.getElementById('readout').getBoundingClientRect().toJSON()")
            assert box["left"] >= 0
            assert box["right"] <= width
            assert box["top"] >= 0


def test_csv_of_a_chart_and_of_everything(opened, studies):
    lines = ask(opened, "iqrl.csv(0)").splitlines()
    assert lines[0] == "study,metric,chart,run,line,variant,seed,step,value"
    run = studies[0].runs[0]
    rows = studies[0].curves.filter(run=run.id).sort("seed", "step")
    mine = [line for line in lines if run.id in line]
    first, second = rows.row(0, named=True), rows.row(1, named=True)
    assert np.isnan(first["return"])
    assert mine[0] == f'table1,return,"CartPole-v0, N=1",{run.id},dqn,,0,{first["step"]},'
    assert mine[1].startswith(f'table1,return,"CartPole-v0, N=1",{run.id},dqn,,0,{second["step"]},')
    assert float(mine[1].rpartition(",")[2]) == pytest.approx(second["return"], rel=1e-4)
    assert len(mine) == rows.height
    everything = ask(opened, "iqrl.allCsv()")
    assert len(everything.splitlines()) > 10 * len(lines)
    assert '"my_module:x<y>""&,"' in everything


def test_a_saved_drawing_stands_alone(opened):
    for number in range(len(charts(opened))):
        text = ask(opened, f"iqrl.svg({number})")
        assert text.startswith("<svg")
        assert "var(" not in text
        assert "NaN" not in text
    assert ask(opened, "document.querySelectorAll('.offstage').length") == 0
    assert ">environment steps<" in ask(opened, "iqrl.svg(0)")
    parses = "new DOMParser().parseFromString(iqrl.svg(0), 'image/svg+xml').querySelector('parsererror') === null"
    assert ask(opened, parses)


def test_files_are_saved_by_the_buttons(opened, tmp_path):
    opened.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    for what in ("all-json", "csv", "svg"):
        opened.execute_script(f"document.querySelector('[data-save=\"{what}\"]').click()")
    opened.execute_async_script("setTimeout(arguments[0], 700)")
    saved = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert sorted(saved) == ["report.json", "table1-return-CartPole-v0-N=1.csv", "table1-return-CartPole-v0-N=1.svg"]
    assert json.loads(saved["report.json"])["charts"]


def test_dark_and_light(opened):
    opened.execute_script("iqrl.drawAll()")
    looks = """[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,
        getComputedStyle(document.querySelector('.mean')).stroke]"""
    light = ask(opened, looks)
    opened.execute_script("document.querySelector('[data-theme-choice][value=dark]').click()")
    dark = ask(opened, looks)
    assert all(one != other for one, other in zip(light, dark, strict=True))
    opened.execute_script("document.querySelector('[data-theme-choice][value=light]').click()")
    assert ask(opened, looks) == light


def test_the_system_may_ask_for_dark(opened):
    scheme = lambda value: {"features": [{"name": "prefers-color-scheme", "value": value}]}
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme("dark"))
    try:
        assert ask(opened, "getComputedStyle(document.body).backgroundColor") == "rgb(22, 25, 29)"
    finally:
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme("light"))


@pytest.mark.parametrize("width", [360, 620, 900, 1280])
def test_the_body_never_scrolls_sideways(opened, width):
    window(opened, width, 740)
    opened.execute_script("iqrl.drawAll(); document.querySelectorAll('details').forEach(part => part.open = true)")
    opened.execute_async_script("setTimeout(arguments[0], 120)")
    assert ask(opened, "document.documentElement.scrollWidth") <= width


def test_differences_have_tables_and_profiles(opened):
    opened.execute_script("iqrl.drawAll()")
    profiles = [i for i, chart in enumerate(charts(opened)) if chart["metric"] == "profile"]
    of_main = [charts(opened)[i] for i in profiles if charts(opened)[i]["study"] == "table1"]
    assert [chart["title"] for chart in of_main] == [
        "all tasks and sizes", "all tasks, N=1", "all tasks, N=100", "all tasks, N=50,000",
    ]  # fmt: skip
    for i in profiles:
        drawn = "document.querySelectorAll('[data-chart=\"{}\"] .{}').length"
        lines = [line for line in charts(opened)[i]["lines"] if line["variant"] not in ask(opened, HIDDEN)]
        assert ask(opened, drawn.format(i, "mean")) == ask(opened, drawn.format(i, "band")) == len(lines) > 0
        assert not any(charts(opened)[i]["study"] == "more" for i in profiles)
    rows = "[...document.querySelectorAll('#study-0 .dense tbody:first-of-type th[scope=row]')].map(e => e.textContent)"
    assert ask(opened, rows)[:4] == ["dqn", "srnn", "dsom", "tcnn"]
    assert ask(opened, "document.querySelector('a[href=\"#differences-0\"]') !== null")
    assert ask(opened, "document.querySelectorAll('#study-0 details:not(.finals, .settings)').length") == 2


HIDDEN = "iqrl.data.hiddenVariants"


def test_a_profile_is_read_and_saved(opened):
    opened.execute_script("iqrl.drawAll()")
    number_ = next(i for i, chart in enumerate(charts(opened)) if chart["metric"] == "profile")
    point_at(opened, number_, 0.5)
    text = ask(opened, "document.getElementById('readout').textContent")
    assert text.startswith("τ = 0.")
    assert "±" not in text
    assert "…" in text
    lines = ask(opened, f"iqrl.csv({number_})").splitlines()
    assert len(lines) == 1 + 41 * 3 * len(charts(opened)[number_]["lines"])
    assert not any("undefined" in line for line in lines)
    assert sum("95% low" in line for line in lines) == 41 * len(charts(opened)[number_]["lines"])
    assert ">normalised final τ<" in ask(opened, f"iqrl.svg({number_})")


def test_a_study_beside_another_is_in_its_tables_and_off_in_its_charts(opened):
    assert ask(opened, HIDDEN) == ["first", "second", "third", BESIDE]
    opened.execute_script("iqrl.drawAll()")
    drawn = "document.querySelectorAll('#study-4 g.line[data-variant=\"first\"]').length"
    assert ask(opened, "document.querySelectorAll('section').length") == 5
    assert ask(opened, drawn) == 0
    opened.execute_script("document.querySelector('[data-variant-choice=\"first\"]').click()")
    assert ask(opened, drawn) == 5 * len([chart for chart in charts(opened) if chart["study"] == "base"])
    heads = (
        "[...document.querySelectorAll('#study-4 .tables table')].map(e => [...e.querySelectorAll('thead th')].length)"
    )
    assert ask(opened, heads) == [1 + 6, 1 + 6], "a table per buffer size: its name, the paper, measured, four variants"


@pytest.mark.parametrize("width", [360, 1280])
def test_tables_beside_each_other_stay_in_the_page(opened, width):
    window(opened, width, 740)
    opened.execute_script("document.querySelectorAll('details').forEach(part => part.open = true)")
    wide = """[...document.querySelectorAll('.scroll')].filter(box =>
        box.getBoundingClientRect().right > document.documentElement.clientWidth + 1).length"""
    assert ask(opened, wide) == 0
    assert ask(opened, "document.documentElement.scrollWidth") <= width


def test_on_a_phone_there_is_a_chart_per_row(opened):
    window(opened, 360, 740)
    tops = ask(opened, "[...document.querySelectorAll('figure')].map(f => f.getBoundingClientRect().top)")
    assert len(set(tops)) == len(tops)


def test_nothing_is_asked_from_anywhere(opened):
    opened.execute_script("iqrl.drawAll()")
    assert ask(opened, "performance.getEntriesByType('resource').length") == 0


def test_everything_can_be_named(opened):
    """Every drawing, box and button has a name for those who do not see it."""
    opened.execute_script("iqrl.drawAll()")
    nameless = """[...document.querySelectorAll('figure svg, button, input, select, [tabindex]')].filter(part =>
        !(part.getAttribute('aria-label') || (part.closest('label') || part).textContent.trim())).length"""
    assert ask(opened, nameless) == 0


def test_printing_draws_everything(opened):
    opened.execute_cdp_cmd("Page.printToPDF", {})
    assert ask(opened, "iqrl.drawn") == ask(opened, "iqrl.charts")
