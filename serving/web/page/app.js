// The page: select a model, enter its inputs, run it, and show its output and attention.

import { listModels, predict, ServerError } from "./api.js";
import { drawAttention, drawTokenWeights } from "./attention.js";
import { make, percent } from "./dom.js";
import { drawHeads, withOutputs } from "./heads.js";
import { createInput } from "./inputs.js";
import { drawSample } from "./sample.js";

const byId = (id) => document.getElementById(id);
const CONSTRAINT_LABELS = {
  prefix: "Output begins with",
  phrases: "Output contains these phrases or glossary terms, one on a line",
};
const MAX_HEADS_TOKENS = 80; // the size of all heads grows with the square of the length
const MAX_LINK_CHARACTERS = 2000; // that are sent to the model when a link is opened
const ABOUT = "Enter the inputs of the model and select Run."; // for models whose contract says nothing
const TAGS = "The tag selects the kind of output, for example its language.";
let models = [];
let model = null;
let inputs = {};
let constraints = {}; // fields of the inputs that the signature `constrained` has in addition
let requestNumber = 0; // a late response must not replace a newer one
let headsShown = null; // the request for the attention of all heads
let current = null; // the displayed prediction: row, outputs, and a snapshot of the inputs

async function start() {
  setTheme(localStorage.getItem("theme"));
  try {
    models = await listModels();
  } catch (error) {
    return showMessage(error.message, true);
  }
  byId("model").append(...models.map((listed) => make("option", { value: listed.name }, label(listed))));
  if (!models.length) return showMessage("The server has no models.", true);
  addEventListener("hashchange", openLink);
  await openLink();
}

const label = ({ name, version }) => (version === null ? `${name} (not available)` : `${name} · version ${version}`);

// Shows the view of the link in the address bar.
async function openLink() {
  const link = new URLSearchParams(location.hash.slice(1));
  selectModel(models.find(({ name }) => name === link.get("model")) ?? models[0]);
  let characters = 0;
  for (const [name, input] of Object.entries({ ...inputs, ...constraints })) {
    if (!link.has(name)) continue;
    input.set(link.get(name));
    characters += link.get(name).length;
  }
  byId("constraints").open = isConstrained();
  if (byId("run").disabled) return;
  if (characters > MAX_LINK_CHARACTERS) return showMessage("The link has a long input. Select Run to send it to the model.");
  const open = (link.get("open") ?? "").split(" ");
  for (const id of ["nbest", "heads"]) byId(id).open = open.includes(id);
  const number = requestNumber + 1;
  await run();
  await headsShown;
  if (number !== requestNumber) return; // another input or link is on display
  selectNth(".thumbnail", link.get("head"));
  selectNth("#picture button.token", link.get("token"));
  const version = link.get("version");
  if (!byId("message").textContent && /^\d{1,9}$/.test(version) && version !== String(model.version)) {
    showMessage(`The link was made with version ${version}. This is version ${model.version}.`);
  }
}

const selectNth = (selector, index) => index && [...document.querySelectorAll(selector)][Number(index)]?.click();
const selectedIndex = (selector) => (
  [...document.querySelectorAll(selector)].findIndex((button) => button.getAttribute("aria-pressed") === "true"));

function selectModel(next) {
  model = next;
  requestNumber += 1;
  current = null;
  byId("model").value = next.name;
  document.title = `${next.name} – Regard`;
  byId("output").hidden = byId("attention").hidden = true;
  showSample(Boolean(next.contract?.looks));
  byId("about").textContent = describe(next.contract);
  showExamples(next.examples ?? []);
  showMessage(next.problem ?? "", Boolean(next.problem));
  inputs = {};
  for (const [i, entry] of (next.contract?.inputs ?? []).entries()) {
    inputs[entry.name] = createInput(entry, updateButton, entry.name, i ? [] : next.contract.tags);
  }
  byId("inputs").replaceChildren(...Object.values(inputs).map((input) => input.element));
  constraints = {};
  for (const entry of next.contract?.signatures.constrained?.inputs ?? []) {
    if ("default" in entry) constraints[entry.name] = createInput(entry, updateButton, CONSTRAINT_LABELS[entry.name]);
  }
  byId("constraints").hidden = !Object.keys(constraints).length;
  byId("constraints").querySelector("div").replaceChildren(...Object.values(constraints).map((input) => input.element));
  updateButton();
  byId("inputs").querySelector("textarea, input")?.focus();
}

// Returns what the page says about a model; nothing if the model has no contract.
function describe(contract) {
  if (contract === null) return "";
  const about = contract.about || ABOUT;
  return contract.tags?.length ? `${about} ${TAGS}` : about;
}

