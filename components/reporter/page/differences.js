// The rows on which two models differ: sorted, filtered, and drawn a few at a time.

import { make } from "./dom.js";
import { drawMap } from "./maps.js";
import "./theme.js";

const PAGE_SIZE = 25;
const { names, contract, metrics, slices, rows } = JSON.parse(document.getElementById("data").textContent);
const form = document.getElementById("filters");
const cards = document.getElementById("cards");
const more = document.getElementById("more");
let selected = [];

// How much better the first model is; 0 if the metric is undefined for the row.
function gain(row, metric) {
  const [own, other] = row.values[metric];
  if (own === null || other === null) return 0;
  return (own - other) * (metrics[metric].higher_is_better ? 1 : -1);
}

const onlyIn = (row, side) => row.errors[side].filter((kind) => !row.errors[1 - side].includes(kind));

function errorsOf(row, change) {
  if (change === "new") return onlyIn(row, 0);
  if (change === "fixed") return onlyIn(row, 1);
  return row.errors.flat();
}

function textOf(row) {
  const outputs = row.outputs.map((parts) => parts.map(([text]) => text).join(""));
  return [row.location, ...row.inputs.map(({ text }) => text), ...row.references, ...outputs].join("\n").toLowerCase();
}

function matches(row, { change, kind, slice, text }) {
  if (change || kind) {
    const errors = errorsOf(row, change);
    if (kind ? !errors.includes(kind) : !errors.length) return false;
  }
  if (slice && !row.slices.includes(Number(slice))) return false;
  return !text || textOf(row).includes(text.toLowerCase());
}

function update() {
  const { order, metric, ...filters } = Object.fromEntries(new FormData(form));
  selected = rows.filter((row) => matches(row, filters));
  // Without another order the rows are in that of the evaluation.
  if (order !== "regressions" || metric !== document.querySelector("[name=metric] [selected]").value) {
    const sign = order === "better" ? -1 : 1;
    selected.sort((first, second) => sign * (gain(first, metric) - gain(second, metric)));
  }
  document.getElementById("count").textContent = `${selected.length} of ${rows.length} rows.`;
  cards.replaceChildren();
  showMore();
}

function showMore() {
  const start = cards.childElementCount;
  cards.append(...selected.slice(start, start + PAGE_SIZE).map(makeCard));
  more.hidden = cards.childElementCount >= selected.length;
}

function line(title, ...content) {
  return make("div", {}, make("dt", {}, title), make("dd", { dir: "auto" }, ...content));
}

function makeOutput(row, side) {
  const parts = row.outputs[side].map(([text, differs]) =>
    differs ? make("mark", { class: side ? "missing" : "extra" }, text) : text);
  const errors = row.errors[side].map((kind) => make("span", { class: "error-kind" }, kind));
  return line(names[side], ...(parts.length ? parts : ["(empty)"]), ...errors);
}

function makeCard(row) {
  const metric = new FormData(form).get("metric");
  const scores = row.values[metric].map((value) => (value === null ? "–" : value.toFixed(metrics[metric].scale === 1 ? 3 : 1)));
  const verdict = gain(row, metric) < 0 ? "worse" : gain(row, metric) > 0 ? "better" : "equal";
  const parts = row.slices.map((number) => slices[number]);
  const card = make("article", { class: "card" },
    make("p", { class: "location" }, make("span", {}, row.location), make("span", { class: verdict }, `${metrics[metric].label} ${scores[0]}, was ${scores[1]}: ${verdict}`)),
    make("dl", {},
      ...row.inputs.map(({ name, text, url }) => line(name, url ? make("img", { src: url, alt: text, "data-input": name }) : text)),
      makeOutput(row, 0), makeOutput(row, 1),
      ...row.references.slice(0, 3).map((text) => line("reference", text))),
    parts.length ? make("p", { class: "hint" }, parts.join(" · ")) : null);
  row.maps.forEach((map, side) => {
    if (map) card.append(makeMap(card, map, names[side]));
  });
  return card;
}

// The attention of one output, drawn when it is opened.
function makeMap(card, map, name) {
  const details = make("details", { class: "attention" }, make("summary", {}, `Attention, ${name}`));
  details.addEventListener("toggle", async () => {
    if (!details.open || details.childElementCount > 1) return;
    const container = details.appendChild(document.createElement("div"));
    await Promise.all([...card.querySelectorAll("img")].map((image) => image.decode()));
    container.append(drawMap(contract, map, (input) => card.querySelector(`img[data-input="${input}"]`)));
  });
  return details;
}

form.addEventListener("input", update);
form.addEventListener("submit", (event) => event.preventDefault());
more.addEventListener("click", showMore);
update();
