// Making SVG elements, and paths that never hold anything but finite numbers.

const DASHES = ["", "6 3", "2 3", "9 3 2 3", "1 4"];
const NAMESPACE = (() => {
  const holder = document.createElement("div");
  holder.innerHTML = "<svg></svg>";
  return holder.firstChild.namespaceURI;
})();

function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function html(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const finite = ([x, y]) => Number.isFinite(x) && Number.isFinite(y);
const point = ([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`;

// Points that are not known are passed over; one that stands alone is still seen, as a dot.
function pathThrough(points) {
  const there = points.filter(finite);
  if (there.length === 1) return `M${point(there[0])}h0.1`;
  return there.length ? `M${there.map(point).join("L")}` : "";
}

function areaBetween(upper, lower) {
  const there = upper.map((top, i) => [top, lower[i]]).filter(([top, bottom]) => finite(top) && finite(bottom));
  if (there.length < 2) return "";
  return `M${there.map(([top]) => point(top)).join("L")}L${there.map(([, bottom]) => point(bottom)).reverse().join("L")}Z`;
}

const colourOf = (name) => `var(--c${DATA.colours[name] ?? 0})`;
const dashOf = (variant) => DASHES[Math.max(DATA.variants.indexOf(variant), 0) % DASHES.length];
const fullName = (line) => (line.variant ? `${line.name} (${line.variant})` : line.name);
const CHARACTER = 7; // a generous width of one, at the size of labels
const textWidth = (text) => text.length * CHARACTER;

// A drawing as a file of its own: what style sheets gave it is written into it.
function standalone(drawing) {
  const copy = drawing.cloneNode(true);
  const properties = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity", "font-size", "font-weight", "font-family"];
  const [originals, copies] = [drawing, copy].map((root) => [root, ...root.querySelectorAll("*")]);
  originals.forEach((original, i) => {
    const style = getComputedStyle(original);
    copies[i].removeAttribute("class");
    copies[i].setAttribute("style", properties.map((name) => `${name}:${style.getPropertyValue(name)}`).join(";"));
  });
  copy.removeAttribute("tabindex");
  copy.style.background = getComputedStyle(document.body).backgroundColor;
  return new XMLSerializer().serializeToString(copy);
}
