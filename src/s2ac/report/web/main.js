// The page: its sections, its theme, its keys, and new data while it is served.

let data = JSON.parse(document.getElementById("data").textContent);
const view = { run: 0, state: 0, dimensions: null };
const redraws = [];

function redraw() {
  for (const draw of redraws) draw();
}

function build() {
  const main = document.getElementById("main");
  const place = window.scrollY;
  const open = document.querySelector("details")?.open;
  redraws.length = 0;
  if (data.sweep) main.replaceChildren(...sweepSections(data.sweep));
  else {
    view.run = Math.min(view.run, data.runs.length - 1);
    titles();
    main.replaceChildren(...sections(data.runs[view.run]));
  }
  if (open && document.querySelector("details")) document.querySelector("details").open = true;
  redraw();
  window.scrollTo(0, place);
}

function titles() {
  const run = data.runs[view.run], several = data.runs.length > 1;
  const envs = data.groups.map((group) => group.env).join(", ");
  const title = several ? `${data.runs.length} runs on ${envs}` : `${run.algo} on ${run.env}`;
  document.title = `${title} · S²AC report`;
  document.getElementById("title").textContent = title;
  document.getElementById("subtitle").textContent =
    `${data.live ? "watched" : "made"} ${data.made} · s2ac ${data.version}${several ? "" : ` · ${run.path}`}`;
}

function sections(run) {
  const headed = (title, lead, content) => [el("h2", {}, title), el("p", { class: "lead" }, lead), content];
  const nodes = [el("div", { class: "stack" }, ...data.runs.map(runCard))];
  if (data.groups.length > 1) {
    const text = "These runs are on different environments: each has its own section, and nothing is averaged or "
      + "compared across them.";
    nodes.push(el("p", { class: "quiet small apart" }, text));
  }
  nodes.push(...data.groups.flatMap(learning));
  if (data.runs.length > 1) nodes.push(el("h2", {}, "One run in detail"), tabs());
  return [...nodes,
    ...headed("Inside the policy", run.curves.length
      ? "How random the policy is and why, and whether its sampler and its critic work as they should. "
        + "Colors are those of the seeds above; black or white is their mean."
      : "Nothing has been recorded yet.", inside(run)),
    ...headed("Action clouds", run.clouds?.set > 1
      ? "What the policy executes at single states, beside the particles that it chooses from, and what the critic "
        + "thinks of them."
      : "What the policy executes at single states, and what the critic thinks of it.", clouds(run)),
    ...headed("Settings", "Everything that it takes to make this run again.", settings(run)),
    el("footer", {}, "One file, no external address: it can be sent and opened anywhere. "
      + "Intervals are 95 % Student t-intervals over seeds."),
  ];
}

function tabs() {
  const choose = (index) => {
    view.run = index;
    view.state = 0;
    build();
  };
  return el("div", { class: "tabs row" }, ...data.runs.map((one, index) => el("button", {
    type: "button", "aria-pressed": String(index === view.run), title: one.path, on: { click: () => choose(index) },
  }, one.name)));
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

/** The page of `s2ac watch` asks for new data, and rests a hundred times as long as that took on either side. */
function live() {
  const pill = document.getElementById("live");
  const say = (text, tone) => {
    pill.hidden = false;
    pill.textContent = text;
    pill.className = `pill ${tone}`;
  };
  let rest = data.wait;
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
      const running = data.runs[0].state === "running";
      say(running ? "live" : `run ${data.runs[0].state}`, running ? "good" : "note");
    } catch {
      wait = Math.max(10, wait);
      say("no answer: start s2ac watch again", "bad");
    }
    setTimeout(poll, 1000 * (document.hidden ? Math.max(30, wait) : wait));
  }
  say("live", "good");
  setTimeout(poll, 1000 * rest);
}

theme();
keys();
build();
let pending = 0;
addEventListener("resize", () => {
  cancelAnimationFrame(pending);
  pending = requestAnimationFrame(redraw);
});
if (data.live) live();
document.documentElement.dataset.ready = "yes";
