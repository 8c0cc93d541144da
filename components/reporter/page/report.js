// The report: attention maps drawn on demand, a light and a dark theme, all groups open in print.

import { drawAttention, drawTokenWeights } from "./attention.js";
import { make, watchOverflow } from "./dom.js";
import { headsSection } from "./heads.js";

const { contract, maps } = JSON.parse(document.getElementById("attention-data").textContent);

document.querySelectorAll("details.attention").forEach((details) => {
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) showMap(details);
  });
});
document.querySelectorAll(".scroll, pre").forEach((element) => watchOverflow(element));
document.querySelector("details.attention")?.setAttribute("open", "");

// An image has no size before it is decoded.
async function showMap(details) {
  const container = details.appendChild(document.createElement("div"));
  await Promise.all([...details.closest(".card").querySelectorAll("img")].map((image) => image.decode()));
  container.append(drawMap(details));
}

function drawMap(details) {
  const { outputs, inputs, heads } = maps[details.dataset.map];
  if (contract.looks && contract.looks.weights in outputs) {
    const sources = Object.fromEntries(contract.inputs.map(({ name }) => [name, {
      value: () => inputs[name],
      image: () => details.closest(".card").querySelector(`img[data-input="${name}"]`),
    }]));
    return make("div", {}, drawAttention(contract, outputs, sources), ...headsSection(contract, heads, sources));
  }
  return drawTokenWeights(outputs, contract.inputs.map(({ name }) => name).filter((name) => `${name}_weights` in outputs));
}

// A browser may deny storage to a local file; the theme is then not remembered.
function storeTheme(theme) {
  try {
    if (theme) localStorage.setItem("theme", theme);
    return localStorage.getItem("theme");
  } catch {
    return theme;
  }
}

function applyTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
}

document.getElementById("theme").addEventListener("click", () => {
  const { theme } = document.documentElement.dataset;
  const isDark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const next = isDark ? "light" : "dark";
  storeTheme(next);
  applyTheme(next);
});
addEventListener("beforeprint", () => {
  document.querySelectorAll("details.group, details.slices").forEach((details) => { details.open = true; });
});
applyTheme(storeTheme());
