// The attention of every layer and head: thumbnails, and the selected one in full.

import { drawAttention, relativeEntropy } from "./attention.js";
import { make, percent, watchOverflow } from "./dom.js";

// The title of a grid, and the labels of its rows and columns.
const TITLES = {
  cross_heads: ["Cross-attention", ["output", "input"]],
  source_heads: ["Encoder self-attention", ["input", "attended input"]],
  target_heads: ["Decoder self-attention", ["output", "earlier output"]],
};
const titleOf = ({ weights, rows, columns }) => TITLES[weights] ?? [weights, [rows, columns]];

// The inputs of a signature that takes the model's inputs and its output for them.
export function withOutputs(contract, signature, row, outputs) {
  const entries = contract.signatures[signature].inputs;
  return Object.fromEntries(entries.map(({ name, like }) => [name, row[name] ?? outputs[like]]));
}

// A section with all heads, drawn when it is opened; none without their weights.
export function headsSection(contract, outputs, inputs) {
  if (!outputs) return [];
  const details = make("details", {}, make("summary", {}, "Layers and heads"));
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append(drawHeads(contract, outputs, inputs));
  });
  return [details];
}

export function drawHeads(contract, outputs, inputs) {
  const selected = make("div", { class: "selected" });
  const buttons = [];
  const select = (entry, weights, chosen) => {
    buttons.forEach((button) => button.setAttribute("aria-pressed", String(button === chosen)));
    const [title, labels] = titleOf(entry);
    selected.replaceChildren(
      make("h3", {}, `${title}: ${chosen.getAttribute("aria-label")}`),
      drawAttention({ ...contract, looks: entry }, outputs, inputs, weights, labels),
    );
  };
  const grids = contract.heads.looks.map((entry) => {
    const rows = outputs[entry.weights].map((layer, l) => {
      const cells = [...layer.map((weights, h) => [`layer ${l + 1}, head ${h + 1}`, weights]),
        [`layer ${l + 1}, mean of all heads`, mean(layer)]];
      return make("tr", {}, make("th", { scope: "row" }, String(l + 1)), ...cells.map(([name, weights]) => {
        const title = `${name}; mean attention entropy ${percent(meanEntropy(weights, entry))} of uniform`;
        const button = make("button", {
          type: "button", class: "thumbnail", "aria-pressed": "false", "aria-label": name, title,
          onclick: () => select(entry, weights, button),
        }, thumbnail(weights));
        buttons.push(button);
        return make("td", {}, button);
      }));
    });
    const heads = outputs[entry.weights][0].map((_, h) => make("th", { scope: "col" }, String(h + 1)));
    return make("table", { class: "heads" },
      make("caption", {}, titleOf(entry)[0]),
      make("tr", {}, make("td"), ...heads, make("th", { scope: "col" }, "mean")), ...rows);
  });
  buttons[0]?.click();
  return make("div", {},
    make("p", { class: "caption" }, "Rows are layers, columns are heads. Select one to enlarge it."),
    watchOverflow(make("div", { class: "grids" }, ...grids)), selected);
}

// The element-wise mean of arrays of one shape.
function mean(arrays) {
  if (!Array.isArray(arrays[0])) return arrays.reduce((sum, value) => sum + value, 0) / arrays.length;
  return arrays[0].map((_, i) => mean(arrays.map((array) => array[i])));
}

// The mean entropy of the rows relative to uniform attention.
function meanEntropy(weights, entry) {
  const entropies = weights.map((row, t) => relativeEntropy(row.flat(), t, entry));
  return entropies.reduce((sum, entropy) => sum + entropy, 0) / Math.max(entropies.length, 1);
}

// One pixel for each weight; for an image the mean over all tokens.
function thumbnail(weights) {
  const isImage = Array.isArray(weights[0]?.[0]);
  const map = isImage ? mean(weights) : weights;
  const canvas = make("canvas", { width: Math.max(map[0]?.length ?? 1, 1), height: Math.max(map.length, 1) });
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(canvas.width, canvas.height);
  const max = isImage ? Math.max(...map.flat(), 1e-9) : 1;
  const probe = document.body.appendChild(make("span", { class: "weight" }));
  const [red, green, blue] = getComputedStyle(probe).color.match(/[\d.]+/g);
  probe.remove();
  map.flat().forEach((weight, i) => {
    pixels.data.set([red, green, blue, 255 * Math.sqrt(Math.min(weight / max, 1))], 4 * i);
  });
  context.putImageData(pixels, 0, 0);
  return canvas;
}
