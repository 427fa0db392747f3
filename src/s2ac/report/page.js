"use strict";
// Every text from the run goes into the page as text (textContent), never as markup.
(() => {
const SVG = "http://www.w3.org/2000/svg";
const NO_VALUE = "–";
const MOST_DIMENSIONS = 5;
const METRICS = {
  entropy: ["Entropy of the policy", "nats", "Of the actions the policy takes, per state."],
  alpha: ["Temperature α", "reward per nat", "How much a nat of entropy is worth."],
  step_size: ["Step size ε", "", "As used, after the bound."],
  jacobian_norm: ["‖εJ‖", "", "A step's derivative; at 1 the density fails."],
  guarded: ["Guarded steps", "% of steps", "Share of sampler steps that a guard shortened."],
  bandwidth: ["Kernel bandwidth σ", "before tanh", "Reach of the repulsion between particles."],
  particle_std: ["Spread of the particles", "std before tanh", "Within one state, after the sampler."],
  effective_sample_size: ["Effective sample size", "particles", "Effective number of weighted particles; near 1 the others are for nothing."],
  folded: ["Folding steps", "share", "Particle steps that are not invertible; should be 0."],
  std: ["Spread of the start", "std before tanh", "Of the Gaussian that the particles start from."],
  critic_loss: ["Critic loss", "squared return", "Mean squared error against the target."],
  guide_loss: ["Guide's loss", "squared return", "Of the critic that the sampler climbs, against the same target."],
  td_error: ["TD error", "return", "Mean absolute error against the target."],
  q_mean: ["Mean Q", "return", "Of the actions in the batch."],
  actor_loss: ["Actor loss", "return", "α log π − Q; the actor makes it smaller."],
  soft_value: ["Soft value", "return", "Estimated by importance sampling."],
  wall_steps_per_second: ["Speed", "steps/s", "Environment steps of all seeds together."],
  episodes: ["Episodes", "per record", "That ended in the interval."],
};
const SPLIT = [["entropy", "total"], ["entropy_start", "start"], ["entropy_sampler", "sampler"], ["entropy_squash", "squash"], ["entropy_flow", "flow"]];
const INSIDE = ["alpha", "step_size", "jacobian_norm", "guarded", "effective_sample_size", "particle_std", "std", "bandwidth", "folded"];
const CRITIC = ["critic_loss", "guide_loss", "td_error", "q_mean"];
const VIRIDIS = [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37]];

let data = JSON.parse(document.getElementById("data").textContent);
const view = { run: 0, state: 0, dimensions: null };
const redraws = [];

// --- Small helpers ---------------------------------------------------------------------------------------------

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
function shape(tag, attributes, text) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}
const color = (index) => `var(--c${index % 8})`;
const finite = (value) => value !== null && value !== undefined && Number.isFinite(value);

function short(value, digits = 4) {
  if (!finite(value)) return NO_VALUE;
  const size = Math.abs(value);
  if (size >= 1e7 || (size > 0 && size < 1e-3)) return value.toExponential(2).replace("e+", "e").replace("-", "−");
  const text = size >= 1000 ? value.toLocaleString("en-US", { maximumFractionDigits: 0 }) : String(Number(value.toPrecision(digits)));
  return text.replace("-", "−");
}
function tickText(value, step) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  const scaled = (unit, name) => String(Number((value / unit).toPrecision(6))).replace("-", "−") + name;
  if (size >= 1e6) return scaled(1e6, "M");
  if (size >= 1e4) return scaled(1e3, "k");
  if (size < 1e-3) return value.toExponential(0).replace("-", "−");
  let digits = 0; // as many as the distance between two ticks needs
  while (digits < 6 && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-6 * step * 10 ** digits) digits++;
  return value.toFixed(digits).replace("-", "−");
}
function ticks(low, high, most) {
  const rough = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough * (1 - 1e-9));
  const found = [];
  for (let index = Math.ceil(low / step - 1e-9); index * step <= high + 1e-9 * step; index++) found.push(index * step);
  return [found, step];
}
function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) if (finite(value)) { low = Math.min(low, value); high = Math.max(high, value); }
  return [low, high];
}
const interval = (one) => finite(one.low) ? `[${short(one.low)}, ${short(one.high)}]` : "";

// --- Line charts ------------------------------------------------------------------------------------------------

