// Bars, for what a run costs; and a heat map, for what training on one context does to the others.

const BAR = 26;

function drawBars(chart, width) {
  const bars = chart.bars.filter(isShown);
  const height = 12 + BAR * Math.max(bars.length, 1);
  const drawing = svg("svg", {
    viewBox: `0 0 ${width} ${height}`, width, height, tabindex: 0, role: "img",
    "aria-label": `${chart.metricName}, ${chart.title}: ${bars.map((bar) => `${fullName(bar)} ${prefixed(bar.value)}`).join("; ")}`,
  });
  const widest = Math.max(...bars.map((bar) => textWidth(fullName(bar))), 0);
  const left = 10 + Math.min(widest, width * 0.42);
  const room = width - left - 58;
  const most = Math.max(...bars.map((bar) => bar.value), 0) || 1;
  bars.forEach((bar, i) => drawing.append(oneBar(bar, left, 6 + i * BAR, Math.max((bar.value / most) * room, 1))));
  return drawing;
}

function oneBar(bar, left, top, length) {
  const middle = top + BAR / 2;
  const path = `M${left.toFixed(1)} ${top + 4}h${length.toFixed(1)}v${BAR - 8}h${(-length).toFixed(1)}Z`;
  return svg(
    "g", { class: "line", "data-name": bar.name, "data-variant": bar.variant },
    svg("text", { x: left - 6, y: middle, dy: "0.32em", "text-anchor": "end" }, shortened(fullName(bar), left - 10)),
    svg("path", { class: "bar", d: path, style: `fill:${colourOf(bar.name)}` }, svg("title", {}, `${fullName(bar)}: ${valueText(bar.value)}`)),
    svg("text", { class: "value", x: left + length + 6, y: middle, dy: "0.32em" }, prefixed(bar.value)),
  );
}

function shortened(text, room) {
  const most = Math.floor(room / CHARACTER + 0.01);
  return text.length > most ? `${text.slice(0, Math.max(most - 1, 1))}…` : text;
}

function drawMatrix(chart, width) {
  const size = chart.matrix.length;
  const [left, top] = [78, 40];
  const wide = Math.min((width - left - 8) / size, 110);
  const high = Math.min(wide, 52);
  const height = top + high * size + 8;
  const drawing = svg("svg", {
    viewBox: `0 0 ${width} ${height}`, width, height, tabindex: 0, role: "img",
    "aria-label": `change of the loss, ${chart.title}: ${matrixInWords(chart.matrix)}`,
  });
  drawing.append(svg("text", { x: left, y: 14 }, "change of the loss on"), svg("text", { x: left - 8, y: top - 8, "text-anchor": "end" }, "trained on"));
  const limit = colourLimit(chart.matrix.flat());
  chart.matrix.forEach((row, i) => {
    drawing.append(svg("text", { x: left + (i + 0.5) * wide, y: top - 8, "text-anchor": "middle" }, String(i)));
    drawing.append(svg("text", { x: left - 8, y: top + (i + 0.5) * high, dy: "0.32em", "text-anchor": "end" }, `context ${i}`));
    row.forEach((change, j) => drawing.append(matrixCell(change, left + j * wide, top + i * high, wide, high, limit)));
  });
  return drawing;
}

// Red is a loss that grew, blue one that shrank; never so dark that the number on it cannot be read.
function matrixCell(change, x, y, wide, high, limit) {
  const share = known(change) ? Math.min(Math.abs(change) / limit, 1) * 60 : 0;
  const colour = `color-mix(in srgb, var(${change > 0 ? "--grew" : "--shrank"}) ${share.toFixed(0)}%, var(--panel))`;
  const path = `M${(x + 1).toFixed(1)} ${(y + 1).toFixed(1)}h${(wide - 2).toFixed(1)}v${(high - 2).toFixed(1)}h${(2 - wide).toFixed(1)}Z`;
  return svg(
    "g", { class: "cell" },
    svg("path", { d: path, style: `fill:${colour}` }),
    svg("text", { class: "value", x: x + wide / 2, y: y + high / 2, dy: "0.32em", "text-anchor": "middle" }, percentText(change)),
  );
}

// A few cells may go beyond the darkest colour, so that one large number does not leave the others pale.
function colourLimit(changes) {
  const sizes = changes.filter(known).map(Math.abs).sort((a, b) => a - b);
  return Math.max(sizes[Math.floor(0.8 * (sizes.length - 1))] || 0, 1e-3);
}

function percentText(change) {
  if (!known(change)) return "too few";
  const percent = 100 * change;
  if (Math.abs(percent) >= 1e4) return `${percent > 0 ? "+" : "−"}${prefixed(Math.abs(percent))}%`;
  return `${percent > 0 ? "+" : ""}${minus(percent.toFixed(Math.abs(percent) < 9.95 ? 1 : 0))}%`;
}

const matrixInWords = (matrix) =>
  matrix.map((row, i) => `trained on ${i}: ${row.map((change, j) => `${percentText(change)} on ${j}`).join(", ")}`).join("; ");
