// Attention weights: between tokens, over an image, or among points.

import { draw, make, percent, readable, watchOverflow, wordBeginnings } from "./dom.js";

const CELL = 22; // pixels
const LOW_PROBABILITY = 0.5;

// Draws the attention of one output; `labels` names its rows and columns. `outputs.token_scores` are
// the log-probabilities of the output's tokens, if they are known.
export function drawAttention(contract, outputs, inputs, weights = outputs[contract.looks.weights], labels = null) {
  const { rows, columns } = contract.looks;
  const image = inputs[columns]?.image?.();
  if (image) return drawImageAttention(outputs[rows], weights, image, outputs.token_scores);
  // The columns are the points of an input, or an output with the tokens of a text.
  if (inputs[columns]) return drawPointAttention(inputs[columns].value(), outputs[rows], weights);
  // Two sentences that attend to each other.
  const isPair = contract.inputs.some((entry) => rows === `${entry.name}_pieces`);
  const sides = isPair ? ["first sentence", "second sentence"] : ["output", "input"];
  const scores = labels ? null : outputs.token_scores;
  return drawTokenAttention(outputs[columns], outputs[rows], weights, labels ?? sides, contract.looks, scores);
}

// Draws the weight of each token in the vector of its sentence.
export function drawTokenWeights(outputs, sides) {
  return make("div", {}, ...sides.flatMap((side) => [
    make("p", { class: "caption" }, side),
    tokenLine(side, outputs[`${side}_pieces`], outputs[`${side}_pieces`].map((token, i) => {
      const weight = outputs[`${side}_weights`][i];
      return highlight(make("span", { title: percent(weight) }, readable(token)), weight);
    })),
  ]));
}

// A line of the elements of tokens, which does not break inside words.
function tokenLine(label, tokens, elements) {
  const begins = wordBeginnings(tokens);
  const words = [];
  elements.forEach((element, i) => {
    element.classList.add("token");
    if (begins[i]) words.push(make("span", { class: "word" }));
    words.at(-1).append(element);
  });
  return make("div", { class: "tokens", role: "group", dir: "auto", "aria-label": label }, ...words);
}

// Makes a button of each token of the output, which hovering, tapping and the arrow keys select.
function drawButtons(tokens, scores, choose, describe, more = () => null) {
  const buttons = tokens.map((token, t) => make("button", {
    type: "button", "aria-pressed": "false", tabindex: t ? "-1" : "0", "aria-label": `${readable(token)}: ${describe(t)}`,
    class: scores && Math.exp(scores[t]) < LOW_PROBABILITY ? "uncertain" : "",
    onmouseenter: () => choose(t), onfocus: () => choose(t), onclick: () => choose(t),
  }, readable(token), more(t)));
  addArrowKeys(buttons);
  return buttons;
}

function press(buttons, t) {
  buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === t)));
}

function instructions(label) {
  const isTouch = matchMedia("(hover: none)").matches;
  return make("p", { class: "caption" }, isTouch ? `Tap a token of the ${label} to see its attention.`
    : `Hover over the ${label}, or use the arrow keys, to see the attention of each token.`);
}

function legend(scores, ...texts) {
  const uncertain = [make("span", { class: "uncertain" }, "Underlined"), `: token probability below ${percent(LOW_PROBABILITY)}. `];
  return make("p", { class: "caption" }, ...(scores ? uncertain : []), ...texts);
}

// The quoted token, with its probability if it is known.
const quote = (token, t, scores) => `“${readable(token)}”${scores ? ` (probability ${percent(Math.exp(scores[t]))})` : ""}`;

