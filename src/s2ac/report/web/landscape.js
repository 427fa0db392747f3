// The Q-landscape of one or two actions, with what is executed and what is proposed on it.

/** The place nearest to the pointer within reach; −1 if there is none. */
function nearest(points, px, py, reach) {
  let best = -1, least = reach * reach;
  points.forEach(([x, y], index) => {
    const d = (x - px) ** 2 + (y - py) ** 2;
    if (d <= least) { least = d; best = index; }
  });
  return best;
}

/** Tell the sample under the pointer, or else what `ground` says of the place: [head, rows], or null. */
function telling(svg, plot, tip, samples, places, ground) {
  svg.addEventListener("pointermove", (event) => {
    const [px, py] = pointer(event, svg);
    const sample = samples[nearest(places, px, py, 9)];
    const found = sample ? [sample.kind, sampleRows(sample)] : ground(px, py);
    if (found) showTip(tip, plot, event, ...found, "");
    else tip.hidden = true;
  });
  svg.addEventListener("pointerleave", () => { tip.hidden = true; });
}

/** A sample as a dot: executed actions stand out from the particles. */
function dotOf({ kind }, [cx, cy]) {
  const look = kind === "executed"
    ? { r: 4.2, fill: EXECUTED, "fill-opacity": .9, stroke: "#ffffff", "stroke-width": 1.1 }
    : { r: 3, fill: PARTICLE, "fill-opacity": .8, stroke: EDGE, "stroke-width": .8 };
  return shape("circle", { cx, cy, class: kind, ...look });
}

function twoActions(cloud, state, plot, tip) {
  const width = Math.max(260, plot.clientWidth || 520), left = 50, bottom = 40, top = 8, bar = state.grid ? 74 : 10;
  const size = width - left - bar, height = size + top + bottom;
  const svg = picture(width, height, "Q over the two actions, with what is executed", { "data-cloud": "landscape" });
  const [reachX, reachY] = [0, 1].map((axis) => cloud.high[axis] - cloud.low[axis]);
  const x = (value) => left + (value - cloud.low[0]) / reachX * size;
  const y = (value) => top + (cloud.high[1] - value) / reachY * size;
  if (state.grid) svg.append(...heatMap(state.grid, left, top, size));
  else svg.append(shape("rect", { x: left, y: top, width: size, height: size, class: "axis", fill: "none" }));
  const [[xTicks, xStep], [yTicks, yStep]] = [0, 1].map((axis) => ticks(cloud.low[axis], cloud.high[axis], 5));
  const text = (words, attributes) => svg.append(shape("text", attributes, words));
  const middle = { "text-anchor": "middle" }, end = { "text-anchor": "end" };
  for (const value of xTicks) text(tickText(value, xStep), { x: x(value), y: top + size + 17, ...middle });
  for (const value of yTicks) text(tickText(value, yStep), { x: left - 8, y: y(value) + 4, ...end });
  text(axisName(0), { x: left + size / 2, y: height - 5, ...middle });
  text(axisName(1), { transform: `translate(12 ${top + size / 2}) rotate(-90)`, ...middle });
  const samples = samplesOf(state), places = samples.map(({ action: [a, b] }) => [x(a), y(b)]);
  svg.append(...samples.map((sample, index) => dotOf(sample, places[index])));
  telling(svg, plot, tip, samples, places, (px, py) => {
    const across = (px - left) / size, up = 1 - (py - top) / size;
    if (!state.grid || across < 0 || across >= 1 || up < 0 || up >= 1) return null;
    const side = Math.round(Math.sqrt(state.grid.length));
    const here = [cloud.low[0] + across * reachX, cloud.low[1] + up * reachY];
    const value = state.grid[Math.floor(up * side) * side + Math.floor(across * side)];
    return [`Q ${short(value)}`, here.map((one, axis) => ["", axisName(axis), short(one, 2)])];
  });
  return [el("h3", {}, state.grid ? "Actions on the Q-landscape" : "Actions"), svg];
}

