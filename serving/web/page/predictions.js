// Shows stored predictions with their attention; for pages without a server.

import { drawAttention } from "./attention.js";
import { make } from "./dom.js";
import { headsSection } from "./heads.js";

const { contract, images, predictions } = JSON.parse(document.getElementById("data").textContent);

for (const { title, output, inputs, outputs, heads } of predictions) {
  const fields = {};
  for (const { name } of contract.inputs) {
    const image = images.includes(name) ? make("img", { src: inputs[name], alt: name }) : null;
    await image?.decode(); // an image has no size before
    fields[name] = { value: () => inputs[name], image: () => image };
  }
  document.querySelector("main").append(make("section", {},
    make("h2", { class: "input" }, title), make("p", { class: "hypothesis" }, output),
    drawAttention(contract, outputs, fields), ...headsSection(contract, heads, fields)));
}
