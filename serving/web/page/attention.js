// Attention weights: between tokens, over an image, or among points.

import { draw, make, percent, readable } from "./dom.js";

const CELL = 22; // pixels

// Draws the attention of one output; `labels` names its rows and columns.
export function drawAttention(contract, outputs, inputs, weights = outputs[contract.looks.weights], labels = null) {
  const { rows, columns } = contract.looks;
  const kinds = Object.fromEntries(contract.inputs.map((entry) => [entry.name, entry.kind]));
  if (kinds[columns] === "image") return drawImageAttention(outputs[rows], weights, inputs[columns].image());
  if (kinds[columns] === "points") return drawPointAttention(inputs[columns].value(), outputs[rows], weights);
  const isPair = contract.answer_kind === "number"; // two sentences that attend to each other
  const sides = isPair ? ["first sentence", "second sentence"] : ["output", "input"];
  return drawTokenAttention(outputs[columns], outputs[rows], weights, labels ?? sides, contract.looks);
}

// Draws the weight of each token in the vector of its sentence.
export function drawTokenWeights(outputs, sides) {
  return make("div", {}, ...sides.flatMap((side) => [
    make("p", { class: "caption" }, side),
    make("div", { class: "tokens" }, ...outputs[`${side}_pieces`].map((token, i) => {
      const weight = outputs[`${side}_weights`][i];
      return highlight(make("span", { class: "token", title: percent(weight) }, readable(token)), weight);
    })),
  ]));
}

function highlight(element, weight) {
  const strength = Math.min(Math.max(weight, 0), 1);
  element.style.setProperty("background-color", `color-mix(in srgb, var(--blue) ${(70 * strength).toFixed(1)}%, transparent)`);
  return element;
}

// Entropy of row `t` relative to uniform weights of the visible positions, 0 to 1; in decoder
// self-attention a token sees only the tokens before it.
export function relativeEntropy(row, t, looks) {
  const total = row.reduce((sum, w) => sum + w, 0);
  const visible = looks.weights === "target_heads" ? t + 1 : row.length;
  if (!total || visible < 2) return 0;
  const nats = row.reduce((sum, w) => sum - (w > 0 ? (w / total) * Math.log(w / total) : 0), 0);
  return nats / Math.log(visible);
}

function drawTokenAttention(source, target, weights, [rowLabel, columnLabel], looks) {
  const totals = source.map((_, s) => weights.reduce((sum, row) => sum + row[s], 0));
  const maxTotal = Math.max(...totals, 1e-9);
  const sources = source.map((token, s) => make("span", {
    class: "token", title: `total weight ${totals[s].toFixed(2)}`,
  }, readable(token), bar(totals[s] / maxTotal)));
  const description = make("p", { class: "caption", "aria-live": "polite" });
  const matrix = drawMatrix(source, target, weights, [rowLabel, columnLabel]);
  const choose = (t) => {
    targets.forEach((button, i) => button.setAttribute("aria-pressed", String(i === t)));
    weights[t].forEach((weight, s) => highlight(sources[s], weight));
    matrix.mark(t);
    description.textContent = describe(source, target[t], weights[t]);
  };
  const targets = target.map((token, t) => make("button", {
    type: "button", class: "token", "aria-pressed": "false", tabindex: t ? "-1" : "0",
    onmouseenter: () => choose(t), onfocus: () => choose(t), onclick: () => choose(t),
    "aria-label": `${readable(token)}: ${describe(source, token, weights[t])}`,
  }, readable(token), bar(relativeEntropy(weights[t], t, looks))));
  const element = make("div", {},
    make("p", { class: "caption" }, `Hover over the ${rowLabel}, or use the arrow keys, to see the attention of each token.`),
    make("div", { class: "tokens", role: "group", "aria-label": rowLabel }, ...targets),
    make("div", { class: "tokens", role: "group", "aria-label": columnLabel }, ...sources),
    description,
    make("div", { class: "map" }, matrix.element),
    make("p", { class: "caption" }, `Bars below the ${rowLabel}: attention entropy. Bars below the ${columnLabel}: total weight.`),
  );
  addArrowKeys(targets);
  if (target.length) choose(0);
  return element;
}

function bar(share) {
  const element = make("span", { class: "bar" });
  element.style.setProperty("width", `calc(${(100 * share).toFixed(1)}% - .5rem)`);
  return element;
}

function describe(source, token, row) {
  const order = row.map((weight, s) => [weight, s]).sort((a, b) => b[0] - a[0]).slice(0, 3);
  const top = order.filter(([weight]) => weight > 0.01).map(([weight, s]) => `${readable(source[s])} ${percent(weight)}`);
  return `“${readable(token)}” → ${top.length ? top.join(", ") : "no attention"}`;
}

// Moves the focus between buttons with the arrow keys.
function addArrowKeys(buttons) {
  buttons.forEach((button, i) => button.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -i, End: buttons.length - 1 - i }[event.key];
    const next = step === undefined ? null : buttons[i + step];
    if (!next) return;
    event.preventDefault();
    buttons.forEach((one) => one.setAttribute("tabindex", one === next ? "0" : "-1"));
    next.focus();
  }));
}

