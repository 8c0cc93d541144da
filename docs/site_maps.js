// Draws the attention maps of a page of the documentation in place of their pictures.

import { drawAttention } from "./attention.js";
import { make } from "./dom.js";
import { headsSection } from "./heads.js";

async function drawMap(figure) {
  const { contract, images, inputs, outputs, heads } = JSON.parse(figure.querySelector("script").textContent);
  const fields = {};
  for (const { name } of contract.inputs) {
    const image = images.includes(name) ? make("img", { src: inputs[name], alt: name }) : null;
    await image?.decode(); // an image has no size before
    fields[name] = { value: () => inputs[name], image: () => image };
  }
  figure.querySelector("img").replaceWith(
    make("div", {}, drawAttention(contract, outputs, fields), ...headsSection(contract, heads, fields)));
}

document.querySelectorAll("figure.attention-viewer").forEach(drawMap);