// Buttons that fill in a row of the training and run the model.
function showExamples(rows) {
  byId("examples").hidden = rows.length === 0;
  byId("examples").replaceChildren("Examples: ", ...rows.map((row) => make("button", {
    type: "button", class: "example",
    onclick: () => {
      for (const [name, value] of Object.entries(row)) inputs[name].set(typeof value === "string" ? value : JSON.stringify(value));
      run();
    },
  }, shorten(Object.values(row).map((value) => (typeof value === "string" ? value : `${value.length} points`)).join(" | ")))));
}

const shorten = (text) => (text.length > 60 ? `${text.slice(0, 59)}…` : text);

const isConstrained = () => Object.values(constraints).some((input) => !input.isEmpty());

function showSample(isShown) {
  byId("sample").hidden = !isShown;
  byId("sample").querySelector("div").replaceChildren(...(isShown ? [drawSample()] : []));
}

function updateButton() {
  const all = Object.values(inputs);
  byId("run").disabled = all.length === 0 || all.some((input) => input.isEmpty());
}

async function run() {
  const number = ++requestNumber;
  const problem = Object.values(inputs).map((input) => input.problem?.()).find(Boolean);
  if (problem) return showMessage(problem, true);
  const { contract } = model;
  const row = Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, input.value()]));
  byId("run").disabled = true;
  showMessage("…");
  try {
    if (isConstrained()) {
      const outputs = await predictConstrained(row);
      if (number === requestNumber) showPrediction(row, outputs, null);
      return;
    }
    const outputs = await predict(model, contract.detail, row);
    outputs.token_scores = await predictTokenScores(row, outputs);
    const nbest = contract.signatures.nbest ? await predict(model, "nbest", row) : null;
    if (number === requestNumber) showPrediction(row, outputs, nbest);
  } catch (error) {
    if (!(error instanceof ServerError)) throw error;
    const newer = await findNewVersion();
    if (number !== requestNumber) return;
    if (!newer) return showMessage(error.message, true);
    models[models.indexOf(model)] = model = newer;
    byId("model").selectedOptions[0].textContent = label(newer);
    await run();
    if (!byId("message").textContent) showMessage(`Version ${newer.version} has replaced the one before.`);
  } finally {
    updateButton();
  }
}

// Returns the selected model as the server has it now, if its version has changed; otherwise null.
async function findNewVersion() {
  const newest = (await listModels().catch(() => [])).find(({ name }) => name === model.name);
  return newest?.contract && newest.version !== model.version ? newest : null;
}

// Returns the output under constraints, with its attention from the signature that scores it.
async function predictConstrained(row) {
  const { contract } = model;
  const values = Object.entries(constraints).map(([name, input]) => [name, input.value()]);
  const outputs = await predict(model, "constrained", { ...row, ...Object.fromEntries(values) });
  const scored = await predict(model, contract.scored, withOutputs(contract, contract.scored, row, outputs));
  return { ...scored, ...outputs };
}

// Returns the log-probability of each token of an output; null without a signature for them.
async function predictTokenScores(row, outputs) {
  const { looks, scored, signatures } = model.contract;
  const name = looks?.rows.replace(/_pieces$/, "_scores");
  if (!scored || !(name in signatures[scored].outputs) || !outputs[looks.rows].length) return null;
  const computed = await predict(model, scored, withOutputs(model.contract, scored, row, outputs));
  const isSame = String(computed[looks.rows]) === String(outputs[looks.rows]);
  return isSame ? computed[name] : null; // the text may have other tokens than the search found
}

function showPrediction(row, outputs, nbest) {
  const { contract } = model;
  current = { row, outputs, inputs: snapshot(inputs, row) };
  const prediction = outputs[contract.answer];
  byId("output").hidden = false;
  showSample(false);
  byId("hypothesis").textContent = typeof prediction === "number" ? prediction.toFixed(3)
    : Array.isArray(prediction) ? prediction.join(" → ") : prediction || "(empty)";
  byId("score").textContent = contract.score === null ? "" : formatScore(outputs[contract.score], outputs[contract.looks?.rows]?.length);
  byId("confidence").textContent = formatConfidence(outputs);
  byId("nbest").hidden = nbest === null;
  if (nbest) byId("nbest").querySelector("ol").replaceChildren(...nbestItems(nbest));
  const truncated = outputs[contract.cut];
  showMessage(truncated ? `The input is too long. At least its last ${truncated} tokens were ignored.` : "", Boolean(truncated));
  showAttention(outputs);
}

// The probability of a sequence is small even if each of its tokens is likely. Blank inputs have no score.
function formatScore(logProbability, length) {
  if (logProbability === null) return "";
  const isSequence = model.contract.scored && length;
  const probability = percent(Math.exp(logProbability / (isSequence ? length : 1)));
  return `${isSequence ? "mean token probability" : "probability"} ${probability} · log-probability ${Number(logProbability.toFixed(3)).toFixed(3)}`;
}

