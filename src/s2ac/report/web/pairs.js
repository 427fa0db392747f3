// Actions of three coordinates and more: a plot of every pair of some of them.

const MOST_DIMENSIONS = 5;

function manyActions(cloud, state, plot, tip, draw) {
  const dimension = cloud.low.length;
  if (!view.dimensions || view.dimensions.some((axis) => axis >= dimension)) {
    view.dimensions = [...Array(Math.min(dimension, MOST_DIMENSIONS)).keys()];
  }
  const chosen = [...view.dimensions].sort((a, b) => a - b);
  const width = Math.max(260, plot.clientWidth || 700), left = 44, bottom = 38, top = 6, gap = 16;
  const size = (width - left - 6 - gap * (chosen.length - 1)) / chosen.length;
  const height = top + bottom + size * chosen.length + gap * (chosen.length - 1);
  const svg = picture(width, height, "Executed actions, by pairs of coordinates", { "data-cloud": "pairs" });
  const place = (index, first) => first + index * (size + gap);
  chosen.forEach((vertical, row) => chosen.slice(0, row + 1).forEach((across, column) => {
    const [x0, y0] = [place(column, left), place(row, top)];
    svg.append(shape("rect", { x: x0, y: y0, width: size, height: size, fill: "none", class: "axis", rx: 3 }));
    svg.append(...(column === row
      ? bars(cloud, state, across, x0, y0, size) : dots(cloud, state, across, vertical, x0, y0, size)));
    if (row === chosen.length - 1) svg.append(...below(cloud, across, x0, y0 + size, size));
    if (column === 0) svg.append(...[[cloud.high, 11], [cloud.low, size - 2]].map(([ends, down]) =>
      shape("text", { x: left - 6, y: y0 + down, "text-anchor": "end" }, short(ends[vertical], 2))));
  }));
  const chips = dimension > MOST_DIMENSIONS ? chipsOf(dimension, draw) : el("div");
  return [el("h3", {}, "Actions, two coordinates at a time, colored by Q"), chips, svg];
}

const shareOf = (cloud, axis, value) => (value - cloud.low[axis]) / (cloud.high[axis] - cloud.low[axis]);

/** A histogram of one executed action. */
function bars(cloud, state, axis, x0, y0, size) {
  const bins = 16, counts = histogram(state.executed.map((point) => shareOf(cloud, axis, point[axis])), bins);
  const tall = (size - 22) / Math.max(...counts), cell = (size - 4) / bins;
  return [...counts.map((count, index) => shape("rect", {
    x: x0 + 2 + index * cell, width: cell - 1, y: y0 + size - 1 - count * tall, height: count * tall,
    "fill-opacity": .55, style: { fill: "var(--c0)" },
  })), shape("text", { x: x0 + 6, y: y0 + 14 }, axisName(axis))];
}

/** Particles and executed actions by two of their coordinates, executed ones of high Q above the others. */
function dots(cloud, state, across, vertical, x0, y0, size) {
  const [low, high] = extent(state.executed_q || []);
  const rank = ({ kind, q }) => kind === "executed" ? (finite(q) ? q : 0) : -Infinity;
  return samplesOf(state).sort((a, b) => rank(a) === rank(b) ? 0 : rank(a) - rank(b)).map((sample) => {
    const executed = sample.kind === "executed";
    const tone = finite(sample.q) && finite(low) ? ramp((sample.q - low) / (high - low || 1)) : "var(--c1)";
    const dot = shape("circle", {
      cx: x0 + 3 + shareOf(cloud, across, sample.action[across]) * (size - 6),
      cy: y0 + size - 3 - shareOf(cloud, vertical, sample.action[vertical]) * (size - 6),
      r: executed ? 2.9 : 2.3, class: sample.kind, "stroke-width": .7, "fill-opacity": .9,
      style: executed ? { fill: tone } : { fill: "var(--card)", stroke: "var(--faint)" },
    });
    dot.append(shape("title", {}, sampleRows(sample).map(([, name, text]) => `${name}: ${text}`).join("\n")));
    return dot;
  });
}

/** The ends of the box and the name of an action, below its column. */
function below(cloud, axis, x0, y0, size) {
  const text = (words, x, down, anchor) => shape("text", { x, y: y0 + down, "text-anchor": anchor }, words);
  return [text(short(cloud.low[axis], 2), x0, 15, "start"), text(short(cloud.high[axis], 2), x0 + size, 15, "end"),
    text(axisName(axis), x0 + size / 2, 31, "middle")];
}

/** Buttons that choose the actions. */
function chipsOf(dimension, draw) {
  const choose = (axis) => {
    const without = view.dimensions.filter((one) => one !== axis);
    const added = [...view.dimensions, axis].slice(-MOST_DIMENSIONS);
    view.dimensions = without.length < view.dimensions.length ? without : added;
    if (!view.dimensions.length) view.dimensions = [axis];
    draw();
  };
  return el("div", { class: "row chips" }, ...[...Array(dimension).keys()].map((axis) => el("button", {
    type: "button", "aria-pressed": String(view.dimensions.includes(axis)), on: { click: () => choose(axis) },
  }, String(axis + 1))));
}
