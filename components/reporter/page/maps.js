// The attention of one row of a page.

import { drawAttention, drawTokenWeights } from "./attention.js";
import { make } from "./dom.js";
import { headsSection } from "./heads.js";

// Draws a map; `imageOf` returns the image element of an input.
export function drawMap(contract, { outputs, inputs, heads }, imageOf) {
  if (contract.looks && contract.looks.weights in outputs) {
    const sources = Object.fromEntries(contract.inputs.map(({ name }) => [name, {
      value: () => inputs[name],
      image: () => imageOf(name),
    }]));
    return make("div", {}, drawAttention(contract, outputs, sources), ...headsSection(contract, heads, sources));
  }
  return drawTokenWeights(outputs, contract.inputs.map(({ name }) => name).filter((name) => `${name}_weights` in outputs));
}
