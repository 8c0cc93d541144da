// The report: looks are drawn when somebody opens them; light or dark; all groups are open on paper.

import { picture, shares } from "./looks.js";

const drawn = JSON.parse(document.getElementById("drawn").textContent);

document.querySelectorAll("details.look").forEach((details) => {
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) show(details);
  });
});
document.querySelector("details.look")?.setAttribute("open", "");

// An image has no size before it is decoded.
async function show(details) {
  const place = details.appendChild(document.createElement("div"));
  await Promise.all([...details.closest(".card").querySelectorAll("img")].map((image) => image.decode()));
  place.append(look(details));
}

function look(details) {
  const { contract, looks } = drawn;
  const { outputs, inputs } = looks[details.dataset.look];
  if (contract.looks && contract.looks.weights in outputs) {
    const given = Object.fromEntries(contract.inputs.map(({ name }) => [name, {
      value: () => inputs[name],
      image: () => details.closest(".card").querySelector(`img[data-input="${name}"]`),
    }]));
    return picture(contract, outputs, given);
  }
  return shares(outputs, contract.inputs.map(({ name }) => name).filter((name) => `${name}_weights` in outputs));
}

// A file from the disk may be refused a memory of its own; then the choice lasts as long as the page.
function remembered(theme) {
  try {
    if (theme) localStorage.setItem("theme", theme);
    return localStorage.getItem("theme");
  } catch {
    return theme;
  }
}

function dress(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
}

document.getElementById("theme").addEventListener("click", () => {
  const { theme } = document.documentElement.dataset;
  const dark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const next = dark ? "light" : "dark";
  remembered(next);
  dress(next);
});
addEventListener("beforeprint", () => {
  document.querySelectorAll("details.group, details.slices").forEach((details) => { details.open = true; });
});
dress(remembered());
