// The page: which model, what it is asked, what it answers.

import { ask, models, ServerError } from "./api.js";
import { make, percent } from "./dom.js";
import { allHeads, question } from "./heads.js";
import { inputFor } from "./inputs.js";
import { picture, shares } from "./looks.js";

const at = (id) => document.getElementById(id);
const MOST_PIECES = 80; // their weights grow with the square of it, for every head
let known = [];
let model = null;
let inputs = {};
let asked = 0; // so that a late answer does not overwrite a newer one
let shown = null; // what is to be seen: what was asked, the outputs, the inputs as they were

async function begin() {
  dress(localStorage.getItem("theme"));
  try {
    known = await models();
  } catch (error) {
    return tell(error.message, true);
  }
  at("model").append(...known.map((one) => make("option", { value: one.name },
    one.version === null ? `${one.name} (not available)` : `${one.name} · version ${one.version}`)));
  const wanted = new URLSearchParams(location.hash.slice(1));
  const first = known.find((one) => one.name === wanted.get("model")) ?? known[0];
  if (!first) return tell("No model is served.", true);
  choose(first);
  for (const [name, input] of Object.entries(inputs)) {
    if (wanted.has(name)) input.set(wanted.get(name));
  }
  if (!at("ask").disabled) submit();
}

function choose(next) {
  model = next;
  asked += 1;
  shown = null;
  at("model").value = next.name;
  document.title = `${next.name} – Regard`;
  at("answer").hidden = at("looks").hidden = true;
  tell(next.problem ?? "", Boolean(next.problem));
  inputs = {};
  for (const entry of next.contract?.inputs ?? []) inputs[entry.name] = inputFor(entry, refresh);
  at("inputs").replaceChildren(...Object.values(inputs).map((input) => input.element));
  refresh();
  at("inputs").querySelector("textarea, input")?.focus();
}

function refresh() {
  const several = Object.values(inputs);
  at("ask").disabled = several.length === 0 || several.some((input) => input.isEmpty());
}

function row() {
  return Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, input.value()]));
}

async function submit() {
  const number = ++asked;
  const { contract } = model;
  const given = row();
  at("ask").disabled = true;
  tell("…");
  try {
    const outputs = await ask(model, contract.detail, given);
    const others = contract.signatures.nbest ? await ask(model, "nbest", given) : null;
    if (number === asked) show(given, outputs, others);
  } catch (error) {
    if (!(error instanceof ServerError)) throw error;
    if (number === asked) tell(error.message, true);
  } finally {
    refresh();
  }
}

function show(given, outputs, others) {
  const { contract } = model;
  shown = { given, outputs, inputs: still(inputs, given) };
  const answer = outputs[contract.answer];
  at("answer").hidden = false;
  at("hypothesis").textContent = contract.answer_kind === "number" ? answer.toFixed(3)
    : Array.isArray(answer) ? answer.join(" → ") : answer || "(nothing)";
  at("score").textContent = contract.score === null ? "" : scored(outputs[contract.score]);
  at("nbest").hidden = others === null;
  if (others) at("nbest").querySelector("ol").replaceChildren(...listed(others));
  tell(outputs[contract.cut] ? `The last ${outputs[contract.cut]} pieces were too many and were not read.` : "");
  drawLooks(outputs);
}

const scored = (logarithm) => `probability ${percent(Math.exp(logarithm))} · log-probability ${logarithm.toFixed(3)}`;

function listed(others) {
  return others.hypotheses
    .map((hypothesis, i) => [hypothesis, others.log_probabilities[i], others.lengths[i]])
    .filter(([, logarithm]) => logarithm > -1e8)
    .map(([hypothesis, logarithm, length]) => make("li", {},
      Array.isArray(hypothesis) ? hypothesis.slice(0, length).join(" → ") : hypothesis,
      make("span", {}, scored(logarithm))));
}

function drawLooks(outputs) {
  const { contract } = model;
  let drawn = null;
  if (contract.looks && outputs[contract.looks.weights]?.length) drawn = picture(contract, outputs, shown.inputs);
  else {
    const sides = contract.inputs.map((entry) => entry.name).filter((name) => `${name}_weights` in outputs);
    if (sides.length) drawn = shares(outputs, sides);
  }
  at("looks").hidden = drawn === null && !contract.heads;
  at("picture").replaceChildren(...(drawn ? [drawn] : []));
  at("heads").hidden = !contract.heads;
  at("all-heads").replaceChildren();
  if (contract.heads && at("heads").open) lookInside();
}

// All heads of all layers, which are asked for when somebody wants to see them.
async function lookInside() {
  const [mine, { contract }] = [shown, model];
  const longest = Math.max(...["source_length", "target_length", "length"].map((name) => mine.outputs[name] ?? 0));
  if (longest > MOST_PIECES) {
    const told = `Of texts with more than ${MOST_PIECES} pieces the heads are not shown.`;
    return at("all-heads").replaceChildren(make("p", { class: "caption" }, told));
  }
  try {
    const asking = question(contract, mine.given, mine.outputs);
    const found = await ask(model, contract.heads.signature, asking);
    if (mine === shown) at("all-heads").replaceChildren(allHeads(contract, found, mine.inputs));
  } catch (error) {
    if (!(error instanceof ServerError)) throw error;
    if (mine === shown) tell(error.message, true);
  }
}

// The inputs as they are now, whatever somebody types or drops while the answer is looked at.
function still(inputs, given) {
  return Object.fromEntries(Object.entries(inputs).map(([name, input]) => {
    const image = input.image?.();
    return [name, { value: () => given[name], image: () => image }];
  }));
}

function tell(text, bad = false) {
  at("message").textContent = text;
  at("message").classList.toggle("bad", bad);
}

function link() {
  const parts = new URLSearchParams({ model: model.name });
  for (const [name, input] of Object.entries(inputs)) {
    if (input.link() !== null) parts.set(name, input.link());
  }
  return `${location.origin}${location.pathname}#${parts}`;
}

function dress(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
}

at("form").addEventListener("submit", (event) => { event.preventDefault(); submit(); });
at("form").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !at("ask").disabled) submit();
});
at("heads").addEventListener("toggle", () => {
  if (at("heads").open && shown && !at("all-heads").hasChildNodes()) lookInside();
});
at("model").addEventListener("change", () => choose(known.find((one) => one.name === at("model").value)));
at("link").addEventListener("click", async () => {
  history.replaceState(null, "", link());
  try {
    await navigator.clipboard.writeText(link());
    tell("The link is copied.");
  } catch {
    tell("The link is in the address bar.");
  }
});
at("theme").addEventListener("click", () => {
  const dark = getComputedStyle(document.documentElement).colorScheme === "dark"
    || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  const theme = dark ? "light" : "dark";
  localStorage.setItem("theme", theme);
  dress(theme);
});
begin();
