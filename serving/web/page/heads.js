// Every head of every layer of a Transformer: small maps to choose from, and the one that is chosen.

import { make, percent } from "./dom.js";
import { picture } from "./looks.js";

// What is above a grid, and what the two sides of its maps are called.
const NAMES = {
  cross_heads: ["What was written looks at what was read", ["what was written", "what was read"]],
  source_heads: ["What was read looks at itself", ["what was read", "what it looked at"]],
  target_heads: ["What was written looks at what came before", ["what was written", "what came before"]],
};
const named = ({ weights, rows, columns }) => NAMES[weights] ?? [weights, [rows, columns]];

// What `heads` is asked: the inputs, and the answer that was given to them.
export function question(contract, row, outputs) {
  const given = contract.signatures[contract.heads.signature].inputs;
  return Object.fromEntries(given.map(({ name, like }) => [name, row[name] ?? outputs[like]]));
}

export function allHeads(contract, outputs, inputs) {
  const drawn = make("div", { class: "chosen" });
  const buttons = [];
  const choose = (look, weights, chosen) => {
    buttons.forEach((button) => button.setAttribute("aria-pressed", String(button === chosen)));
    drawn.replaceChildren(
      make("h3", {}, `${named(look)[0]}: ${chosen.getAttribute("aria-label")}`),
      picture({ ...contract, looks: look }, outputs, inputs, weights, named(look)[1]),
    );
  };
  const grids = contract.heads.looks.map((look) => {
    const rows = outputs[look.weights].map((layer, l) => {
      const cells = [...layer.map((weights, h) => [`layer ${l + 1}, head ${h + 1}`, weights]),
        [`layer ${l + 1}, mean of its heads`, mean(layer)]];
      return make("tr", {}, make("th", { scope: "row" }, String(l + 1)), ...cells.map(([name, weights]) => {
        const told = `${name}; entropy ${percent(spread(weights, look))} of even attention's`;
        const button = make("button", {
          type: "button", class: "thumbnail", "aria-pressed": "false", "aria-label": name, title: told,
          onclick: () => choose(look, weights, button),
        }, thumbnail(weights));
        buttons.push(button);
        return make("td", {}, button);
      }));
    });
    const heads = outputs[look.weights][0].map((_, h) => make("th", { scope: "col" }, String(h + 1)));
    return make("table", { class: "heads" },
      make("caption", {}, named(look)[0]),
      make("tr", {}, make("td"), ...heads, make("th", { scope: "col" }, "mean")), ...rows);
  });
  buttons[0]?.click();
  return make("div", {},
    make("p", { class: "caption" }, "A row a layer, a column a head; the strength of a point is the weight. Choose one to read it."),
    make("div", { class: "grids" }, ...grids), drawn);
}

// The mean of arrays of one shape.
function mean(arrays) {
  if (!Array.isArray(arrays[0])) return arrays.reduce((sum, value) => sum + value, 0) / arrays.length;
  return arrays[0].map((_, i) => mean(arrays.map((array) => array[i])));
}

// The mean entropy of the rows, as a share of what even attention would have: to all that a row can
// see, which of what was written are the pieces before.
function spread(weights, look) {
  const shares = weights.map((row, t) => {
    const flat = row.flat();
    const seen = look.weights === "target_heads" ? t + 1 : flat.length;
    if (seen < 2) return 0;
    return flat.reduce((sum, w) => sum - (w > 0 ? w * Math.log(w) : 0), 0) / Math.log(seen);
  });
  return shares.reduce((sum, share) => sum + share, 0) / Math.max(shares.length, 1);
}

// A pixel a weight; of looks at an image their mean over all that was written.
function thumbnail(weights) {
  const map = Array.isArray(weights[0]?.[0]) ? mean(weights) : weights;
  const canvas = make("canvas", { width: Math.max(map[0]?.length ?? 1, 1), height: Math.max(map.length, 1) });
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(canvas.width, canvas.height);
  const most = Array.isArray(weights[0]?.[0]) ? Math.max(...map.flat(), 1e-9) : 1;
  const [red, green, blue] = getComputedStyle(document.getElementById("ask")).backgroundColor.match(/[\d.]+/g);
  map.flat().forEach((share, i) => {
    pixels.data.set([red, green, blue, 255 * Math.sqrt(Math.min(share / most, 1))], 4 * i);
  });
  context.putImageData(pixels, 0, 0);
  return canvas;
}