/** A square of colored cells, the first coordinate running fastest, and the bar that says what the colors mean. */
function heatMap(grid, left, top, size) {
  const side = Math.round(Math.sqrt(grid.length));
  const [low, high] = extent(grid);
  const cell = size / side, [width, height] = [(cell + .3).toFixed(2), (cell + .3).toFixed(2)];
  const heat = shape("g", { "shape-rendering": "crispEdges", "data-cells": grid.length });
  grid.forEach((value, index) => heat.append(shape("rect", {
    x: (left + (index % side) * cell).toFixed(2), y: (top + (side - 1 - Math.floor(index / side)) * cell).toFixed(2),
    width, height, fill: ramp((value - low) / (high - low || 1)),
  })));
  const bar = [...Array(40).keys()].map((i) => shape("rect", {
    x: left + size + 16, y: top + (39 - i) * size / 40, width: 12, height: size / 40 + .5, fill: ramp(i / 39),
  }));
  const labels = [[9, short(high, 3)], [size, short(low, 3)], [size / 2 + 4, "Q"]];
  return [heat, ...bar, ...labels.map(([at, text]) => shape("text", { x: left + size + 33, y: top + at }, text))];
}

function oneAction(cloud, state, plot, tip) {
  const width = Math.max(260, plot.clientWidth || 520), height = 330, left = 56, right = 12, bottom = 40, strip = 84;
  const svg = picture(width, height, "Q over the action, with what is executed", { "data-cloud": "curve" });
  const across = width - left - right, reach = cloud.high[0] - cloud.low[0];
  const share = (value) => (value - cloud.low[0]) / reach;
  const x = (value) => left + share(value) * across;
  const base = height - bottom - strip, floor = height - bottom;
  if (state.grid) svg.append(...valueCurve(state.grid, left, across, base));
  const bins = 40, counts = histogram(state.executed.map(([value]) => share(value)), bins);
  const tall = (strip - 30) / Math.max(...counts);
  counts.forEach((count, index) => svg.append(shape("rect", {
    x: left + index * across / bins + .5, width: across / bins - 1, y: floor - count * tall, height: count * tall,
    "fill-opacity": .75, style: { fill: "var(--c1)" },
  })));
  const samples = samplesOf(state);
  const places = samples.map(({ kind, action: [value] }) => [x(value), base + (kind === "executed" ? 20 : 8)]);
  svg.append(...samples.map((sample, index) => dotOf(sample, places[index])));
  svg.append(shape("line", { class: "axis", x1: left, x2: width - right, y1: floor, y2: floor }));
  const [columns, step] = ticks(cloud.low[0], cloud.high[0], 6);
  const text = (words, at, down) => svg.append(shape("text", { x: at, y: down, "text-anchor": "middle" }, words));
  for (const value of columns) text(tickText(value, step), x(value), floor + 17);
  text(axisName(0), left + across / 2, height - 5);
  telling(svg, plot, tip, samples, places, (px) => {
    const at = (px - left) / across;
    if (!state.grid || at < 0 || at > 1) return null;
    const value = state.grid[Math.round(at * (state.grid.length - 1))];
    return [`Q ${short(value)}`, [["", axisName(0), short(cloud.low[0] + at * reach, 3)]]];
  });
  return [el("h3", {}, state.grid ? "Q over the action, and what is executed" : "Actions"), svg];
}

/** Q over one action, with its axis. */
function valueCurve(grid, left, across, base) {
  const top = 12;
  let [low, high] = extent(grid);
  const margin = (high - low) * .06 || 1;
  low -= margin; high += margin;
  const y = (value) => top + (high - value) / (high - low) * (base - top);
  const [rows, step] = ticks(low, high, 4);
  const x = (index) => left + index / (grid.length - 1) * across;
  const points = grid.map((value, index) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  return [
    ...rows.flatMap((value) => [
      shape("line", { class: "grid-line", x1: left, x2: left + across, y1: y(value), y2: y(value) }),
      shape("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, tickText(value, step)),
    ]),
    shape("polyline", { points, fill: "none", "stroke-width": 2.2, style: { stroke: "var(--accent)" } }),
  ];
}
