// The crosshair: the values of every shown line at the step under the pointer.

const readout = document.getElementById("readout");
let current = null; // the chart that is read, and at which of its steps

const allSteps = (chart) => [...new Set(shownLines(chart).flatMap(stepsOf))].sort((a, b) => a - b);

function nearest(sorted, value) {
  return sorted.reduce((best, _, i) => (Math.abs(sorted[i] - value) < Math.abs(sorted[best] - value) ? i : best), 0);
}

function listenToPointer(figure, chart) {
  const plot = figure.querySelector(".plot");
  plot.addEventListener("pointermove", (event) => readAt(figure, chart, event.clientX));
  plot.addEventListener("pointerdown", (event) => readAt(figure, chart, event.clientX));
  // A finger that is lifted leaves its reading there to be read.
  plot.addEventListener("pointerleave", (event) => event.pointerType === "touch" || hideReadout());
  plot.addEventListener("keydown", (event) => readByKey(figure, chart, event));
  plot.addEventListener("focusout", hideReadout);
}

function readAt(figure, chart, clientX) {
  const drawing = figure.querySelector("svg");
  const box = drawing.getBoundingClientRect();
  const steps = allSteps(chart);
  const x = ((clientX - box.left) / box.width) * drawing.geometry.width;
  const places = steps.map(drawing.geometry.x);
  if (steps.length) showReadout(figure, chart, steps[nearest(places, x)]);
}

function readByKey(figure, chart, event) {
  const steps = allSteps(chart);
  const here = current && current.chart === chart ? nearest(steps, current.step) : steps.length;
  const moves = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: steps.length - 1 };
  if (event.key === "Escape") hideReadout();
  if (!(event.key in moves) || !steps.length) return;
  event.preventDefault();
  showReadout(figure, chart, steps[Math.min(Math.max(moves[event.key], 0), steps.length - 1)]);
}

// Lines may have points at different steps: each is read at its own nearest, if that is near.
function readingsAt(chart, step) {
  const readings = shownLines(chart).map((line) => {
    const steps = stepsOf(line);
    const i = nearest(steps, step);
    const apart = steps.length > 1 ? steps[1] - steps[0] : 1;
    const summary = summaryOfLine(line);
    const value = Math.abs(steps[i] - step) <= apart ? summary.mean[i] : null;
    return { line, step: steps[i], value, deviation: summary.deviation?.[i], interval: summary.interval?.[i], low: summary.low[i], high: summary.high[i] };
  });
  return readings.sort((a, b) => (b.value ?? -Infinity) - (a.value ?? -Infinity));
}

function spreadText(reading) {
  if (!known(reading.value)) return "";
  if (STATE.spread === "deviation" && !isProfile(reading.line)) return `± ${valueText(reading.deviation, 3)}`;
  if (STATE.spread === "interval" && !isProfile(reading.line)) return `± ${valueText(reading.interval, 3)} (95%)`;
  return `${valueText(reading.low, 4)} … ${valueText(reading.high, 4)}`;
}

function showReadout(figure, chart, step) {
  hideReadout();
  current = { figure, chart, step };
  const readings = readingsAt(chart, step);
  const rows = readings.map((reading) =>
    html(
      "tr", { "data-name": reading.line.name, "data-variant": reading.line.variant },
      html("th", { scope: "row" }, html("i", { style: `background:${colourOf(reading.line.name)}` }), fullName(reading.line)),
      html("td", {}, valueText(reading.value)),
      html("td", { class: "spread" }, spreadText(reading)),
    ),
  );
  readout.replaceChildren(html("p", {}, chart.axis === "share" ? `τ = ${stepText(step)}` : `step ${stepText(step)}`), html("table", {}, html("tbody", {}, ...rows)));
  readout.hidden = false;
  const { geometry } = figure.querySelector("svg");
  drawCrosshair(figure, geometry, step, readings);
  placeReadout(figure, geometry, step);
}

function drawCrosshair(figure, at, step, readings) {
  const x = at.x(step).toFixed(1);
  const dots = readings.filter((reading) => known(reading.value) && Number.isFinite(at.y(reading.value))).map((reading) =>
    svg("circle", { cx: at.x(reading.step).toFixed(1), cy: at.y(reading.value).toFixed(1), r: 3.2, style: `fill:${colourOf(reading.line.name)}` }));
  figure.querySelector(".crosshair").replaceChildren(svg("line", { x1: x, x2: x, y1: at.top, y2: at.bottom }), ...dots);
}

// Beside the crosshair, on the side where there is room, and never beyond the window.
function placeReadout(figure, at, step) {
  const box = figure.querySelector("svg").getBoundingClientRect();
  const x = box.left + (at.x(step) / at.width) * box.width;
  const { offsetWidth: width, offsetHeight: height } = readout;
  const left = x + 14 + width < innerWidth ? x + 14 : x - 14 - width;
  // On a narrow screen there is no room on either side: then it stands above or below the chart.
  const narrow = left < 8;
  const above = box.top - height - 6;
  const top = narrow ? (above > 0 ? above : box.bottom + 6) : box.top + 12;
  readout.style.left = `${Math.min(Math.max(left, 8), Math.max(innerWidth - width - 8, 8))}px`;
  readout.style.top = `${Math.min(Math.max(top, 8), Math.max(innerHeight - height - 8, 8))}px`;
}

function hideReadout() {
  if (!current) return;
  readout.hidden = true;
  current.figure.querySelector(".crosshair")?.replaceChildren();
  current = null;
}

document.addEventListener("pointerdown", (event) => event.target.closest(".plot") || hideReadout());
document.addEventListener("scroll", hideReadout, { passive: true });
