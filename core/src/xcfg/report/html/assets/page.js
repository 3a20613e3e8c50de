"use strict";
/* Selectors and what they show. Charts are drawn again when one is changed, the window resized or the scheme turned. */
const drawn = new Map();

function draw(place, options, clicked) {
  const chart = drawn.get(place) || echarts.init(place, null, { renderer: "canvas" });
  drawn.set(place, chart);
  chart.setOption(options, true);
  chart.off("click");
  if (clicked) chart.on("click", clicked);
}

function selector(form, label, choices, chosen) {
  const holder = document.createElement("label");
  const select = document.createElement("select");
  holder.append(`${label} `, select);
  choices.forEach((text, index) => select.add(new Option(text, index, false, index === chosen)));
  select.addEventListener("change", () => { part(select); showMap(); });
  form.append(holder);
  return select;
}

/* The two axes of the map stay two: who takes the other's gives it the one that is free. */
function part(changed) {
  const other = changed === picks.across ? picks.down : changed === picks.down ? picks.across : null;
  if (other && other.value === changed.value) other.value = shown.find((value) => value !== changed.value);
  shown = [picks.across.value, picks.down.value];
}

const form = document.getElementById("axes");
const picks = {};
let shown = [];
if (form) {
  const names = DATA.axes.map((axis) => axis.name);
  picks.across = selector(form, "Across", names, 0);
  picks.down = selector(form, "Down", names, 1);
  picks.metric = selector(form, "Metric", DATA.metrics, Math.max(DATA.metrics.indexOf("max_abs_dlogp"), 0));
  shown = [picks.across.value, picks.down.value];
  picks.others = DATA.axes.map((axis) => selector(form, axis.name, axis.values, 0));
}

function showMap() {
  if (!form) return;
  const [across, down] = [Number(picks.across.value), Number(picks.down.value)];
  const metric = DATA.metrics[Number(picks.metric.value)];
  picks.others.forEach((select, axis) => { select.parentElement.hidden = axis === across || axis === down; });
  const fits = (item) => item.place.every(
    (value, axis) => axis === across || axis === down || value === Number(picks.others[axis].value));
  const found = DATA.cases.map((item, index) => ({ item, index })).filter(
    ({ item }) => metric in item.metrics && item.metrics[metric] !== null && fits(item));
  const cells = found.map(({ item, index }) => [item.place[across], item.place[down], item.metrics[metric], index]);
  const numbers = cells.map((cell) => cell[2]);
  const reach = [Math.min(0, ...numbers), Math.max(0, ...numbers)];
  draw(document.getElementById("heat"), heat(DATA.axes[across], DATA.axes[down], cells, reach),
    (event) => choose(event.value[3]));
  const rows = cells.map((cell) => [DATA.axes[across].values[cell[0]], DATA.axes[down].values[cell[1]], cell[2],
    DATA.cases[cell[3]].status, DATA.cases[cell[3]].id.slice(0, 8)]);
  const headings = [DATA.axes[across].name, DATA.axes[down].name, metric, "status", "case"];
  document.getElementById("heat-table").replaceChildren(table(headings, rows, "Heat map as a table"));
}

function figure(title, options, headings, rows) {
  const made = document.createElement("figure");
  const caption = document.createElement("figcaption");
  caption.textContent = title;
  const place = document.createElement("div");
  place.className = "chart";
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", title);
  const details = document.createElement("details");
  const summary = document.createElement("summary");
  summary.textContent = rows.length > ROWS ? `The first ${ROWS} of ${rows.length} as a table` : "The same as a table";
  const holder = document.createElement("div");
  holder.className = "wide";
  holder.tabIndex = 0;
  holder.setAttribute("role", "region");
  holder.setAttribute("aria-label", `${title}, as a table`);
  holder.append(table(headings, rows.slice(0, ROWS), title));
  details.append(summary, holder);
  made.append(caption, place, details);
  return [made, place, options];
}

function showCase() {
  const item = DATA.cases[Number(choice.value)];
  if (!item) return;
  const fill = (name, ...nodes) => document.getElementById(name).replaceChildren(...nodes);
  fill("reason", item.reason);
  const held = item.tokens;
  fill("drawn", held ? `${held.drawn} of ${held.all} tokens drawn, the largest d among them`
    + (held.not_finite ? `; ${held.not_finite} have no finite d` : "") : "Nothing was compared.");
  const places = document.getElementById("charts");
  for (const place of places.querySelectorAll(".chart")) { drawn.get(place)?.dispose(); drawn.delete(place); }
  const figures = held ? charts(held, item.ranks).map((parts) => figure(...parts)) : [];
  places.replaceChildren(...figures.map((parts) => parts[0]));
  for (const [, place, options] of figures) draw(place, options);
  fill("worst", table(["sequence", "position", "token", "text", "rollout", "training", "d"], item.worst, "Worst tokens"));
  fill("knobs", table(["knob", "side", "requested", "materialized", "observed", "state"], item.knobs, "Knobs"));
  const cost = Object.entries(item.measured).map(([side, spent]) => [side, spent.build_s, spent.score_s, spent.tokens_per_s,
    Object.values(spent.peak_bytes).reduce((sum, bytes) => sum + bytes, 0) / 2 ** 30]);
  fill("cost", table(["side", "seconds to build", "seconds to score", "tokens a second", "peak GiB"], cost, "Cost"));
  fill("reproduce", item.reproduce);
}

function choose(index) {
  choice.value = String(index);
  showCase();
  document.getElementById("case").focus();
}

const choice = document.getElementById("choice");
choice.addEventListener("change", showCase);
for (const link of document.querySelectorAll("a[data-case]")) {
  link.addEventListener("click", () => choose(Number(link.dataset.case)));
}
const showAll = () => { showMap(); showCase(); };
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showAll);
addEventListener("resize", () => drawn.forEach((chart) => chart.resize()));
showAll();
