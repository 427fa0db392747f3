// Action clouds: what the policy does at single states, one at a time.

const VIRIDIS = [
  [68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129], [92, 200, 99],
  [170, 220, 50], [253, 231, 37],
];
const EXECUTED = "#ff7a45", PARTICLE = "#ffffff", EDGE = "#30343b";

const axisName = (index) => `action ${index + 1}`;

/** The color of a share between 0 and 1. */
function ramp(share) {
  const at = Math.max(0, Math.min(1, share)) * (VIRIDIS.length - 1);
  const [a, b] = [VIRIDIS[Math.floor(at)], VIRIDIS[Math.ceil(at)]];
  return `rgb(${a.map((value, index) => Math.round(value + (b[index] - value) * (at - Math.floor(at)))).join(",")})`;
}

function clouds(run) {
  const cloud = run.clouds;
  if (!cloud) return el("section", { class: "card" }, el("p", { class: "quiet" }, run.no_clouds));
  view.state = Math.min(view.state, cloud.states.length - 1);
  const number = el("output", { id: "state-number" });
  const button = (id, text, by) => el("button", { type: "button", id, on: { click: () => turn(by) } }, text);
  const keys = el("span", { class: "quiet small" }, "or the keys ", el("kbd", {}, "←"), " ", el("kbd", {}, "→"));
  const plot = el("div", { class: "plot" });
  const side = el("div");
  const tip = el("div", { class: "tip", hidden: "" });
  const card = el("section", { class: "card", id: "clouds" },
    el("div", { class: "pager" }, button("previous", "← previous", -1), number, button("next", "next →", 1), keys),
    el("div", { class: `cloud ${cloud.low.length > 2 ? "pairs" : ""}` }, plot, side));

  function turn(by) {
    view.state = (view.state + by + cloud.states.length) % cloud.states.length;
    draw();
  }
  function draw() {
    const state = cloud.states[view.state];
    number.textContent = `state ${view.state + 1} of ${cloud.states.length}`;
    tip.hidden = true;
    const drawing = { 1: oneAction, 2: twoActions }[cloud.low.length] || manyActions;
    plot.replaceChildren(...drawing(cloud, state, plot, tip, draw), tip);
    side.replaceChildren(...beside(cloud, state));
  }
  card.turn = turn;
  redraws.push(draw);
  return card;
}

/** What is drawn at a state: the particles that a policy proposes, if it does, then the actions that are executed. */
function samplesOf(state) {
  const { particles = [], q = [], log_prob = [], executed, executed_q = [] } = state;
  return [...particles.map((action, index) => ({ kind: "particle", action, q: q[index], log_prob: log_prob[index] })),
    ...executed.map((action, index) => ({ kind: "executed", action, q: executed_q[index] }))];
}

/** What there is to say of one of them: its action, its Q and its density. */
function sampleRows({ action, q, log_prob }) {
  const rows = action.map((value, axis) => ["", axisName(axis), short(value, 3)]);
  if (finite(q)) rows.push(["", "Q", short(q)]);
  if (finite(log_prob)) rows.push(["", "log π", short(log_prob, 3)]);
  return rows;
}

/** What is beside the picture: the state's numbers, the legend and the map. */
function beside(cloud, state) {
  const about = `Seed ${cloud.seed}, checkpoint of step ${counted(cloud.step)}, rule ${cloud.rule}. The states are `
    + "those that the policy met in evaluation episodes, and one of the actions is the one that it took there.";
  const facts = stateFacts(state).flatMap(([name, text]) => [el("dt", {}, name), el("dd", {}, text)]);
  return [el("h3", {}, "This state"), el("dl", { class: "facts" }, ...facts), cloudLegend(cloud, state),
    ...(cloud.paths ? [pathMap(cloud, state)] : []), el("p", { class: "quiet small" }, about)];
}

function stateFacts(state) {
  const mean = (values) => values && values.every(finite) ? values.reduce((a, b) => a + b, 0) / values.length : null;
  const values = state.observation.slice(0, 24).map((value) => short(value, 3)).join(", ");
  const more = state.observation.length > 24 ? `, … ${state.observation.length} values` : "";
  const facts = [["where", `episode ${state.episode + 1}, step ${state.time}`], ["observation", `(${values}${more})`],
    [state.particles ? "entropy of a particle" : "entropy here",
      finite(state.entropy) ? `${short(state.entropy, 3)} nats` : "not known"]];
  for (const [name, q] of [["Q of executed actions", state.executed_q], ["Q of particles", state.q]]) {
    const [low, high] = extent(q || []);
    if (finite(low)) facts.push([name, `${short(low)} to ${short(high)}, mean ${short(mean(q))}`]);
  }
  return facts;
}

function cloudLegend(cloud, state) {
  const mark = (tone, edge, text) => {
    const entry = legendEntry("dot", tone, text);
    entry.firstChild.style.boxShadow = `0 0 0 1.5px ${edge}`;
    return entry;
  };
  const num = state.executed.length;
  const entries = cloud.low.length > 2 && state.executed_q
    ? [mark(ramp(.9), "transparent", `executed: ${num} draws, high Q`), mark(ramp(.1), "transparent", "low Q")]
    : [mark(cloud.low.length > 2 ? "var(--c1)" : EXECUTED, "transparent", `executed: ${num} draws`)];
  if (state.particles) {
    const text = `proposed: ${state.particles.length} particles, of each ${cloud.set} one is executed`;
    entries.push(mark(PARTICLE, EDGE, text));
  }
  return el("div", { class: "legend" }, ...entries);
}

/** Where the state is among the paths of the episodes, for observations of two dimensions. */
function pathMap(cloud, state) {
  const size = 250, pad = 12;
  const points = cloud.paths.flat();
  const [x0, x1] = extent(points.map((point) => point[0]));
  const [y0, y1] = extent(points.map((point) => point[1]));
  const unit = (size - 2 * pad) / (Math.max(x1 - x0, y1 - y0) || 1); // pixels, the same along both axes
  const [width, height] = [2 * pad + (x1 - x0) * unit, 2 * pad + (y1 - y0) * unit];
  const place = (point) => [pad + (point[0] - x0) * unit, pad + (y1 - point[1]) * unit];
  const svg = shape("svg", {
    viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Paths of the evaluation episodes",
    style: { maxWidth: `${width}px` },
  });
  cloud.paths.forEach((one, index) => {
    const own = index === state.episode;
    svg.append(shape("polyline", {
      points: one.map((point) => place(point).map((value) => value.toFixed(1)).join(",")).join(" "), fill: "none",
      "stroke-width": own ? 2.2 : 1.1, "stroke-opacity": own ? 1 : .45,
      style: { stroke: own ? "var(--accent)" : "var(--faint)" },
    }));
  });
  const [cx, cy] = place(state.observation);
  svg.append(shape("circle", { cx, cy, r: 5.5, "stroke-width": 2, style: { fill: EXECUTED, stroke: "var(--card)" } }));
  return el("div", { class: "map" }, el("p", { class: "small quiet" }, "Where it is among the episodes' paths:"), svg);
}
