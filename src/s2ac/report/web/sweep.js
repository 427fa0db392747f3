// The page of a sweep: curves of the best settings, parallel coordinates of all, and every run and seed in a table.

function sweepSections(sweep) {
  const { counts, total, envs } = sweep;
  const title = `Sweep of ${counted(total)} runs on ${envs.map(({ env }) => env).join(", ")}`;
  document.title = `${title} · S²AC report`;
  document.getElementById("title").textContent = title;
  document.getElementById("subtitle").textContent = `made ${data.made} · s2ac ${data.version} · ${sweep.path}`;
  const stat = (name, value) => el("div", { class: "stat" }, el("dt", {}, name), el("dd", {}, value));
  const best = envs.filter(({ groups }) => groups.length).map(({ env, groups }) =>
    stat(`best on ${env}`, el("span", {}, short(groups[0].mean), el("small", {}, groups[0].name))));
  return [
    el("section", { class: "card" }, el("dl", { class: "stats" }, stat("done", `${counts.done} of ${total}`),
      stat("failed", counted(counts.failed)), ...best)),
    ...envs.flatMap((one) => sweepEnvironment(one, sweep.fields)),
    el("h2", {}, "Runs"),
    el("p", { class: "lead" }, "A row for each run and seed, the highest return first; results.csv has the same."
      + (sweep.more ? ` ${counted(sweep.more)} further rows are left out here.` : "")),
    sweepTable(sweep),
  ];
}

function sweepEnvironment({ env, groups }, fields) {
  if (!groups.length) return [el("h2", {}, env), el("p", { class: "lead" }, "No returns yet.")];
  const drawn = groups.filter((group) => group.curve);
  const left = groups.length > drawn.length ? ` The best ${drawn.length} of ${counted(groups.length)}.` : "";
  const lines = drawn.flatMap((group, index) => runLines(group.curve, group.name, color(index)))
    .map((line) => ({ ...line, marks: !line.thin, silent: line.thin }));
  return [el("h2", {}, env),
    el("p", { class: "lead" }, "Return in evaluation, mean over the seeds that have one."),
    el("div", { class: "grid" },
      chart({ title: "Learning curves", unit: "return per episode", wide: true, height: 320, lines,
        seeds: Math.min(...drawn.map((group) => group.curve.num)), caption: `Whole episodes on seeds of their own.${left}` }),
      parallel(env, groups, ["algo", ...fields]))];
}

/** Where a value lies on an axis, as a share, and its ticks: numbers on a line (logarithmic where they span a factor of
 *  20), anything else at equal distances. */
function coordinate(name, values) {
  const there = values.filter((value) => value !== "");
  if (!there.length || !there.every(finite)) {
    const kinds = [...new Set(there)].sort();
    const at = (value) => kinds.length > 1 ? kinds.indexOf(value) / (kinds.length - 1) : .5;
    return { name, at, ticks: kinds.map((kind) => [at(kind), kind]) };
  }
  const [low, high] = extent(there), log = low > 0 && high / low >= 20, map = log ? Math.log : (value) => value;
  const at = (value) => high > low ? (map(value) - map(low)) / (map(high) - map(low)) : .5;
  const few = [...new Set(there)].sort((a, b) => a - b);
  const marks = few.length <= 6 ? few : log ? [low, Math.sqrt(low * high), high] : ticks(low, high, 5)[0];
  return { name: log ? `${name} (log)` : name, at, ticks: marks.map((value) => [at(value), short(value, 3)]) };
}

/** A line for each setting across an axis for each thing that was chosen, colored by its return. */
function parallel(env, groups, fields) {
  const columns = [...fields.map((name, index) => [name, groups.map((group) => group.values[index])]),
    ["return", groups.map((group) => group.mean)]].filter(([, values]) => new Set(values).size > 1);
  const axes = columns.map(([name, values]) => ({ ...coordinate(name, values), values }));
  const card = el("section", { class: "card wide", "data-chart": "parallel" }, el("h3", {}, "What was chosen, and what it gave"));
  if (axes.length < 2) return null;
  const holder = el("div");
  card.append(el("p", { class: "caption" }, "A line for each setting, mean over seeds; yellow is the highest return. "
    + "Point at a line to read it."), holder);
  redraws.push(() => {
    const width = Math.max(300, holder.clientWidth || 900), height = 300, top = 34, bottom = 14, side = 60;
    const svg = picture(width, height, `Parallel coordinates on ${env}`, { "data-lines": groups.length });
    const x = (index) => side + index * (width - 2 * side) / (axes.length - 1);
    const y = (share) => height - bottom - share * (height - top - bottom);
    const rank = axes.at(-1).name.startsWith("return") ? axes.at(-1) : { at: () => .5, values: groups.map(() => 0) };
    [...groups.keys()].reverse().forEach((index) => {
      const places = axes.map((axis, i) => axis.values[index] === "" ? null : `${x(i).toFixed(1)},${y(axis.at(axis.values[index])).toFixed(1)}`);
      const line = shape("polyline", { points: places.filter(Boolean).join(" "), fill: "none", "stroke-width": 2,
        "stroke-opacity": .8, style: { stroke: ramp(rank.at(rank.values[index])) } });
      line.append(shape("title", {}, `${groups[index].name}: ${short(groups[index].mean)}`));
      svg.append(line);
    });
    axes.forEach((axis, i) => {
      svg.append(shape("line", { x1: x(i), x2: x(i), y1: y(0), y2: y(1), class: "axis" }),
        shape("text", { x: x(i), y: 16, "text-anchor": "middle" }, axis.name),
        ...axis.ticks.map(([share, text]) => shape("text", { x: x(i) + 6, y: y(share) + 4, class: "halo" }, text)));
    });
    holder.replaceChildren(svg);
  });
  return card;
}

function sweepTable({ fields, rows }) {
  const cell = (text, kind = "") => el("td", { class: kind }, text);
  const number = (value) => cell(finite(value) ? short(value) : NO_VALUE, "number");
  const heads = ["env", "algo", ...fields, "seed", "step", "return", "status"];
  return el("section", { class: "card scroll" }, el("table", { class: "compare" },
    el("thead", {}, el("tr", {}, ...heads.map((text) => el("th", {}, text)))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, cell(row.env), cell(row.algo), ...row.chosen.map((text) => cell(text)),
      cell(String(row.seed), "number"), number(row.step), number(row.return), cell([row.status, row.reason].filter(Boolean).join(": ")))))));
}