// Says how probable a good output is; nothing for a blank input, or a model without a calibration.
function formatConfidence(outputs) {
  const entry = model.contract.confidence;
  const confidence = outputs[entry?.output] ?? null;
  return confidence === null ? "" : `confidence ${percent(confidence)} · probability of ${entry.metric} ≥ ${entry.good}`;
}

function nbestItems(nbest) {
  return nbest.hypotheses
    .map((hypothesis, i) => [hypothesis, nbest.log_probabilities[i], nbest.lengths[i]])
    .filter(([, logProbability]) => logProbability !== null && logProbability > -1e8)
    .map(([hypothesis, logProbability, length]) => make("li", {},
      Array.isArray(hypothesis) ? hypothesis.slice(0, length).join(" → ") : hypothesis,
      make("span", {}, formatScore(logProbability, length))));
}

function showAttention(outputs) {
  const { contract } = model;
  let drawing = null;
  if (contract.looks && outputs[contract.looks.weights]?.length) drawing = drawAttention(contract, outputs, current.inputs);
  else {
    const sides = contract.inputs.map((entry) => entry.name).filter((name) => `${name}_weights` in outputs);
    if (sides.length) drawing = drawTokenWeights(outputs, sides);
  }
  byId("attention").hidden = drawing === null && !contract.heads;
  byId("picture").replaceChildren(...(drawing ? [drawing] : []));
  byId("heads").hidden = !contract.heads;
  byId("all-heads").replaceChildren();
  if (contract.heads && byId("heads").open) headsShown = showHeads();
}

// Requests the attention of all layers and heads, when the user opens the section.
async function showHeads() {
  const [prediction, { contract }] = [current, model];
  const longest = Math.max(...["source_length", "target_length", "length"].map((name) => prediction.outputs[name] ?? 0));
  if (longest > MAX_HEADS_TOKENS) {
    const text = `Layers and heads are not shown for more than ${MAX_HEADS_TOKENS} tokens.`;
    return byId("all-heads").replaceChildren(make("p", { class: "caption" }, text));
  }
  try {
    const row = withOutputs(contract, contract.heads.signature, prediction.row, prediction.outputs);
    const outputs = await predict(model, contract.heads.signature, row);
    if (prediction === current) byId("all-heads").replaceChildren(drawHeads(contract, outputs, prediction.inputs));
  } catch (error) {
    if (!(error instanceof ServerError)) throw error;
    if (prediction === current) showMessage(error.message, true);
  }
}

// Copies the inputs, so that later edits do not change a displayed prediction.
function snapshot(inputs, row) {
  return Object.fromEntries(Object.entries(inputs).map(([name, input]) => {
    const image = input.image?.();
    return [name, { value: () => row[name], image: () => image }];
  }));
}

function showMessage(text, isError = false) {
  byId("message").textContent = text;
  byId("message").classList.toggle("error", isError);
}

function link() {
  const parameters = new URLSearchParams({ model: model.name, version: model.version });
  for (const [name, input] of Object.entries({ ...inputs, ...constraints })) {
    if (input.link()) parameters.set(name, input.link());
  }
  const open = ["nbest", "heads"].filter((id) => byId(id).open && !byId(id).hidden);
  if (open.length) parameters.set("open", open.join(" "));
  for (const [name, selector] of [["token", "#picture button.token"], ["head", ".thumbnail"]]) {
    const index = selectedIndex(selector);
    if (index > 0) parameters.set(name, index);
  }
  return `${location.origin}${location.pathname}#${parameters}`;
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
}

byId("form").addEventListener("submit", (event) => { event.preventDefault(); run(); });
byId("form").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !byId("run").disabled) run();
});
byId("heads").addEventListener("toggle", () => {
  if (byId("heads").open && current && !byId("all-heads").hasChildNodes()) headsShown = showHeads();
});
byId("model").addEventListener("change", () => selectModel(models.find(({ name }) => name === byId("model").value)));
byId("link").addEventListener("click", async () => {
  history.replaceState(null, "", link());
  try {
    await navigator.clipboard.writeText(link());
    showMessage(Object.values(inputs).some((input) => input.link() === null) ? "Link copied, without the image." : "Link copied.");
  } catch {
    showMessage("The link is in the address bar.");
  }
});
byId("theme").addEventListener("click", () => {
  const dark = getComputedStyle(document.documentElement).colorScheme === "dark"
    || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  const theme = dark ? "light" : "dark";
  localStorage.setItem("theme", theme);
  setTheme(theme);
});
start();
