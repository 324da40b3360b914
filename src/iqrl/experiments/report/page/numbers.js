// Numbers: summaries over seeds, ticks, scales and texts.

const known = (value) => value !== null && value !== undefined && Number.isFinite(value);

// Mean, deviation and range over the seeds at each point; null where no seed has a value.
function summarise(seeds, points) {
  const summary = { mean: [], deviation: [], interval: [], low: [], high: [] };
  for (let i = 0; i < points; i++) {
    const values = seeds.map((seed) => seed[i]).filter(known);
    const one = values.length ? summaryOf(values) : { mean: null, deviation: null, interval: null, low: null, high: null };
    for (const name of Object.keys(summary)) summary[name].push(one[name]);
  }
  return summary;
}

function summaryOf(values) {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
  const deviation = Math.sqrt(variance);
  const interval = values.length > 1 ? (deviation * studentT(values.length - 1)) / Math.sqrt(values.length - 1) : null;
  return { mean, deviation, interval, low: Math.min(...values), high: Math.max(...values) };
}

// The 97.5% quantile of Student's t: a table for few degrees of freedom, then a series that is right to three digits.
const FEW_T = [NaN, 12.706, 4.303, 3.182];
const studentT = (n) => FEW_T[n] ?? 1.96 + 2.372 / n + 2.822 / n ** 2 + 2.556 / n ** 3;

function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (!known(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return low <= high ? [low, high] : null;
}

// Round numbers from low to high, about `count` of them.
function roundTicks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) ticks.push(i * step);
  return { ticks, step };
}

// A scale takes a value to 0…1; `label` writes a tick.
function linearScale(low, high, count = 5) {
  if (low === high) [low, high] = [low - Math.max(Math.abs(low) * 0.05, 0.5), high + Math.max(Math.abs(high) * 0.05, 0.5)];
  const { ticks, step } = roundTicks(low, high, count);
  return { to: (value) => (value - low) / (high - low), ticks, label: (value) => tickText(value, step) };
}

function logScale(low, high) {
  const [from, to] = [Math.floor(Math.log10(low) * 2) / 2, Math.ceil(Math.log10(high) * 2) / 2 || 0];
  const span = Math.max(to - from, 1);
  const every = Math.ceil(span / 6);
  const ticks = [];
  for (let power = Math.ceil(from); power <= from + span; power += every) ticks.push(10 ** power);
  // What is not above 0 has no finite logarithm, and is passed over like a gap.
  return { to: (value) => (Math.log10(value) - from) / span, ticks, label: powerText };
}

// Logarithmic on both sides of 0, linear below `threshold`: for values of both signs and many sizes.
function signedLogScale(low, high, threshold) {
  const bend = (value) => Math.asinh(value / threshold);
  const [from, to] = [bend(low), bend(high)];
  const end = 10 ** Math.floor(Math.log10(Math.max(Math.abs(low), Math.abs(high))));
  const ticks = [-end, 0, end].filter((tick) => tick >= low && tick <= high);
  return { to: (value) => (bend(value) - from) / (to - from), ticks, label: powerText };
}

// `axis` is chosen once for all charts of a metric.
function scaleOf(axis, values) {
  if (axis === "share") return linearScale(0, 1);
  const sizes = values.filter(known).map(Math.abs).filter((size) => size > 0).sort((a, b) => a - b);
  const [low, high] = extent(values) || [0, 1];
  const median = sizes[Math.floor(sizes.length / 2)] || 1;
  if (axis === "linear" || !sizes.length) {
    const margin = (high - low) * 0.04;
    return linearScale(low >= 0 && low < margin ? 0 : low - margin, high + margin);
  }
  return axis === "log" ? logScale(sizes[0], high) : signedLogScale(low, high, 10 ** Math.round(Math.log10(median)));
}

const minus = (text) => text.replace("-", "−");

function tickText(value, step) {
  if (Math.abs(value) < step * 1e-6) return "0";
  if (step >= 1000 || Math.abs(value) >= 1e5) return minus(prefixed(value));
  if (step < 1e-4) return minus(value.toExponential(0));
  return minus(value.toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9))));
}

function prefixed(value) {
  const prefixes = ["", "k", "M", "G", "T", "P", "E"];
  const power = Math.min(Math.max(Math.floor(Math.log10(Math.abs(value) || 1) / 3 + 1e-9), 0), prefixes.length - 1);
  return `${Number((value / 1000 ** power).toPrecision(4))}${prefixes[power]}`;
}

function powerText(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return minus(size >= 1e-3 && size < 1e6 ? prefixed(value) : value.toExponential(0).replace("e+", "e"));
}

// A value to be read: five digits, as the data has, unless fewer will do.
function valueText(value, digits = 5) {
  if (!known(value)) return "none";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return minus(value.toExponential(digits - 2).replace("e+", "e"));
  return minus(String(Number(value.toPrecision(digits))));
}

const stepText = (step) => step.toLocaleString("en");