function highlight(element, weight) {
  const strength = Math.min(Math.max(weight, 0), 1);
  element.style.setProperty("background-color", `color-mix(in srgb, var(--highlight) ${(70 * strength).toFixed(1)}%, transparent)`);
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

function drawTokenAttention(source, target, weights, [rowLabel, columnLabel], looks, scores) {
  const totals = source.map((_, s) => weights.reduce((sum, row) => sum + row[s], 0));
  const maxTotal = Math.max(...totals, 1e-9);
  const sources = source.map((token, s) => make("span", {
    title: `total weight ${totals[s].toFixed(2)}`,
  }, readable(token), bar(totals[s] / maxTotal)));
  const description = make("p", { class: "caption", "aria-live": "polite" });
  const choose = (t) => {
    press(targets, t);
    weights[t].forEach((weight, s) => highlight(sources[s], weight));
    matrix.mark(t);
    description.textContent = `${quote(target[t], t, scores)} → ${strongest(source, weights[t])}`;
  };
  const matrix = drawMatrix(source, target, weights, [rowLabel, columnLabel], choose);
  const targets = drawButtons(target, scores, choose, (t) => strongest(source, weights[t]),
    (t) => bar(relativeEntropy(weights[t], t, looks)));
  const hint = make("p", { class: "caption", hidden: true }, "Scroll the map sideways to see all tokens.");
  watchOverflow(matrix.element, hint);
  const element = make("div", { class: "attention-map" },
    make("div", {},
      instructions(rowLabel),
      tokenLine(rowLabel, target, targets),
      tokenLine(columnLabel, source, sources),
      description,
      legend(scores, `Bars below the ${rowLabel}: attention entropy. Bars below the ${columnLabel}: total weight.`)),
    make("div", {}, hint, matrix.element));
  if (target.length) choose(0);
  return element;
}

function bar(share) {
  const element = make("span", { class: "bar" });
  element.style.setProperty("width", `calc(${(100 * share).toFixed(1)}% - .5rem)`);
  return element;
}

function strongest(source, row) {
  const order = row.map((weight, s) => [weight, s]).sort((a, b) => b[0] - a[0]).slice(0, 3);
  const top = order.filter(([weight]) => weight > 0.01).map(([weight, s]) => `${readable(source[s])} ${percent(weight)}`);
  return top.length ? top.join(", ") : "no attention";
}

// Moves the focus between buttons with the arrow keys.
function addArrowKeys(buttons) {
  buttons.forEach((button, i) => button.addEventListener("keydown", (event) => {
    const right = getComputedStyle(button.parentElement).direction === "rtl" ? -1 : 1;
    const step = { ArrowRight: right, ArrowLeft: -right, Home: -i, End: buttons.length - 1 - i }[event.key];
    const next = step === undefined ? null : buttons[i + step];
    if (!next) return;
    event.preventDefault();
    buttons.forEach((other) => other.setAttribute("tabindex", other === next ? "0" : "-1"));
    next.focus();
  }));
}

// A heat map with lines between words. The labels of its rows stay in view while it scrolls.
function drawMatrix(source, target, weights, [rowLabel, columnLabel], choose) {
  const left = 12 + 7.5 * Math.max(...target.map((token) => readable(token).length), 1);
  const top = 12 + 7.5 * Math.max(...source.map((token) => readable(token).length), 1);
  const [width, height] = [CELL * source.length, CELL * target.length];
  const size = (w) => ({ width: w, height: top + height + 4, viewBox: `0 0 ${w} ${top + height + 4}` });
  const mark = draw("rect", { class: "row-mark", x: 1, y: top, width, height: CELL, visibility: "hidden" });
  const lines = (tokens, place) => wordBeginnings(tokens).map((begins, i) => (
    begins && i ? draw("line", { class: "edge", ...place(CELL * i) }) : null));
  const label = `Attention matrix: rows are the ${rowLabel}, columns the ${columnLabel}`;
  const element = make("div", { class: "map", role: "group", "aria-label": label },
    draw("svg", { class: "row-labels", "aria-hidden": "true", ...size(left) },
      ...target.map((token, t) => draw("text", { x: left - 6, y: top + CELL * (t + 0.5) + 4, "text-anchor": "end" }, readable(token)))),
    draw("svg", { role: "img", "aria-label": label, ...size(width + 4) },
      ...source.map((token, s) => draw("text", { transform: `translate(${CELL * (s + 0.5) + 5} ${top - 6}) rotate(-90)` }, readable(token))),
      ...weights.flatMap((row, t) => row.map((weight, s) => draw("rect", {
        x: 1 + CELL * s, y: top + CELL * t, width: CELL, height: CELL, "fill-opacity": Math.min(weight, 1).toFixed(4), onclick: () => choose(t),
      }, draw("title", {}, `${readable(target[t])} → ${readable(source[s])}: ${percent(weight)}`)))),
      ...lines(source, (x) => ({ x1: 1 + x, x2: 1 + x, y1: top, y2: top + height })),
      ...lines(target, (y) => ({ x1: 1, x2: 1 + width, y1: top + y, y2: top + y })),
      draw("rect", { class: "frame", x: 1, y: top, width, height }),
      mark));
  return {
    element,
    mark: (t) => {
      mark.setAttribute("y", top + CELL * t);
      mark.setAttribute("visibility", "visible");
    },
  };
}

function drawImageAttention(tokens, weights, image, scores) {
  const [width, height] = [image.naturalWidth, image.naturalHeight];
  const scale = Math.max(1, Math.min(480 / width, 480 / height));
  const canvas = make("canvas", { width: Math.round(width * scale), height: Math.round(height * scale), role: "img" });
  const context = canvas.getContext("2d");
  const description = make("p", { class: "caption", "aria-live": "polite" });
  const choose = (t) => {
    press(buttons, t);
    shade(context, canvas, image, weights[t]);
    const text = `Attention for ${quote(tokens[t], t, scores)}`;
    canvas.setAttribute("aria-label", text);
    description.textContent = `${text}: brighter areas have more weight.`;
  };
  const buttons = drawButtons(tokens, scores, choose, () => "show its attention");
  choose(0);
  return make("div", {}, instructions("output"),
    tokenLine("output", tokens, buttons),
    make("div", { class: "over-image" }, canvas), description, ...(scores ? [legend(scores)] : []));
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
