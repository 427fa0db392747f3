// Lines and bands of a chart, as shapes.

/** The stretches of a line without a gap, as lists of indices. */
function pieces({ steps, values }) {
  const runs = [[]];
  steps.forEach((step, index) => {
    if (finite(values[index])) runs.at(-1).push(index);
    else if (runs.at(-1).length) runs.push([]);
  });
  return runs.filter((run) => run.length);
}

/** A line without its gaps; a value alone is a point, and a line of `marks` has a point at every value. */
function path(line, x, y) {
  const opacity = line.thin ? line.opacity || .75 : 1;
  return pieces(line).flatMap((indices) => {
    const places = indices.map((i) => [x(line.steps[i]), y(line.values[i])]);
    const alone = indices.length === 1;
    const marks = !alone && !line.marks ? [] : places.map(([cx, cy]) => shape("circle", {
      cx, cy, r: line.thin ? 2.5 : alone ? 4 : 3.2, "fill-opacity": opacity, class: "mark", style: { fill: line.color },
    }));
    if (alone) return marks;
    return [shape("polyline", {
      points: places.map((place) => place.map((value) => value.toFixed(1)).join(",")).join(" "), fill: "none",
      "stroke-width": line.thin ? 1.25 : 2.2, "stroke-linejoin": "round", "data-points": indices.length,
      "stroke-opacity": opacity, style: { stroke: line.color },
    }), ...marks];
  });
}

function band(line, x, y) {
  return pieces({ steps: line.steps, values: line.low }).map((indices) => {
    if (indices.length === 1) {
      const [at] = indices, across = x(line.steps[at]);
      return shape("line", {
        x1: across, x2: across, y1: y(line.low[at]), y2: y(line.high[at]), "stroke-width": 9, "stroke-opacity": .18,
        class: "band", style: { stroke: line.color },
      });
    }
    const bounded = (value) => Math.max(-9999, Math.min(9999, value)).toFixed(1);
    const edge = (values, order) => order.map((i) => `${x(line.steps[i]).toFixed(1)},${bounded(y(values[i]))}`);
    const points = [...edge(line.high, indices), ...edge(line.low, [...indices].reverse())].join(" ");
    return shape("polygon", { points, "fill-opacity": .15, class: "band", style: { fill: line.color } });
  });
}
