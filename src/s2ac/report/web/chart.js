// Line charts. Their lines are {label, legend, color, steps, values, low, high, thin, opacity, silent}: thin lines are
// single seeds, low and high are a band, silent lines are left out of the tooltip, lines with `marks` show
// their points.

const MARGIN = { left: 56, right: 22, top: 10, bottom: 40 };
const MOST_ROWS = 24;

/** A card with a chart. Options: title, unit, caption, lines, height, percent, references, each, wide, plain, seeds. */
function chart(options) {
  const { title, unit = "", caption = "", each = 1 } = options;
  const width = options.wide === "two" ? "two" : options.wide ? "wide" : "";
  const card = el("section", { class: `card chart ${width}`, "data-chart": title },
    el("div", { class: "chart-head" }, el("h3", {}, title), el("span", { class: "unit" }, unit)));
  const meaning = each > 1 ? ` Each point is the mean of ${each} records.` : "";
  if (caption) card.append(el("p", { class: "caption" }, caption + meaning));
  const legend = chartLegend(options);
  if (legend.childElementCount) card.append(legend);
  const holder = el("div");
  const tip = el("div", { class: "tip", hidden: "" });
  card.append(holder, tip);
  redraws.push(() => holder.replaceChildren(plotted(options, Math.max(240, holder.clientWidth || 560), card, tip)));
  return card;
}

function chartLegend({ lines, plain, seeds }) {
  const legend = el("div", { class: "legend" });
  const named = lines.filter((line) => line.legend);
  if (plain || !(named.length > 1 || lines.some((line) => line.low))) return legend;
  for (const line of named) legend.append(legendEntry("", line.color, line.legend));
  if (lines.some((line) => line.low && line.low.some(finite))) {
    const words = seeds === 2 ? "95 % t-interval: very wide, of two seeds" : "95 % t-interval";
    legend.append(legendEntry("band", "var(--ink)", words));
  }
  return legend;
}

/** Where steps and values lie in a chart of this width; null if there is nothing to draw. */
function frameOf({ lines, height = 230, percent = false, references = [] }, width) {
  const { left, right, top, bottom } = MARGIN;
  const [first, last] = extent(lines.flatMap((line) => line.steps));
  const [low, high] = percent ? [0, 1] : valueRange(lines, references);
  if (!finite(first) || !finite(low) || !lines.some((line) => line.values.some(finite))) return null;
  const across = (step) => last > first ? (step - first) / (last - first) : .5;
  return {
    width, height, first, last, low, high,
    x: (step) => left + across(step) * (width - left - right),
    y: (value) => top + (high - value) / (high - low) * (height - top - bottom),
  };
}

/** The values that the vertical axis shows: a wide interval of few seeds must not squeeze the curves, so bands are cut
    off half a range beyond them; the tooltip tells where they end. */
function valueRange(lines, references) {
  let [low, high] = extent(lines.flatMap((line) => line.values).concat(references.map((one) => one[0])));
  const [bandLow, bandHigh] = extent(lines.flatMap((line) => line.low ? [...line.low, ...line.high] : []));
  if (finite(bandLow)) {
    const span = (high - low) || Math.abs(high) || 1;
    low = Math.max(Math.min(low, bandLow), low - .5 * span);
    high = Math.min(Math.max(high, bandHigh), high + .5 * span);
  }
  if (low === 0 && high === 0) return [-.05, 1]; // what is never below zero, as likely as not
  const least = .002 * Math.max(Math.abs(low), Math.abs(high)); // rounding noise is no curve
  const margin = high - low > least ? (high - low) * .05 : Math.abs(high) * .1 || 1;
  return [low - margin, high + margin];
}

function plotted(options, width, card, tip) {
  const { title, lines, percent = false, references = [] } = options;
  const frame = frameOf(options, width);
  if (!frame) return el("p", { class: "quiet small" }, "No finite values yet.");
  const { height, x, y } = frame, { left, right, top, bottom } = MARGIN;
  const scale = percent ? 100 : 1;
  const svg = picture(width, height, describe(title, lines, scale));
  const clip = `clip${Math.random().toString(36).slice(2)}`;
  const clipPath = shape("clipPath", { id: clip });
  const room = 5; // for points at the ends
  clipPath.append(shape("rect", {
    x: left - room, y: top - room, width: width - left - right + 2 * room, height: height - top - bottom + room,
  }));
  svg.append(clipPath, ...axes(frame, scale, percent));
  const plot = shape("g", { "clip-path": `url(#${clip})` });
  plot.append(...referenceLines(references, frame));
  for (const line of lines) if (line.low) plot.append(...band(line, x, y));
  for (const line of [...lines].sort((a, b) => (b.thin ? 1 : 0) - (a.thin ? 1 : 0))) plot.append(...path(line, x, y));
  svg.append(plot);
  hovering(svg, frame, lines, percent, card, tip);
  return svg;
}

