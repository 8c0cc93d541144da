// The report: attention maps drawn on demand, and all groups open in print.

import { watchOverflow } from "./dom.js";
import { drawMap } from "./maps.js";
import "./theme.js";

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
  const imageOf = (name) => details.closest(".card").querySelector(`img[data-input="${name}"]`);
  container.append(drawMap(contract, maps[details.dataset.map], imageOf));
}

addEventListener("beforeprint", () => {
  document.querySelectorAll("details.group, details.slices").forEach((details) => { details.open = true; });
});
