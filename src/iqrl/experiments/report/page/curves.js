// Learning curves: a mean line per method, and how far the seeds spread. Profiles: a share per method, and its interval.

const CURVE_HEIGHT = 262;

const isShown = (line) => !STATE.hidden.has(line.name) && !STATE.hiddenVariants.has(line.variant);
const shownLines = (chart) => (chart.lines || []).filter(isShown);

// The line of a profile has no seeds; it comes with its values.
const isProfile = (line) => "share" in line;

// Summaries are worked out once per run and metric.
const summaries = new Map();
function summaryOfLine(line) {
  if (isProfile(line)) return { mean: line.share, low: line.low, high: line.high };
  const key = `${line.run} ${line.column}`;
  if (!summaries.has(key)) summaries.set(key, summarise(seedsOf(line), stepsOf(line).length));
  return summaries.get(key);
}
const stepsOf = (line) => DATA.steps[isProfile(line) ? line.steps : DATA.runs[line.run].steps];
const seedsOf = (line) => DATA.runs[line.run].values[line.column];
const showsSeeds = (line) => STATE.spread === "seeds" && !isProfile(line);

// The band of a standard deviation stays within what the seeds did: beyond that are returns no episode can have.
function bandOf(line) {
  const { mean, low, high } = summaryOfLine(line);
  if (STATE.spread === "range" || isProfile(line)) return { low, high };
  const width = summaryOfLine(line)[STATE.spread === "interval" ? "interval" : "deviation"];
  const within = (i, value) => (mean[i] === null || width[i] === null ? null : Math.min(Math.max(value, low[i]), high[i]));
  return { low: mean.map((m, i) => within(i, m - width[i])), high: mean.map((m, i) => within(i, m + width[i])) };
}

function valuesDrawn(line) {
  const printed = STATE.printed && known(line.printed) ? [line.printed] : [];
  if (showsSeeds(line)) return [...seedsOf(line).flat(), ...printed];
  const band = bandOf(line);
  return [...band.low, ...band.high, ...printed];
}

const xNameOf = (chart) => chart.xName || "environment steps";

// Charts of one group share their vertical axis, so that they can be compared.
function verticalScale(chart) {
  const together = chart.group === null ? [chart] : DATA.charts.filter((other) => other.group === chart.group);
  return scaleOf(chart.axis, together.flatMap(shownLines).flatMap(valuesDrawn));
}

function curveGeometry(chart, width, top, bottom) {
  const y = verticalScale(chart);
  const right = Math.max(...chart.lines.flatMap((line) => stepsOf(line).slice(-1)));
  const x = linearScale(0, right, width < 320 ? 3 : 4);
  const left = 10 + Math.max(...y.ticks.map((tick) => textWidth(y.label(tick))), 18);
  const inner = { left, right: width - 14, top: top + 14, bottom: bottom - 36 };
  return {
    ...inner, xTicks: x.ticks, yTicks: y.ticks, xLabel: x.label, yLabel: y.label,
    x: (step) => inner.left + x.to(step) * (inner.right - inner.left),
    y: (value) => (known(value) ? inner.bottom - y.to(value) * (inner.bottom - inner.top) : NaN),
  };
}

function drawCurves(chart, width, extras = {}) {
  const top = 10 + (extras.head || 0);
  const height = CURVE_HEIGHT + (extras.head || 0) + (extras.foot || 0);
  const at = curveGeometry(chart, width, top, top + CURVE_HEIGHT - 10);
  const drawing = svg("svg", {
    viewBox: `0 0 ${width} ${height}`, width, height, tabindex: 0, role: "img",
    "aria-label": `${chart.metricName}, ${chart.title}: ${shownLines(chart).map(describeLine).join("; ") || "nothing shown"}`,
  });
  drawing.append(axes(at, chart, width), ...shownLines(chart).map((line) => drawLine(line, at)), svg("g", { class: "crosshair" }));
  drawing.geometry = { ...at, width };
  return drawing;
}

