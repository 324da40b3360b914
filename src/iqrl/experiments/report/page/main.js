// Charts are drawn when they come near the window, so that a page of a hundred opens at once.

const KINDS = { curves: drawCurves, bars: drawBars, matrix: drawMatrix };
const figures = [...document.querySelectorAll("figure[data-chart]")];
const drawnWidth = new Map();

const chartOf = (figure) => DATA.charts[Number(figure.dataset.chart)];

function draw(figure) {
  const chart = chartOf(figure);
  const plot = figure.querySelector(".plot");
  const width = Math.max(Math.round(plot.clientWidth), 200);
  if (!drawnWidth.has(figure) && chart.kind === "curves") listenToPointer(figure, chart);
  plot.replaceChildren(KINDS[chart.kind](chart, width));
  drawnWidth.set(figure, width);
}

function redrawAll() {
  hideReadout();
  for (const figure of drawnWidth.keys()) draw(figure);
}

function drawAll() {
  for (const figure of figures) if (!drawnWidth.has(figure)) draw(figure);
}

const nearby = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) if (isIntersecting && !drawnWidth.has(target)) draw(target);
  },
  { rootMargin: "400px" },
);
figures.forEach((figure) => nearby.observe(figure));

let resizing = 0;
addEventListener("resize", () => {
  cancelAnimationFrame(resizing);
  resizing = requestAnimationFrame(() => {
    hideReadout();
    for (const [figure, width] of drawnWidth) {
      if (Math.round(figure.querySelector(".plot").clientWidth) !== width) draw(figure);
    }
  });
});

addEventListener("beforeprint", () => {
  drawAll();
  for (const part of document.querySelectorAll("details")) part.open = true;
});

// For tests, and for the console of the browser.
window.iqrl = {
  charts: figures.length,
  get drawn() { return drawnWidth.size; },
  drawAll, showLine, showVariant, setSpread, showPrinted, setTheme,
  data: DATA,
  csv: (number) => csvText([DATA.charts[number]]),
  allCsv: () => csvText(DATA.charts),
  svg: (number) => svgText(DATA.charts[number]),
};
