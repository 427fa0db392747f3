// A run's curves as charts: learning, and what goes on inside the policy.

/** The lines of one run: every seed, and their mean with its interval. */
function seedLines(curve) {
  const { steps, seeds } = curve;
  const many = seeds.length > 1, few = seeds.length <= 8;
  const mean = {
    label: `mean of ${counted(curve.num)} seeds`, legend: "mean", color: "var(--ink)", steps, values: curve.mean,
    low: curve.low, high: curve.high,
  };
  return [...(many ? [mean] : []), ...seeds.map((one, index) => ({
    label: `seed ${one.seed}`, legend: few ? `seed ${one.seed}` : index === 0 ? eachSeed(curve) : null,
    color: color(few ? index : 0), steps, values: one.values, thin: many, opacity: few ? .85 : .4,
  }))];
}

const eachSeed = ({ num, seeds }) => num > seeds.length ? `${seeds.length} of ${counted(num)} seeds` : "each seed";

/** The lines of one run among several: all in one color. */
function runLines(curve, label, tone) {
  const { steps, seeds } = curve;
  const many = seeds.length > 1;
  const low = many ? curve.low : null;
  const main = { label, legend: label, color: tone, steps, values: curve.mean, low, high: curve.high };
  return [main, ...(many ? seeds : []).map((one) => ({
    label: `${label}, seed ${one.seed}`, color: tone, steps, values: one.values, thin: true, opacity: .4,
  }))];
}

const curveOf = (run, name) => run.curves.find((curve) => curve.name === name);
const referencesOf = (run, name) => Object.hasOwn(run.references, name) ? [run.references[name]] : [];

function metricChart(run, name, extra = {}) {
  const curve = curveOf(run, name);
  if (!curve) return null;
  const [title, unit, caption] = Object.hasOwn(METRICS, name) ? METRICS[name] : [name, "", "Not described."];
  return chart({
    title, unit, caption, lines: seedLines(curve), percent: name === "guarded", references: referencesOf(run, name),
    each: curve.each, plain: true, ...extra,
  });
}

/** The returns of a group of runs on one environment, and their comparison. */
function learning(group) {
  const runs = group.runs.map((index) => data.runs[index]);
  const title = data.groups.length > 1 ? `Learning curves on ${group.env}` : "Learning curves";
  const alone = runs[0].num_seeds === 1
    ? "One seed, so there is no interval" : "Every seed, their mean and its 95 % t-interval";
  const lead = runs.length > 1
    ? "Thick lines are means over seeds with their 95 % t-interval, thin lines the single seeds."
    : `${alone}. Move over a chart to read values.`;
  const grid = el("div", { class: "grid" }, ...returnCharts(runs));
  if (!grid.childElementCount) grid.append(el("p", { class: "card quiet wide" }, "No returns yet."));
  return [el("h2", {}, title), el("p", { class: "lead" }, lead), grid, ...(runs.length > 1 ? [comparison(group)] : [])];
}

function returnCharts(runs) {
  const lines = (pick) => runs.flatMap((run, index) => {
    const curve = pick(run);
    if (!curve) return [];
    return runs.length > 1 ? runLines(curve, run.name, color(index)) : seedLines(curve);
  });
  const common = { unit: "return per episode", height: 300, seeds: Math.min(...runs.map((run) => run.num_seeds)) };
  const rules = [...new Set(runs.flatMap((run) => run.evaluations.map((one) => one.rule)))];
  const training = lines((run) => curveOf(run, "return"));
  const each = Math.max(...runs.map((run) => curveOf(run, "return")?.each || 1));
  const charts = rules.map((rule) => chart({
    ...common, title: `Return in evaluation, rule ${rule}`, caption: "Whole episodes on seeds of their own.",
    lines: lines((run) => run.evaluations.find((one) => one.rule === rule)).map((line) => ({ ...line, marks: true })),
  }));
  if (training.length) charts.unshift(chart({
    ...common, title: "Return in training", caption: "Episodes that ended in each interval, with exploration.",
    lines: training, wide: rules.length !== 1, each,
  }));
  return charts;
}

function comparison(group) {
  const heads = [["run"], ["algorithm"], ["return", 1], ["95 % interval", 1], ["seeds", 1], ["at step", 1],
    ["against the first run", 1], [""]];
  const head = el("tr", {}, ...heads.map(([text, right]) => el("th", { class: right ? "number" : "" }, text)));
  const note = "Differences are of means over seeds, with Welch's 95 % interval; not corrected for the number of "
    + "comparisons.";
  return el("section", { class: "card scroll stack" }, el("h3", {}, `Comparison on ${group.env}`),
    el("table", { class: "compare" }, el("thead", {}, head), el("tbody", {}, ...group.comparison.map(comparisonRow))),
    el("p", { class: "quiet small" }, note));
}

function comparisonRow({ run, algo, final, difference, caution }) {
  const cell = (text, kind = "number") => el("td", { class: kind }, text);
  const verdict = !difference || !finite(difference.low) ? ""
    : difference.low > 0 ? "better" : difference.high < 0 ? "worse" : "no significant difference";
  const numbers = final
    ? [short(final.mean), interval(final) || "one seed", counted(final.num), counted(final.step)]
    : [NO_VALUE, NO_VALUE, NO_VALUE, NO_VALUE];
  const gap = difference
    ? `${difference.mean > 0 ? "+" : ""}${short(difference.mean)} ${interval(difference)}` : NO_VALUE;
  return el("tr", {}, cell(run, ""), cell(algo, ""), ...numbers.map((text) => cell(text)), cell(gap),
    cell([verdict, caution].filter(Boolean).join("; "), ""));
}

/** The charts of everything but the returns. */
function inside(run) {
  const grid = el("div", { class: "grid three" });
  const entropy = entropyChart(run);
  if (entropy) grid.append(entropy);
  for (const name of [...INSIDE, ...CRITIC]) {
    const node = metricChart(run, name, name === "alpha" && entropy ? { height: 276 } : {});
    if (node) grid.append(node);
  }
  const shown = new Set([...SPLIT.map(([name]) => name), ...INSIDE, ...CRITIC, "return"]);
  const others = run.curves.filter((curve) => !shown.has(curve.name)).map((curve) => metricChart(run, curve.name));
  if (others.length) grid.append(el("details", { class: "wide", on: { toggle: redraw } },
    el("summary", {}, `${others.length} more records`), el("div", { class: "grid three" }, ...others)));
  return grid;
}

function entropyChart(run) {
  const split = SPLIT.map(([name, label], index) => [curveOf(run, name), label, index]).filter(([curve]) => curve);
  if (split.length < 2) return metricChart(run, "entropy", { wide: "two" });
  const tone = (index) => index ? color(index - 1) : "var(--ink)";
  const lines = split.flatMap(([curve, label, index]) => runLines(curve, label, tone(index)));
  return chart({
    title: "Entropy and its parts", unit: "nats", wide: "two", height: 252, each: split[0][0].each,
    references: referencesOf(run, "entropy"), lines: lines.map((line) => ({ ...line, silent: line.thin })),
    caption: "total = start distribution + what its flow, if it has one, and the sampler add or take + what the squash "
      + "into the action box takes.",
  });
}