function axes({ width, height, first, last, low, high, x, y }, scale, percent) {
  const { left, right, bottom } = MARGIN;
  const end = width - right, base = height - bottom;
  const nodes = [];
  const [rows, rowStep] = ticks(low * scale, high * scale, 5);
  for (const value of rows) {
    const at = y(value / scale);
    const text = tickText(value, rowStep) + (percent ? " %" : "");
    nodes.push(shape("line", { class: "grid-line", x1: left, x2: end, y1: at, y2: at }),
      shape("text", { x: left - 8, y: at + 4, "text-anchor": "end" }, text));
  }
  const [columns, columnStep] = last > first ? ticks(first, last, width > 700 ? 9 : 5) : [[first], 1];
  for (const value of columns) {
    nodes.push(shape("text", { x: x(value), y: base + 17, "text-anchor": "middle" }, tickText(value, columnStep)));
  }
  nodes.push(shape("line", { class: "axis", x1: left, x2: end, y1: base, y2: base }),
    shape("text", { x: (left + end) / 2, y: height - 5, "text-anchor": "middle" }, "environment steps"));
  return nodes;
}

/** Settings across a chart, of [value, label]. */
function referenceLines(references, { width, low, high, y }) {
  const end = width - MARGIN.right;
  return references.filter(([value]) => value >= low && value <= high).flatMap(([value, label]) => {
    const at = y(value);
    const above = at >= MARGIN.top + 18;
    return [shape("line", { class: "reference", x1: MARGIN.left, x2: end, y1: at, y2: at }),
      shape("text", { class: "reference-label", x: end - 4, y: at + (above ? -5 : 13), "text-anchor": "end" }, label)];
  });
}

/** Mark the step nearest to the pointer, and tell every line's value there. */
function hovering(svg, frame, lines, percent, card, tip) {
  const base = frame.height - MARGIN.bottom;
  const cursor = shape("line", { class: "cursor", y1: MARGIN.top, y2: base, visibility: "hidden" });
  const dots = shape("g", {});
  svg.append(cursor, dots);
  svg.addEventListener("pointermove", (event) => {
    const [step, found] = valuesNear(lines, frame, pointer(event, svg)[0]);
    const at = frame.x(step);
    for (const [name, value] of [["visibility", "visible"], ["x1", at], ["x2", at]]) cursor.setAttribute(name, value);
    dots.replaceChildren(...found.map(([line, index]) => shape("circle", {
      cx: at, cy: frame.y(line.values[index]), r: line.thin ? 2.6 : 4, style: { fill: line.color },
    })));
    const rows = found.slice(0, MOST_ROWS).map(([line, index]) => [line.color, line.label, told(line, index, percent)]);
    const more = found.length > MOST_ROWS ? `and ${found.length - MOST_ROWS} more` : "";
    showTip(tip, card, event, `step ${counted(step)}`, rows, more);
  });
  svg.addEventListener("pointerleave", () => {
    tip.hidden = true;
    cursor.setAttribute("visibility", "hidden");
    dots.replaceChildren();
  });
}

/** The step nearest to a place on the axis, and the lines that have a value there with its index. */
function valuesNear(lines, { x }, at) {
  const steps = [...new Set(lines.flatMap((line) => line.steps))];
  const step = steps.reduce((best, one) => Math.abs(x(one) - at) < Math.abs(x(best) - at) ? one : best);
  const found = lines.filter((line) => !line.silent).map((line) => [line, line.steps.indexOf(step)]);
  return [step, found.filter(([line, index]) => index >= 0 && finite(line.values[index]))];
}

/** A line's value with its interval, in words. */
function told(line, index, percent) {
  const text = (value) => short(value * (percent ? 100 : 1));
  const range = line.low && finite(line.low[index]) ? ` [${text(line.low[index])}, ${text(line.high[index])}]` : "";
  return text(line.values[index]) + (percent ? " %" : "") + range;
}

/** The chart in words, for who cannot see it. */
function describe(title, lines, scale) {
  const main = lines.find((line) => !line.thin) || lines[0];
  const last = main ? main.values.filter(finite).at(-1) : null;
  return `${title}: ${finite(last) ? `${short(last * scale)} at the last record` : "no values"}`;
}
