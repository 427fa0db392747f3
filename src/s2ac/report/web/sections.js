// The cards without charts: a run at a glance, its settings and its versions.

function runCard(run) {
  const [tone, words] = {
    running: ["good", "running"], done: ["note", "finished"], stopped: ["warn", "stopped before its end"],
    empty: ["warn", "no records yet"],
  }[run.state];
  const verdict = (level, title, text) => el("div", { class: `verdict ${level}` }, title, el("span", {}, text));
  return el("section", { class: "card", "data-run": run.name },
    el("div", { class: "run-head" }, el("h3", {}, `${run.name} · ${run.algo} on ${run.env}`),
      el("span", { class: `pill ${tone}` }, words)),
    el("dl", { class: "stats" }, ...stats(run)),
    ...run.judged.flatMap(([title, found]) => [el("h4", {}, title),
      ...found.map((one) => verdict(one.level, el("b", {}, one.title), one.text))]),
    ...run.notes.map((text) => verdict("note", null, text)));
}

function stats(run) {
  const stat = (name, value, small) => el("div", { class: "stat" }, el("dt", {}, name),
    el("dd", {}, value, small ? el("small", {}, small) : null));
  const newest = (name, digits) => short(curveOf(run, name)?.mean.filter(finite).at(-1) ?? null, digits);
  const last = run.final;
  const what = last && last.kind !== "train" ? "newest evaluation's return" : "newest return in training";
  const range = last && interval(last) ? `95 % ${interval(last)}, ` : "";
  const names = `${run.seeds.join(", ")}${run.num_seeds > run.seeds.length ? ", …" : ""}`;
  const size = "effective_sample_size", among = referencesOf(run, size).map(([num]) => `of ${short(num)} particles`);
  return [
    stat(what, last ? short(last.mean) : NO_VALUE, last ? `${range}step ${counted(last.step)}` : "no record"),
    stat("environment steps", counted(run.done), run.total ? `of ${counted(run.total)} per seed` : null),
    stat("seeds", counted(run.num_seeds), run.num_seeds ? names : null),
    ...(curveOf(run, size) ? [stat("effective sample size", newest(size, 3), among[0])] : []),
    stat("speed", newest("wall_steps_per_second"), "steps/s, all seeds together"),
  ];
}

function settings(run) {
  const copied = el("span", { class: "quiet small" });
  const text = el("div", { class: "command mono", id: "command", tabindex: "0" }, run.command);
  const copy = el("button", { type: "button", on: { click: async () => {
    try {
      await navigator.clipboard.writeText(run.command);
      copied.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(text);
      copied.textContent = "selected: press Ctrl-C";
    }
  } } }, "Copy");
  const made = [["directory", run.path], ["report made by", `s2ac ${data.version}`]];
  return el("div", { class: "grid from-top" },
    el("section", { class: "card wide" },
      el("div", { class: "row" }, el("h3", {}, "How to make this run again"), copy, copied), text),
    table("Algorithm", run.config.algorithm),
    el("div", { class: "stacked" }, table("Run", run.config.run),
      table("Versions and machine", [...Object.entries(run.versions), ...made])));
}

function table(title, rows) {
  const row = ([name, value]) => el("tr", {}, el("td", {}, name), el("td", { class: "mono" }, value));
  return el("section", { class: "card" }, el("h3", {}, title), el("table", {}, el("tbody", {}, ...rows.map(row))));
}