// lines: [{label, color, steps, values, low?, high?, thin?, dots?}]; thin lines are single seeds.
function chart(options) {
  const { title, unit = "", caption = "", lines, height = 230, percent = false, references = [], each = 1 } = options;
  const card = el("section", { class: `card chart ${options.wide === "two" ? "two" : options.wide ? "wide" : ""}`, "data-chart": title });
  card.append(el("div", { class: "chart-head" }, el("h3", {}, title), el("span", { class: "unit" }, unit)));
  if (caption) card.append(el("p", { class: "caption" }, caption + (each > 1 ? ` Each point is the mean of ${each} records.` : "")));
  const legend = el("div", { class: "legend" });
  const shownLabels = lines.filter((line) => line.legend);
  if (!options.plain && (shownLabels.length > 1 || lines.some((line) => line.low))) {
    for (const line of shownLabels) {
      const swatch = el("i", { class: "swatch" });
      swatch.style.background = line.color;
      legend.append(el("span", {}, swatch, line.legend));
    }
    if (lines.some((line) => line.low && line.low.some(finite))) {
      const swatch = el("i", { class: "swatch band" });
      swatch.style.background = "var(--ink)";
      legend.append(el("span", {}, swatch, options.seeds === 2 ? "95 % t-interval: very wide, of two seeds" : "95 % t-interval"));
    }
  }
  if (legend.childElementCount) card.append(legend);
  const holder = el("div");
  const tip = el("div", { class: "tip", hidden: "" });
  card.append(holder, tip);
  const scale = percent ? 100 : 1;

  function draw() {
    const width = Math.max(240, holder.clientWidth || 560);
    const [left, right, top, bottom] = [56, 22, 10, 40];
    const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": describe(title, lines, scale) });
    const [firstStep, lastStep] = extent(lines.flatMap((line) => line.steps));
    let [low, high] = extent(lines.flatMap((line) => line.values).concat(references.map((one) => one[0])));
    // A wide interval of few seeds must not squeeze the curves: bands are cut off half a range beyond them; hover tells.
    const [bandLow, bandHigh] = extent(lines.flatMap((line) => line.low ? [...line.low, ...line.high] : []));
    if (finite(bandLow)) { const span = (high - low) || Math.abs(high) || 1; low = Math.max(Math.min(low, bandLow), low - .5 * span); high = Math.min(Math.max(high, bandHigh), high + .5 * span); }
    if (!finite(low)) { holder.replaceChildren(el("p", { class: "quiet small" }, "No finite values yet.")); return; }
    if (percent) { low = 0; high = 1; }
    else {
      const least = .002 * Math.max(Math.abs(low), Math.abs(high)); // rounding noise is no curve
      const margin = high - low > least ? (high - low) * .05 : Math.abs(high) * .1 || 1;
      low -= margin; high += margin;
    }
    const x = (step) => left + (lastStep > firstStep ? (step - firstStep) / (lastStep - firstStep) : .5) * (width - left - right);
    const y = (value) => top + (high - value) / (high - low) * (height - top - bottom);
    const clip = `clip${Math.random().toString(36).slice(2)}`;
    const clipPath = shape("clipPath", { id: clip });
    clipPath.append(shape("rect", { x: left, y: top, width: width - left - right, height: height - top - bottom }));
    svg.append(clipPath);
    const [rows, rowStep] = ticks(low * scale, high * scale, 5);
    for (const value of rows) {
      const at = y(value / scale);
      svg.append(shape("line", { class: "grid-line", x1: left, x2: width - right, y1: at, y2: at }));
      svg.append(shape("text", { x: left - 8, y: at + 4, "text-anchor": "end" }, tickText(value, rowStep) + (percent ? " %" : "")));
    }
    const [columns, columnStep] = lastStep > firstStep ? ticks(firstStep, lastStep, width > 700 ? 9 : 5) : [[firstStep], 1];
    for (const value of columns) svg.append(shape("text", { x: x(value), y: height - bottom + 17, "text-anchor": "middle" }, tickText(value, columnStep)));
    svg.append(shape("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }));
    svg.append(shape("text", { x: (left + width - right) / 2, y: height - 5, "text-anchor": "middle" }, "environment steps"));
    const plot = shape("g", { "clip-path": `url(#${clip})` });
    svg.append(plot);
    for (const [value, label] of references) {
      if (value < low || value > high) continue;
      plot.append(shape("line", { class: "reference", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
      plot.append(shape("text", { class: "reference-label", x: width - right - 4, y: y(value) + (y(value) < top + 18 ? 13 : -5), "text-anchor": "end" }, label));
    }
    for (const line of lines) if (line.low) plot.append(...band(line, x, y));
    for (const line of [...lines].sort((a, b) => (b.thin ? 1 : 0) - (a.thin ? 1 : 0))) plot.append(...path(line, x, y));
    const cursor = shape("line", { class: "cursor", y1: top, y2: height - bottom, visibility: "hidden" });
    const dots = shape("g", {});
    svg.append(cursor, dots);
    svg.addEventListener("pointermove", (event) => hover(event, { svg, x, y, width, cursor, dots, left, right }));
    svg.addEventListener("pointerleave", () => { tip.hidden = true; cursor.setAttribute("visibility", "hidden"); dots.replaceChildren(); });
    holder.replaceChildren(svg);
  }

  function hover(event, parts) {
    const box = parts.svg.getBoundingClientRect();
    const at = (event.clientX - box.left) / box.width * parts.width;
    const steps = [...new Set(lines.flatMap((line) => line.steps))];
    if (!steps.length) return;
    const step = steps.reduce((best, one) => Math.abs(parts.x(one) - at) < Math.abs(parts.x(best) - at) ? one : best);
    const rows = [];
    parts.dots.replaceChildren();
    for (const line of lines) {
      const index = line.steps.indexOf(step);
      if (index < 0 || !finite(line.values[index]) || line.silent) continue;
      const value = line.values[index];
      const text = short(value * scale) + (percent ? " %" : "") + (line.low && finite(line.low[index]) ? ` [${short(line.low[index] * scale)}, ${short(line.high[index] * scale)}]` : "");
      rows.push([line.color, line.label, text]);
      const dot = shape("circle", { cx: parts.x(step), cy: parts.y(value), r: line.thin ? 2.6 : 4 });
      dot.style.fill = line.color;
      parts.dots.append(dot);
    }
    parts.cursor.setAttribute("visibility", "visible");
    parts.cursor.setAttribute("x1", parts.x(step));
    parts.cursor.setAttribute("x2", parts.x(step));
    showTip(tip, card, event, `step ${step.toLocaleString("en-US")}`, rows.slice(0, 24), rows.length > 24 ? `and ${rows.length - 24} more` : "");
  }

  redraws.push(draw);
  return card;
}
function describe(title, lines, scale) {
  const main = lines.find((line) => !line.thin) || lines[0];
  const last = main ? main.values.filter(finite).at(-1) : null;
  return `${title}: ${finite(last) ? `${short(last * scale)} at the last record` : "no values"}`;
}
function pieces(line) {
  const runs = [[]];
  line.steps.forEach((step, index) => finite(line.values[index]) ? runs.at(-1).push(index) : runs.at(-1).length && runs.push([]));
  return runs.filter((run) => run.length);
}
function path(line, x, y) {
  return pieces(line).map((indices) => {
    const alone = indices.length === 1;
    const node = alone
      ? shape("circle", { cx: x(line.steps[indices[0]]), cy: y(line.values[indices[0]]), r: line.thin ? 2.5 : 4 })
      : shape("polyline", { points: indices.map((i) => `${x(line.steps[i]).toFixed(1)},${y(line.values[i]).toFixed(1)}`).join(" "), fill: "none", "stroke-width": line.thin ? 1.25 : 2.2, "stroke-linejoin": "round", "stroke-opacity": line.thin ? line.opacity || .75 : 1, "data-points": indices.length });
    node.style[alone ? "fill" : "stroke"] = line.color;
    return node;
  });
}
function band(line, x, y) {
  return pieces({ steps: line.steps, values: line.low }).map((indices) => {
    if (indices.length === 1) {
      const [at] = indices;
      const bar = shape("line", { x1: x(line.steps[at]), x2: x(line.steps[at]), y1: y(line.low[at]), y2: y(line.high[at]), "stroke-width": 9, "stroke-opacity": .18, class: "band" });
      bar.style.stroke = line.color;
      return bar;
    }
    const edge = (values, order) => order.map((i) => `${x(line.steps[i]).toFixed(1)},${Math.max(-9999, Math.min(9999, y(values[i]))).toFixed(1)}`);
    const node = shape("polygon", { points: [...edge(line.high, indices), ...edge(line.low, [...indices].reverse())].join(" "), "fill-opacity": .15, class: "band" });
    node.style.fill = line.color;
    return node;
  });
}
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
  tip.style.left = `${px + tip.offsetWidth + 24 > box.width ? Math.max(4, px - tip.offsetWidth - 14) : px + 14}px`;
  tip.style.top = `${Math.max(4, py - tip.offsetHeight - 8)}px`;
}

// --- Curves to lines ------------------------------------------------------------------------------------------------

function seedLines(curve, tone) {
  const many = curve.seeds.length > 1;
  const lines = many ? [{ label: `mean of ${curve.seeds.length} seeds`, legend: "mean", color: tone || "var(--ink)", steps: curve.steps, values: curve.mean, low: curve.low, high: curve.high }] : [];
  curve.seeds.forEach((one, index) => lines.push({
    label: `seed ${one.seed}`, legend: curve.seeds.length <= 8 ? `seed ${one.seed}` : index === 0 ? "each seed" : null,
    color: curve.seeds.length <= 8 ? color(index) : color(0), steps: curve.steps, values: one.values, thin: many, opacity: curve.seeds.length > 8 ? .4 : .85,
  }));
  return lines;
}
function runLines(curve, label, tone) {
  const many = curve.seeds.length > 1;
  const main = { label, legend: label, color: tone, steps: curve.steps, values: curve.mean, low: many ? curve.low : null, high: curve.high };
  return [main, ...(many ? curve.seeds.map((one) => ({ label: `${label}, seed ${one.seed}`, color: tone, steps: curve.steps, values: one.values, thin: true, opacity: .4 })) : [])];
}
function metricChart(run, name, extra = {}) {
  const curve = run.curves.find((one) => one.name === name);
  if (!curve) return null;
  const known = Object.hasOwn(METRICS, name) ? METRICS[name] : [name, "", "Not described."];
  const reference = Object.hasOwn(run.references, name) ? [run.references[name]] : [];
  return chart({ title: known[0], unit: known[1], caption: known[2], lines: seedLines(curve), percent: name === "guarded", references: reference, each: curve.each, plain: true, ...extra });
}

// --- Sections -------------------------------------------------------------------------------------------------------

function runCard(run) {
  const tone = { running: "good", done: "note", stopped: "warn", empty: "warn" }[run.state];
  const words = { running: "running", done: "finished", stopped: "stopped before its end", empty: "no records yet" }[run.state];
  const speed = run.curves.find((curve) => curve.name === "wall_steps_per_second");
  const stat = (name, value, small) => el("div", { class: "stat" }, el("dt", {}, name), el("dd", {}, value, small ? el("small", {}, small) : null));
  const last = run.final;
  return el("section", { class: "card", "data-run": run.name },
    el("div", { class: "run-head" }, el("h3", {}, `${run.name} · ${run.algo} on ${run.env}`), el("span", { class: `pill ${tone}` }, words)),
    el("dl", { class: "stats" },
      stat(last && last.kind !== "train" ? "newest evaluation's return" : "newest return in training", last ? short(last.mean) : NO_VALUE, last ? `${interval(last) ? `95 % ${interval(last)}, ` : ""}step ${last.step.toLocaleString("en-US")}` : "no record"),
      stat("environment steps", run.done.toLocaleString("en-US"), run.total ? `of ${run.total.toLocaleString("en-US")} per seed` : null),
      stat("seeds", String(run.seeds.length), run.seeds.length ? `${run.seeds.slice(0, 8).join(", ")}${run.seeds.length > 8 ? ", …" : ""}` : null),
      stat("speed", speed ? short(speed.mean.filter(finite).at(-1) ?? null) : NO_VALUE, "steps/s, all seeds together")),
    ...run.verdicts.map((one) => el("div", { class: `verdict ${one.level}` }, el("b", {}, one.title), el("span", {}, one.text))),
    ...run.notes.map((text) => el("div", { class: "verdict note" }, el("span", {}, text))));
}

function learning(group) {
  const runs = group.runs.map((index) => data.runs[index]);
  const nodes = [el("h2", {}, data.groups.length > 1 ? `Learning on ${group.env}` : "Learning")];
  nodes.push(el("p", { class: "lead" }, runs.length > 1
    ? "Thick lines are means over seeds with their 95 % t-interval, thin lines the single seeds."
    : "Every seed, their mean and its 95 % t-interval. Move over a chart to read values."));
  const grid = el("div", { class: "grid" });
  const lines = (pick) => runs.length > 1
    ? runs.flatMap((run, index) => { const curve = pick(run); return curve ? runLines(curve, run.name, color(index)) : []; })
    : [pick(runs[0])].filter(Boolean).flatMap((curve) => seedLines(curve));
  const training = lines((run) => run.curves.find((curve) => curve.name === "return"));
  const rules = [...new Set(runs.flatMap((run) => run.evaluations.map((one) => one.rule)))];
  if (training.length) grid.append(chart({ title: "Return in training", unit: "return per episode", caption: "Episodes that ended in each interval, with exploration.", lines: training, height: 300, seeds: Math.min(...runs.map((run) => run.seeds.length)), wide: rules.length !== 1, each: Math.max(...runs.map((run) => run.curves.find((one) => one.name === "return")?.each || 1)) }));
  for (const rule of rules) grid.append(chart({ title: `Return in evaluation, rule ${rule}`, unit: "return per episode", caption: "Whole episodes on seeds of their own.", lines: lines((run) => run.evaluations.find((one) => one.rule === rule)), height: 300, seeds: Math.min(...runs.map((run) => run.seeds.length)) }));
  if (!grid.childElementCount) grid.append(el("p", { class: "card quiet wide" }, "No returns yet: the first record comes after the warm-up and one log interval."));
  nodes.push(grid);
  if (runs.length > 1) nodes.push(comparison(group));
  return nodes;
}

function comparison(group) {
  const cell = (text, kind) => el("td", { class: kind || "" }, text);
  const rows = group.comparison.map((row) => {
    const gap = row.difference;
    return el("tr", {}, cell(row.run), cell(row.algo),
      cell(row.final ? short(row.final.mean) : NO_VALUE, "number"), cell(row.final ? interval(row.final) || "one seed" : NO_VALUE, "number"),
      cell(row.final ? String(row.final.values.length) : NO_VALUE, "number"), cell(row.final ? row.final.step.toLocaleString("en-US") : NO_VALUE, "number"),
      cell(gap ? `${gap.mean > 0 ? "+" : ""}${short(gap.mean)} ${interval(gap)}` : NO_VALUE, "number"),
      cell([gap && finite(gap.low) ? (gap.low > 0 ? "better" : gap.high < 0 ? "worse" : "no significant difference") : "", row.caution].filter(Boolean).join("; ")));
  });
  const heads = [["run"], ["algorithm"], ["return", 1], ["95 % interval", 1], ["seeds", 1], ["at step", 1], ["against the first run", 1], [""]];
  return el("section", { class: "card scroll stack" }, el("h3", {}, `Comparison on ${group.env}`),
    el("table", { class: "compare" }, el("thead", {}, el("tr", {}, ...heads.map(([text, right]) => el("th", { class: right ? "number" : "" }, text)))), el("tbody", {}, ...rows)),
    el("p", { class: "quiet small" }, "Differences are of means over seeds, with Welch's 95 % interval; not corrected for the number of comparisons."));
}

function inside(run) {
  const grid = el("div", { class: "grid three" });
  const split = SPLIT.map(([name, label], index) => [run.curves.find((curve) => curve.name === name), label, index]).filter(([curve]) => curve);
  if (split.length) {
    grid.append(chart({ title: "Entropy and its parts", unit: "nats", wide: "two", height: 252, references: Object.hasOwn(run.references, "entropy") ? [run.references.entropy] : [], each: split[0][0].each,
      caption: "total = start distribution + what its flow, if it has one, and the sampler add or take + what the squash into the action box takes.",
      lines: split.flatMap(([curve, label, index]) => runLines(curve, label, index ? color(index - 1) : "var(--ink)").map((line) => ({ ...line, silent: line.thin }))) }));
  }
  for (const name of [...INSIDE, ...CRITIC]) { const node = metricChart(run, name, name === "alpha" && split.length ? { height: 276 } : {}); if (node) grid.append(node); }
  const shown = new Set([...SPLIT.map(([name]) => name), ...INSIDE, ...CRITIC, "return"]);
  const others = run.curves.filter((curve) => !shown.has(curve.name));
  const more = el("details", { class: "wide" }, el("summary", {}, `${others.length} more records`));
  const moreGrid = el("div", { class: "grid three" });
  for (const curve of others) moreGrid.append(metricChart(run, curve.name));
  more.append(moreGrid);
  more.addEventListener("toggle", redraw);
  if (others.length) grid.append(more);
  return grid;
}

// --- Action clouds --------------------------------------------------------------------------------------------------

function ramp(share) {
  const at = Math.max(0, Math.min(1, share)) * (VIRIDIS.length - 1);
  const [a, b] = [VIRIDIS[Math.floor(at)], VIRIDIS[Math.ceil(at)]];
  return a.map((value, index) => Math.round(value + (b[index] - value) * (at - Math.floor(at))));
}
const rampCss = (share) => `rgb(${ramp(share).join(",")})`;
const axisName = (index) => `action ${index + 1}`;

function clouds(run) {
  const cloud = run.clouds;
  if (!cloud) return el("section", { class: "card" }, el("p", { class: "quiet" }, run.no_clouds));
  const dimension = cloud.low.length;
  const card = el("section", { class: "card", id: "clouds" });
  view.state = Math.min(view.state, cloud.states.length - 1);
  const number = el("output", { id: "state-number" });
  const back = el("button", { type: "button", id: "previous", on: { click: () => turn(-1) } }, "← previous");
  const next = el("button", { type: "button", id: "next", on: { click: () => turn(1) } }, "next →");
  card.append(el("div", { class: "pager" }, back, number, next, el("span", { class: "quiet small" }, "or the keys ", el("kbd", {}, "←"), " ", el("kbd", {}, "→"))));
  const body = el("div", { class: `cloud ${dimension > 2 ? "pairs" : ""}` });
  const plot = el("div", { class: "plot" });
  const side = el("div");
  const tip = el("div", { class: "tip", hidden: "" });
  body.append(plot, side);
  card.append(body);

  function turn(by) { view.state = (view.state + by + cloud.states.length) % cloud.states.length; draw(); }
  card.turn = turn;
  function draw() {
    const state = cloud.states[view.state];
    number.textContent = `state ${view.state + 1} of ${cloud.states.length}`;
    tip.hidden = true;
    const drawn = dimension === 1 ? oneAction(cloud, state, plot, tip) : dimension === 2 ? twoActions(cloud, state, plot, tip) : manyActions(cloud, state, plot, draw);
    plot.replaceChildren(...drawn, tip);
    side.replaceChildren(...beside(cloud, state));
  }
  redraws.push(draw);
  return card;
}

function beside(cloud, state) {
  const mean = (values) => values && values.every(finite) ? values.reduce((a, b) => a + b, 0) / values.length : null;
  const entropy = mean(state.log_prob);
  const facts = [["where", `episode ${state.episode + 1}, step ${state.time}`],
    ["observation", `(${state.observation.slice(0, 24).map((value) => short(value, 3)).join(", ")}${state.observation.length > 24 ? `, … ${state.observation.length} values` : ""})`],
    ["entropy here", entropy === null ? "density not known" : `${short(-entropy, 3)} nats`]];
  if (state.q) { const [low, high] = extent(state.q); facts.push(["Q of the samples", `${short(low)} to ${short(high)}, mean ${short(mean(state.q))}`]); }
  const node = [el("h3", {}, "This state"), el("dl", { class: "facts" }, ...facts.flatMap(([name, text]) => [el("dt", {}, name), el("dd", {}, text)]))];
  const mark = (tone, edge, text) => { const dot = el("i", { class: "swatch dot" }); dot.style.background = tone; dot.style.boxShadow = `0 0 0 1.5px ${edge}`; return el("span", {}, dot, text); };
  const legend = el("div", { class: "legend" });
  if (cloud.low.length > 2) legend.append(mark(rampCss(.9), "transparent", "high Q"), mark(rampCss(.1), "transparent", "low Q"));
  else {
    if (cloud.set > 1) legend.append(mark("#ff7a45", "#ffffff", `one set of ${Math.min(cloud.set, state.particles.length)} particles, drawn together`));
    legend.append(mark("#ffffff", "#30343b", cloud.set > 1 ? "particles of other sets" : "sampled actions"));
    if (state.q && cloud.low.length === 2) legend.append(mark("transparent", "var(--bad)", "highest Q of all"));
  }
  node.push(legend);
  if (cloud.paths) node.push(pathMap(cloud, state));
  node.push(el("p", { class: "quiet small" }, `Seed ${cloud.seed}, checkpoint of step ${cloud.step.toLocaleString("en-US")}, rule ${cloud.rule}. ${state.particles.length} samples; states are those met in evaluation episodes.`));
  return node;
}

function pathMap(cloud, state) {
  const size = 250, pad = 12;
  const points = cloud.paths.flat();
  const [x0, x1] = extent(points.map((point) => point[0]));
  const [y0, y1] = extent(points.map((point) => point[1]));
  const unit = (size - 2 * pad) / (Math.max(x1 - x0, y1 - y0) || 1); // pixels, the same along both axes
  const [width, height] = [2 * pad + (x1 - x0) * unit, 2 * pad + (y1 - y0) * unit];
  const place = (point) => [pad + (point[0] - x0) * unit, pad + (y1 - point[1]) * unit];
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Paths of the evaluation episodes" });
  svg.style.maxWidth = `${width}px`;
  cloud.paths.forEach((path, index) => {
    const line = shape("polyline", { points: path.map((point) => place(point).map((value) => value.toFixed(1)).join(",")).join(" "), fill: "none", "stroke-width": index === state.episode ? 2.2 : 1.1, "stroke-opacity": index === state.episode ? 1 : .45 });
    line.style.stroke = index === state.episode ? "var(--accent)" : "var(--faint)";
    svg.append(line);
  });
  const [cx, cy] = place(state.observation);
  const dot = shape("circle", { cx, cy, r: 5.5, "stroke-width": 2 });
  dot.style.fill = "#ff7a45"; dot.style.stroke = "var(--card)";
  svg.append(dot);
  const box = el("div", {}, el("p", { class: "small quiet" }, "Where it is among the episodes' paths:"), svg);
  box.style.margin = "14px 0";
  return box;
}

function nearest(points, px, py, reach) {
  let best = -1, least = reach * reach;
  points.forEach(([x, y], index) => { const d = (x - px) ** 2 + (y - py) ** 2; if (d <= least) { least = d; best = index; } });
  return best;
}
function particleRows(state, index) {
  const rows = state.particles[index].map((value, axis) => ["", axisName(axis), short(value, 3)]);
  if (state.q) rows.push(["", "Q", short(state.q[index])]);
  if (finite(state.log_prob[index])) rows.push(["", "log π", short(state.log_prob[index], 3)]);
  return rows;
}

function twoActions(cloud, state, plot, tip) {
  const width = Math.max(260, plot.clientWidth || 520), left = 50, bottom = 40, top = 8, bar = state.grid ? 74 : 10;
  const size = width - left - bar, height = size + top + bottom;
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": "Q over the two actions, with particles", "data-cloud": "landscape" });
  const x = (value) => left + (value - cloud.low[0]) / (cloud.high[0] - cloud.low[0]) * size;
  const y = (value) => top + (cloud.high[1] - value) / (cloud.high[1] - cloud.low[1]) * size;
  let side = 0;
  if (state.grid) {
    side = Math.round(Math.sqrt(state.grid.length));
    const [low, high] = extent(state.grid);
    const cell = size / side;
    const heat = shape("g", { "shape-rendering": "crispEdges", "data-cells": state.grid.length });
    state.grid.forEach((value, index) => heat.append(shape("rect", { x: (left + (index % side) * cell).toFixed(2), y: (top + (side - 1 - Math.floor(index / side)) * cell).toFixed(2), width: (cell + .3).toFixed(2), height: (cell + .3).toFixed(2), fill: rampCss((value - low) / (high - low || 1)) })));
    svg.append(heat);
    for (let i = 0; i < 40; i++) svg.append(shape("rect", { x: left + size + 16, y: top + (39 - i) * size / 40, width: 12, height: size / 40 + .5, fill: rampCss(i / 39) }));
    svg.append(shape("text", { x: left + size + 33, y: top + 9 }, short(high, 3)), shape("text", { x: left + size + 33, y: top + size }, short(low, 3)), shape("text", { x: left + size + 33, y: top + size / 2 + 4 }, "Q"));
  } else svg.append(Object.assign(shape("rect", { x: left, y: top, width: size, height: size, class: "axis", fill: "none" })));
  const [xTicks, xStep] = ticks(cloud.low[0], cloud.high[0], 5), [yTicks, yStep] = ticks(cloud.low[1], cloud.high[1], 5);
  for (const value of xTicks) svg.append(shape("text", { x: x(value), y: top + size + 17, "text-anchor": "middle" }, tickText(value, xStep)));
  for (const value of yTicks) svg.append(shape("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, tickText(value, yStep)));
  svg.append(shape("text", { x: left + size / 2, y: height - 5, "text-anchor": "middle" }, axisName(0)));
  svg.append(shape("text", { transform: `translate(12 ${top + size / 2}) rotate(-90)`, "text-anchor": "middle" }, axisName(1)));
  const places = state.particles.map(([a, b]) => [x(a), y(b)]);
  const best = state.q ? state.q.indexOf(extent(state.q)[1]) : -1;
  places.forEach(([cx, cy], index) => {
    const own = cloud.set > 1 && index < cloud.set;
    if (!own) svg.append(shape("circle", { cx, cy, r: 3, fill: "#ffffff", "fill-opacity": .8, stroke: "#30343b", "stroke-width": .8, class: "particle" }));
  });
  places.forEach(([cx, cy], index) => { if (cloud.set > 1 && index < cloud.set) svg.append(shape("circle", { cx, cy, r: 5, fill: "#ff7a45", stroke: "#ffffff", "stroke-width": 1.6, class: "particle" })); });
  if (best >= 0) { const ring = shape("circle", { cx: places[best][0], cy: places[best][1], r: 8.5, fill: "none", "stroke-width": 2.2 }); ring.style.stroke = "var(--bad)"; svg.append(ring); }
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const px = (event.clientX - box.left) / box.width * width, py = (event.clientY - box.top) / box.height * height;
    const index = nearest(places, px, py, 9);
    if (index >= 0) return showTip(tip, plot, event, cloud.set > 1 && index < cloud.set ? "particle of the set" : "sample", particleRows(state, index), "");
    const across = (px - left) / size, up = 1 - (py - top) / size;
    if (!side || across < 0 || across >= 1 || up < 0 || up >= 1) { tip.hidden = true; return undefined; }
    const value = state.grid[Math.floor(up * side) * side + Math.floor(across * side)];
    return showTip(tip, plot, event, `Q ${short(value)}`, [["", axisName(0), short(cloud.low[0] + across * (cloud.high[0] - cloud.low[0]), 2)], ["", axisName(1), short(cloud.low[1] + up * (cloud.high[1] - cloud.low[1]), 2)]], "");
  });
  svg.addEventListener("pointerleave", () => { tip.hidden = true; });
  return [el("h3", {}, state.grid ? "Q-landscape and particles" : "Sampled actions"), svg];
}

function oneAction(cloud, state, plot, tip) {
  const width = Math.max(260, plot.clientWidth || 520), height = 330, left = 56, right = 12, top = 12, bottom = 40, strip = 74;
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": "Q over the action, with particles", "data-cloud": "curve" });
  const x = (value) => left + (value - cloud.low[0]) / (cloud.high[0] - cloud.low[0]) * (width - left - right);
  const base = height - bottom - strip;
  if (state.grid) {
    let [low, high] = extent(state.grid);
    const margin = (high - low) * .06 || 1; low -= margin; high += margin;
    const y = (value) => top + (high - value) / (high - low) * (base - top);
    const [rows, rowStep] = ticks(low, high, 4);
    for (const value of rows) svg.append(shape("line", { class: "grid-line", x1: left, x2: width - right, y1: y(value), y2: y(value) }), shape("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, tickText(value, rowStep)));
    const line = shape("polyline", { points: state.grid.map((value, index) => `${x(cloud.low[0] + index / (state.grid.length - 1) * (cloud.high[0] - cloud.low[0])).toFixed(1)},${y(value).toFixed(1)}`).join(" "), fill: "none", "stroke-width": 2.2 });
    line.style.stroke = "var(--accent)";
    svg.append(line);
  }
  const bins = 40, counts = new Array(bins).fill(0);
  for (const [value] of state.particles) counts[Math.min(bins - 1, Math.max(0, Math.floor((value - cloud.low[0]) / (cloud.high[0] - cloud.low[0]) * bins)))]++;
  const most = Math.max(...counts), cell = (width - left - right) / bins;
  counts.forEach((count, index) => { const node = shape("rect", { x: left + index * cell + .5, width: cell - 1, y: height - bottom - count / most * (strip - 18), height: count / most * (strip - 18), "fill-opacity": .75 }); node.style.fill = "var(--c1)"; svg.append(node); });
  const places = state.particles.map(([value]) => [x(value), base + 8]);
  places.forEach(([cx, cy], index) => svg.append(shape("circle", { cx, cy, r: 3.4, fill: index < cloud.set && cloud.set > 1 ? "#ff7a45" : "#ffffff", stroke: "#30343b", "stroke-width": .8, class: "particle" })));
  svg.append(shape("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }));
  const [columns, columnStep] = ticks(cloud.low[0], cloud.high[0], 6);
  for (const value of columns) svg.append(shape("text", { x: x(value), y: height - bottom + 17, "text-anchor": "middle" }, tickText(value, columnStep)));
  svg.append(shape("text", { x: (left + width - right) / 2, y: height - 5, "text-anchor": "middle" }, axisName(0)));
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const px = (event.clientX - box.left) / box.width * width, py = (event.clientY - box.top) / box.height * height;
    const index = nearest(places, px, py, 9);
    if (index >= 0) return showTip(tip, plot, event, "sample", particleRows(state, index), "");
    const share = (px - left) / (width - left - right);
    if (!state.grid || share < 0 || share > 1) { tip.hidden = true; return undefined; }
    return showTip(tip, plot, event, `Q ${short(state.grid[Math.round(share * (state.grid.length - 1))])}`, [["", axisName(0), short(cloud.low[0] + share * (cloud.high[0] - cloud.low[0]), 3)]], "");
  });
  svg.addEventListener("pointerleave", () => { tip.hidden = true; });
  return [el("h3", {}, state.grid ? "Q over the action, and the samples" : "Sampled actions"), svg];
}

function manyActions(cloud, state, plot, draw) {
  const dimension = cloud.low.length;
  if (!view.dimensions || view.dimensions.some((axis) => axis >= dimension)) view.dimensions = [...Array(Math.min(dimension, MOST_DIMENSIONS)).keys()];
  const chosen = [...view.dimensions].sort((a, b) => a - b);
  const width = Math.max(260, plot.clientWidth || 700), left = 44, bottom = 38, top = 6, gap = 16;
  const size = (width - left - 6 - gap * (chosen.length - 1)) / chosen.length;
  const height = top + bottom + size * chosen.length + gap * (chosen.length - 1);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": "Particles in pairs of actions", "data-cloud": "pairs" });
  const [low, high] = state.q ? extent(state.q) : [0, 1];
  const order = [...state.particles.keys()].sort((a, b) => state.q ? state.q[a] - state.q[b] : 0);
  const share = (axis, value) => (value - cloud.low[axis]) / (cloud.high[axis] - cloud.low[axis]);
  chosen.forEach((vertical, row) => chosen.forEach((across, column) => {
    if (column > row) return;
    const x0 = left + column * (size + gap), y0 = top + row * (size + gap);
    svg.append(shape("rect", { x: x0, y: y0, width: size, height: size, fill: "none", class: "axis", rx: 3 }));
    if (column === row) {
      const bins = 16, counts = new Array(bins).fill(0);
      for (const point of state.particles) counts[Math.min(bins - 1, Math.max(0, Math.floor(share(across, point[across]) * bins)))]++;
      const most = Math.max(...counts);
      counts.forEach((count, index) => { const node = shape("rect", { x: x0 + 2 + index * (size - 4) / bins, width: (size - 4) / bins - 1, y: y0 + size - 1 - count / most * (size - 22), height: count / most * (size - 22), "fill-opacity": .55 }); node.style.fill = "var(--c0)"; svg.append(node); });
      svg.append(shape("text", { x: x0 + 6, y: y0 + 14 }, axisName(across)));
    } else for (const index of order) {
      const point = state.particles[index];
      const dot = shape("circle", { cx: x0 + 3 + share(across, point[across]) * (size - 6), cy: y0 + size - 3 - share(vertical, point[vertical]) * (size - 6), r: 2.7, "fill-opacity": .9, class: "particle" });
      dot.style.fill = state.q ? rampCss((state.q[index] - low) / (high - low || 1)) : "var(--c1)";
      dot.append(shape("title", {}, particleRows(state, index).map(([, name, text]) => `${name}: ${text}`).join("\n")));
      svg.append(dot);
    }
    if (row === chosen.length - 1) [[cloud.low[across], "start", x0], [cloud.high[across], "end", x0 + size]].forEach(([value, anchor, x]) => svg.append(shape("text", { x, y: y0 + size + 15, "text-anchor": anchor }, short(value, 2))));
    if (row === chosen.length - 1) svg.append(shape("text", { x: x0 + size / 2, y: y0 + size + 31, "text-anchor": "middle" }, axisName(across)));
    if (column === 0) [[cloud.high[vertical], y0 + 11], [cloud.low[vertical], y0 + size - 2]].forEach(([value, y]) => svg.append(shape("text", { x: left - 6, y, "text-anchor": "end" }, short(value, 2))));
  }));
  const chips = el("div", { class: "row chips" });
  if (dimension > MOST_DIMENSIONS) for (let axis = 0; axis < dimension; axis++) chips.append(el("button", { type: "button", "aria-pressed": String(view.dimensions.includes(axis)), on: { click: () => {
    view.dimensions = view.dimensions.includes(axis) ? view.dimensions.filter((one) => one !== axis) : [...view.dimensions, axis].slice(-MOST_DIMENSIONS);
    if (!view.dimensions.length) view.dimensions = [axis];
    draw();
  } } }, String(axis + 1)));
  return [el("h3", {}, "Samples, two actions at a time, colored by Q"), chips, svg];
}

// --- Settings -------------------------------------------------------------------------------------------------------

function settings(run) {
  const table = (title, rows) => el("section", { class: "card" }, el("h3", {}, title), el("table", {}, el("tbody", {}, ...rows.map(([name, value]) => el("tr", {}, el("td", {}, name), el("td", { class: "mono" }, value))))));
  const copied = el("span", { class: "quiet small" });
  const text = el("div", { class: "command mono", id: "command", tabindex: "0" }, run.command);
  const copy = el("button", { type: "button", on: { click: async () => {
    try { await navigator.clipboard.writeText(run.command); copied.textContent = "copied"; }
    catch { getSelection().selectAllChildren(text); copied.textContent = "selected: press Ctrl-C"; }
  } } }, "Copy");
  return el("div", { class: "grid" },
    el("section", { class: "card wide" }, el("div", { class: "row" }, el("h3", {}, "The command that makes this run"), copy, copied), text),
    table("Algorithm", run.config.algorithm), el("div", { class: "stack-plain" }, table("Run", run.config.run), versionsTable(run, table)));
}
function versionsTable(run, table) {
  const rows = [...Object.entries(run.versions), ["directory", run.path], ["report made by", `s2ac ${data.version}`]];
  const card = table("Versions and machine", rows);
  card.style.marginTop = "16px";
  return card;
}

// --- The page -------------------------------------------------------------------------------------------------------

function redraw() { for (const draw of redraws) draw(); }

function build() {
  const main = document.getElementById("main");
  const place = window.scrollY;
  const open = document.querySelector("details")?.open;
  redraws.length = 0;
  view.run = Math.min(view.run, data.runs.length - 1);
  const run = data.runs[view.run];
  const several = data.runs.length > 1;
  const envs = data.groups.map((group) => group.env).join(", ");
  const title = several ? `${data.runs.length} runs on ${envs}` : `${run.algo} on ${run.env}`;
  document.title = `${title} · S²AC report`;
  document.getElementById("title").textContent = title;
  document.getElementById("subtitle").textContent = `${data.live ? "watched" : "made"} ${data.made} · s2ac ${data.version}${several ? "" : ` · ${run.path}`}`;
  const nodes = [el("div", { class: "stack" }, ...data.runs.map(runCard))];
  if (data.groups.length > 1) nodes.push(el("p", { class: "quiet small apart" }, "These runs are on different environments: each has its own section, and nothing is averaged or compared across them."));
  for (const group of data.groups) nodes.push(...learning(group));
  if (several) nodes.push(el("h2", {}, "One run in detail"), el("div", { class: "tabs row" }, ...data.runs.map((one, index) => el("button", { type: "button", "aria-pressed": String(index === view.run), title: one.path, on: { click: () => { view.run = index; view.state = 0; build(); } } }, one.name))));
  nodes.push(el("h2", {}, "Inside the policy"), el("p", { class: "lead" }, run.curves.length ? "How random the policy is and why, and whether its sampler and its critic work as they should. Colors are those of the seeds above; black or white is their mean." : "Nothing has been recorded yet."), inside(run));
  nodes.push(el("h2", {}, "Action clouds"), el("p", { class: "lead" }, "What the policy does at single states: the actions that it samples, and what the critic thinks of them."), clouds(run));
  nodes.push(el("h2", {}, "Settings"), el("p", { class: "lead" }, "Everything that it takes to make this run again."), settings(run));
  nodes.push(el("footer", {}, "One file, no external address: it can be sent and opened anywhere. Intervals are 95 % Student t-intervals over seeds."));
  main.replaceChildren(...nodes);
  if (open && document.querySelector("details")) document.querySelector("details").open = true;
  redraw();
  window.scrollTo(0, place);
}

function theme() {
  const media = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try { chosen = localStorage.getItem("s2ac-theme"); } catch { /* a file may have no storage */ }
  const apply = () => document.documentElement.classList.toggle("dark", chosen ? chosen === "dark" : media.matches);
  media.addEventListener("change", apply);
  document.getElementById("theme").addEventListener("click", () => {
    chosen = document.documentElement.classList.contains("dark") ? "light" : "dark";
    try { localStorage.setItem("s2ac-theme", chosen); } catch { /* as above */ }
    apply();
  });
  apply();
}

function keys() {
  document.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const card = document.getElementById("clouds");
    if (!step || !card || event.altKey || event.ctrlKey || event.metaKey || event.target.closest(".command")) return;
    event.preventDefault();
    card.turn(step);
  });
}

// The page of `s2ac watch` asks for new data, and rests a hundred times as long as that took on either side.
function live() {
  const pill = document.getElementById("live");
  const say = (text, tone) => { pill.hidden = false; pill.textContent = text; pill.className = `pill ${tone}`; };
  let rest = data.wait;
  say("live", "good");
  async function poll() {
    let wait = rest;
    try {
      const answer = await fetch(`data.json?version=${data.version_of_data}`, { cache: "no-store" });
      if (answer.status === 200) {
        data = await answer.json();
        const started = performance.now();
        build();
        rest = wait = Math.max(data.wait, (performance.now() - started) / 10);
      } else if (answer.status !== 204) throw new Error(await answer.text());
      say(data.runs[0].state === "running" ? "live" : `run ${data.runs[0].state}`, data.runs[0].state === "running" ? "good" : "note");
    } catch {
      wait = Math.max(10, wait);
      say("no answer: start s2ac watch again", "bad");
    }
    setTimeout(poll, 1000 * (document.hidden ? Math.max(30, wait) : wait));
  }
  setTimeout(poll, 1000 * rest);
}

theme();
keys();
build();
let pending = 0;
addEventListener("resize", () => { cancelAnimationFrame(pending); pending = requestAnimationFrame(redraw); });
if (data.live) live();
document.documentElement.dataset.ready = "yes";
})();