// What a screen reader says of a line: where it ends.
function describeLine(line) {
  const last = summaryOfLine(line).mean.filter(known).slice(-1)[0];
  return `${fullName(line)} ends at ${valueText(last ?? null)}`;
}

// Both axes say what they show; the name of the vertical one stands above it, where it needs no turned head.
function axes(at, chart, width) {
  const group = svg("g", { class: "axes", "aria-hidden": "true" });
  group.append(svg("text", { class: "name", x: 4, y: at.top - 10 }, shortened(chart.metricName, width - 8)));
  group.append(svg("text", { class: "name", x: (at.left + at.right) / 2, y: at.bottom + 31, "text-anchor": "middle" }, xNameOf(chart)));
  for (const tick of at.yTicks) {
    const y = at.y(tick).toFixed(1);
    group.append(svg("line", { class: "grid", x1: at.left, x2: at.right, y1: y, y2: y }));
    group.append(svg("text", { x: at.left - 6, y, dy: "0.32em", "text-anchor": "end" }, at.yLabel(tick)));
  }
  for (const tick of at.xTicks) {
    const x = at.x(tick);
    // The last label ends where the plot ends, so that it is not cut off.
    const anchor = x > at.right - 12 ? "end" : "middle";
    const shift = anchor === "end" ? 10 : 0;
    group.append(svg("text", { x: (x + shift).toFixed(1), y: at.bottom + 16, "text-anchor": anchor }, at.xLabel(tick)));
  }
  group.append(svg("line", { class: "base", x1: at.left, x2: at.right, y1: at.bottom, y2: at.bottom }));
  return group;
}

function drawLine(line, at) {
  const colour = colourOf(line.name);
  const steps = stepsOf(line);
  const points = (values) => values.map((value, i) => [at.x(steps[i]), at.y(value)]);
  const group = svg("g", { class: "line", "data-name": line.name, "data-variant": line.variant });
  if (showsSeeds(line)) {
    for (const seed of seedsOf(line)) group.append(svg("path", { class: "seed", d: pathThrough(points(seed)), style: `stroke:${colour}` }));
  } else {
    const band = bandOf(line);
    group.append(svg("path", { class: "band", d: areaBetween(points(band.high), points(band.low)), style: `fill:${colour}` }));
  }
  if (STATE.printed && known(line.printed)) {
    const y = at.y(line.printed).toFixed(1);
    group.append(svg("line", { class: "printed", x1: at.left, x2: at.right, y1: y, y2: y, style: `stroke:${colour}` }));
  }
  const style = `stroke:${colour};stroke-dasharray:${dashOf(line.variant) || "none"}`;
  group.append(svg("path", { class: "mean", d: pathThrough(points(summaryOfLine(line).mean)), style }));
  return group;
}

// For a file of its own: the title above, the names of the lines below.
function drawCurvesWithLegend(chart, width) {
  const lines = shownLines(chart);
  const wide = Math.max(...lines.map((line) => textWidth(fullName(line)) + 44), 80);
  const perRow = Math.max(1, Math.floor((width - 20) / wide));
  const foot = 34 + 18 * Math.ceil(lines.length / perRow);
  const drawing = drawCurves(chart, width, { head: 40, foot });
  drawing.prepend(svg("text", { class: "head", x: 10, y: 20 }, chart.title));
  const below = 40 + CURVE_HEIGHT;
  const dotted = STATE.printed && lines.some((line) => known(line.printed));
  if (dotted) drawing.append(svg("text", { x: width / 2, y: below + 14, "text-anchor": "middle" }, "dotted: the paper’s highest"));
  lines.forEach((line, i) => {
    const [x, y] = [10 + (i % perRow) * wide, below + 36 + 18 * Math.floor(i / perRow)];
    const style = `stroke:${colourOf(line.name)};stroke-dasharray:${dashOf(line.variant) || "none"}`;
    drawing.append(svg("path", { class: "mean", d: `M${x} ${y - 4}h26`, style }), svg("text", { x: x + 32, y }, fullName(line)));
  });
  return drawing;
}