function drawMatrix(source, target, weights, [rowLabel, columnLabel]) {
  const left = 12 + 7.5 * Math.max(...target.map((token) => readable(token).length), 1);
  const top = 12 + 7.5 * Math.max(...source.map((token) => readable(token).length), 1);
  const [width, height] = [left + CELL * source.length + 4, top + CELL * target.length + 4];
  const mark = draw("rect", { class: "row-mark", x: left, y: top, width: CELL * source.length, height: CELL, visibility: "hidden" });
  const element = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Attention matrix: rows are the ${rowLabel}, columns the ${columnLabel}` },
    ...source.map((token, s) => draw("text", { transform: `translate(${left + CELL * (s + 0.5) + 4} ${top - 6}) rotate(-90)` }, readable(token))),
    ...target.map((token, t) => draw("text", { x: left - 6, y: top + CELL * (t + 0.5) + 4, "text-anchor": "end" }, readable(token))),
    ...weights.flatMap((row, t) => row.map((weight, s) => draw("rect", {
      x: left + CELL * s, y: top + CELL * t, width: CELL, height: CELL, "fill-opacity": Math.min(weight, 1).toFixed(4),
    }, draw("title", {}, `${readable(target[t])} → ${readable(source[s])}: ${percent(weight)}`)))),
    draw("rect", { class: "frame", x: left, y: top, width: CELL * source.length, height: CELL * target.length }),
    mark);
  return {
    element,
    mark: (t) => {
      mark.setAttribute("y", top + CELL * t);
      mark.setAttribute("visibility", "visible");
    },
  };
}

function drawImageAttention(tokens, weights, image) {
  const [width, height] = [image.naturalWidth, image.naturalHeight];
  const scale = Math.max(1, Math.min(480 / width, 480 / height));
  const canvas = make("canvas", { width: Math.round(width * scale), height: Math.round(height * scale), role: "img" });
  const context = canvas.getContext("2d");
  const description = make("p", { class: "caption", "aria-live": "polite" });
  const choose = (t) => {
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === t)));
    shade(context, canvas, image, weights[t]);
    const text = `Attention for “${readable(tokens[t])}”`;
    canvas.setAttribute("aria-label", text);
    description.textContent = `${text}: brighter areas have more weight.`;
  };
  const buttons = tokens.map((token, t) => make("button", {
    type: "button", class: "token", "aria-pressed": "false", tabindex: t ? "-1" : "0",
    onmouseenter: () => choose(t), onfocus: () => choose(t), onclick: () => choose(t),
  }, readable(token)));
  addArrowKeys(buttons);
  choose(0);
  return make("div", {}, make("div", { class: "tokens" }, ...buttons), make("div", { class: "over-image" }, canvas), description);
}

// Darkens an image where the weights of a grid are low, with smooth transitions.
function shade(context, canvas, image, grid) {
  const max = Math.max(...grid.flat(), 1e-9);
  const small = make("canvas", { width: grid[0].length, height: grid.length });
  const pixels = small.getContext("2d").createImageData(small.width, small.height);
  grid.flat().forEach((weight, i) => { pixels.data[4 * i + 3] = 255 * 0.85 * (1 - weight / max); });
  small.getContext("2d").putImageData(pixels, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  context.imageSmoothingEnabled = true;
  context.drawImage(small, 0, 0, canvas.width, canvas.height);
}

function drawPointAttention(points, order, weights) {
  const side = 400, margin = 20;
  const edges = [0, 1].map((axis) => {
    const values = points.map((point) => point[axis]);
    return [Math.min(...values), Math.max(...values)];
  });
  const span = Math.max(...edges.map(([low, high]) => high - low), 1e-9);
  const scale = ([x, y]) => [
    margin + ((x - edges[0][0]) / span) * (side - 2 * margin),
    side - margin - ((y - edges[1][0]) / span) * (side - 2 * margin),
  ];
  const line = (from, to, attributes) => {
    const [[x1, y1], [x2, y2]] = [scale(points[from]), scale(points[to])];
    return draw("line", { x1, y1, x2, y2, ...attributes });
  };
  const circle = (index, attributes) => {
    const [cx, cy] = scale(points[index]);
    return draw("circle", { cx, cy, ...attributes });
  };
  return make("div", {}, draw("svg", { class: "plane", viewBox: `0 0 ${side} ${side}`, role: "img", "aria-label": `The order: ${order.join(", ")}` },
    ...order.slice(1).map((to, i) => line(order[i], to, { "stroke-opacity": (0.25 + 0.75 * weights[i + 1][to]).toFixed(3) })),
    order.length > 2 ? line(order.at(-1), order[0], { class: "back" }) : null,
    ...points.map((_, i) => (order.includes(i) ? null : circle(i, { r: 5 }))),
    ...order.map((index) => circle(index, { r: 9, class: "named" })),
    order.length ? circle(order[0], { r: 13, class: "begin" }) : null,
    ...order.map((index, i) => {
      const [x, y] = scale(points[index]);
      return draw("text", { x, y }, String(i + 1));
    })), make("p", { class: "caption" }, "Stronger lines have more weight. The dashed line closes the path."));
}
