// What is shown: every control acts on all charts of the page, and its twins in other sections follow.

const STATE = { hidden: new Set(), hiddenVariants: new Set(DATA.hiddenVariants), spread: "deviation", printed: false };

document.addEventListener("change", (event) => {
  const { line, variantChoice: variant } = event.target.dataset;
  if (line !== undefined) showLine(line, event.target.checked);
  if (variant !== undefined) showVariant(variant, event.target.checked);
  if (event.target.matches("[data-spread]")) setSpread(event.target.value);
  if (event.target.matches("[data-printed]")) showPrinted(event.target.checked);
  if (event.target.matches("[data-theme-choice]")) setTheme(event.target.value);
});

function showLine(name, shown) {
  STATE.hidden[shown ? "delete" : "add"](name);
  update();
}

function showVariant(name, shown) {
  STATE.hiddenVariants[shown ? "delete" : "add"](name);
  update();
}

function setSpread(spread) {
  STATE.spread = spread;
  update();
}

function showPrinted(shown) {
  STATE.printed = shown;
  update();
}

// "auto" follows the system.
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
}

function update() {
  for (const box of document.querySelectorAll("[data-line]")) box.checked = !STATE.hidden.has(box.dataset.line);
  for (const box of document.querySelectorAll("[data-variant-choice]")) {
    box.checked = !STATE.hiddenVariants.has(box.dataset.variantChoice);
  }
  for (const choice of document.querySelectorAll("[data-spread]")) choice.value = STATE.spread;
  for (const box of document.querySelectorAll("[data-printed]")) box.checked = STATE.printed;
  redrawAll();
}

// While the pointer or the focus is on a chip, the other lines step back.
function emphasise(name) {
  for (const group of document.querySelectorAll("g.line")) {
    group.classList.toggle("faded", name !== null && !STATE.hidden.has(name) && group.dataset.name !== name);
  }
}

for (const chip of document.querySelectorAll(".chip:has([data-line])")) {
  const name = chip.querySelector("[data-line]").dataset.line;
  chip.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && emphasise(name));
  chip.addEventListener("pointerleave", () => emphasise(null));
  chip.addEventListener("focusin", (event) => event.target.matches(":focus-visible") && emphasise(name));
  chip.addEventListener("focusout", () => emphasise(null));
}
