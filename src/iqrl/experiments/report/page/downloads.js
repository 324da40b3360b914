// Data and drawings as files.

const COLUMNS = ["study", "metric", "chart", "run", "line", "variant", "seed", "step", "value"];

function rowsOf(chart) {
  const row = (part, line, seed, step, value) =>
    [chart.study, chart.metric, chart.title, part.run ?? "", line, part.variant ?? "", seed, step, known(value) ? value : ""];
  if (chart.kind === "bars") return chart.bars.map((bar) => row(bar, bar.name, "", "", bar.value));
  if (chart.kind === "matrix") {
    return chart.matrix.flatMap((changes, i) => changes.map((change, j) => row(chart, `trained on ${i}, loss on ${j}`, "", "", change)));
  }
  if (chart.axis === "share") {
    const ends = { share: "", low: ", 95% low", high: ", 95% high" };
    return chart.lines.flatMap((line) => Object.entries(ends).flatMap(([end, words]) =>
      line[end].map((value, i) => row(line, line.name + words, "", stepsOf(line)[i], value))));
  }
  return chart.lines.flatMap((line) =>
    seedsOf(line).flatMap((values, i) =>
      values.map((value, j) => row(line, line.name, DATA.runs[line.run].seeds[i], stepsOf(line)[j], value))));
}

const quoted = (cell) => (/[",\n\r]/.test(String(cell)) ? `"${String(cell).replace(/"/g, '""')}"` : String(cell));
const csvText = (charts) => [COLUMNS, ...charts.flatMap(rowsOf)].map((row) => row.map(quoted).join(",")).join("\n") + "\n";

// Drawn at one size whatever the window, out of sight but in the page, where style sheets reach it.
function svgText(chart) {
  const drawing = chart.kind === "curves" ? drawCurvesWithLegend(chart, 560) : KINDS[chart.kind](chart, 560);
  const holder = html("div", { class: "plot offstage" }, drawing);
  document.body.append(holder);
  const text = standalone(drawing);
  holder.remove();
  return text;
}

const fileName = (chart, ending) => `${chart.study} ${chart.metric} ${chart.title}`.replace(/[^\w.=-]+/g, "-") + ending;

function save(name, text, type) {
  const link = html("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

document.addEventListener("click", (event) => {
  const action = event.target.dataset.save;
  if (!action) return;
  const chart = DATA.charts[event.target.closest("[data-chart]")?.dataset.chart];
  if (action === "csv") save(fileName(chart, ".csv"), csvText([chart]), "text/csv");
  if (action === "svg") save(fileName(chart, ".svg"), svgText(chart), "image/svg+xml");
  if (action === "all-csv") save("curves.csv", csvText(DATA.charts), "text/csv");
  if (action === "all-json") save("report.json", DATA_TEXT, "application/json");
});
