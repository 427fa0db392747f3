// Elements, numbers as text, and what charts and clouds share. Every text from the run goes into the page as text
// (textContent), never as markup.

const SVG = "http://www.w3.org/2000/svg";
const NO_VALUE = "–";

/** An element with attributes (`class`, handlers under `on`, others by name) and children; null ones are left out. */
function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "class") node.className = value;
    else if (name === "on") for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    else if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** An SVG shape; `fill` and `stroke` may name the style sheet's colors if given as `style`. */
function shape(tag, attributes, text) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "style") Object.assign(node.style, value);
    else node.setAttribute(name, value);
  }
  if (text !== undefined) node.textContent = text;
  return node;
}

/** An empty picture. */
function picture(width, height, label, more = {}) {
  return shape("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": label, ...more });
}

const color = (index) => `var(--c${index % 8})`;
const finite = (value) => value !== null && value !== undefined && Number.isFinite(value);
const counted = (value) => value.toLocaleString("en-US", { maximumFractionDigits: 0 });
const interval = (one) => finite(one.low) ? `[${short(one.low)}, ${short(one.high)}]` : "";

/** A number with few digits. */
function short(value, digits = 4) {
  if (!finite(value)) return NO_VALUE;
  const size = Math.abs(value);
  if (size >= 1e7 || (size > 0 && size < 1e-3)) return value.toExponential(2).replace("e+", "e").replaceAll("-", "−");
  const text = size >= 1000 ? counted(value) : String(Number(value.toPrecision(digits)));
  return text.replace("-", "−");
}

/** The label of a tick, with as many digits as the distance between two ticks needs. */
function tickText(value, step) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  const scaled = (unit, name) => String(Number((value / unit).toPrecision(6))).replace("-", "−") + name;
  if (size >= 1e6) return scaled(1e6, "M");
  if (size >= 1e4) return scaled(1e3, "k");
  if (size < 1e-3) return value.toExponential(0).replaceAll("-", "−");
  const isWhole = (number) => Math.abs(number - Math.round(number)) <= 1e-6 * number;
  let digits = 0;
  while (digits < 6 && !isWhole(step * 10 ** digits)) digits++;
  return value.toFixed(digits).replace("-", "−");
}

/** Round numbers between two ends, and the distance between them. */
function ticks(low, high, most) {
  const rough = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough * (1 - 1e-9));
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push(i * step);
  return [found, step];
}

/** The smallest and the largest finite value. */
function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) if (finite(value)) { low = Math.min(low, value); high = Math.max(high, value); }
  return [low, high];
}

/** How many of the values, each a share between 0 and 1, fall into each of so many bins. */
function histogram(shares, bins) {
  const counts = new Array(bins).fill(0);
  for (const share of shares) counts[Math.min(bins - 1, Math.max(0, Math.floor(share * bins)))]++;
  return counts;
}

/** An entry of a legend: a swatch of some kind and a text. */
function legendEntry(kind, tone, text) {
  const swatch = el("i", { class: `swatch ${kind}` });
  swatch.style.background = tone;
  return el("span", {}, swatch, text);
}

/** Fill a tooltip with rows of [color, label, text] and put it beside the pointer. */
function showTip(tip, card, event, head, rows, foot) {
  tip.replaceChildren(el("b", {}, head), ...rows.map(([tone, label, text]) => {
    const swatch = el("i", { class: "swatch dot" });
    swatch.style.background = tone;
    return el("div", {}, tone ? swatch : null, el("span", {}, label), el("span", {}, text));
  }));
  if (foot) tip.append(el("div", {}, foot));
  tip.hidden = false;
  const box = card.getBoundingClientRect();
  const [px, py] = [event.clientX - box.left, event.clientY - box.top];
  const before = px + tip.offsetWidth + 24 > box.width;
  tip.style.left = `${before ? Math.max(4, px - tip.offsetWidth - 14) : px + 14}px`;
  tip.style.top = `${Math.max(4, py - tip.offsetHeight - 8)}px`;
}

/** Where the pointer is, in the picture's own units. */
function pointer(event, svg) {
  const box = svg.getBoundingClientRect();
  const { width, height } = svg.viewBox.baseVal;
  return [(event.clientX - box.left) / box.width * width, (event.clientY - box.top) / box.height * height];
}
