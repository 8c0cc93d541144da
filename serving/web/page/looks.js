// Where a model looked: beside its words, over its image, among its points.

import { draw, make, percent, readable } from "./dom.js";

const CELL = 22;

export function picture(contract, outputs, inputs, looks = outputs[contract.looks.weights], names = null) {
  const { rows, columns } = contract.looks;
  const kinds = Object.fromEntries(contract.inputs.map((entry) => [entry.name, entry.kind]));
  if (kinds[columns] === "image") return overImage(outputs[rows], looks, inputs[columns].image());
  if (kinds[columns] === "points") return amongPoints(inputs[columns].value(), outputs[rows], looks);
  const between = contract.answer_kind === "number"; // two sentences look at each other
  const sides = between ? ["the first", "the second"] : ["what was written", "what was read"];
  return besideWords(outputs[columns], outputs[rows], looks, names ?? sides);
}

// What each sentence's vector rests on, where there is no look from one to the other.
export function shares(outputs, sides) {
  return make("div", {}, ...sides.flatMap((side) => [
    make("p", { class: "caption" }, side),
    make("div", { class: "pieces" }, ...outputs[`${side}_pieces`].map((piece, i) => {
      const share = outputs[`${side}_weights`][i];
      return lit(make("span", { class: "piece", title: percent(share) }, readable(piece)), share);
    })),
  ]));
}

function lit(element, share) {
  const strength = Math.min(Math.max(share, 0), 1);
  element.style.setProperty("background-color", `color-mix(in srgb, var(--blue) ${(70 * strength).toFixed(1)}%, transparent)`);
  return element;
}

// Nats of uncertainty about where to look, as a share of what even attention would have.
function entropy(row) {
  const total = row.reduce((sum, w) => sum + w, 0);
  if (!total || row.length < 2) return 0;
  const nats = row.reduce((sum, w) => sum - (w > 0 ? (w / total) * Math.log(w / total) : 0), 0);
  return nats / Math.log(row.length);
}

function besideWords(source, target, weights, [written, read]) {
  const covered = source.map((_, s) => weights.reduce((sum, row) => sum + row[s], 0));
  const most = Math.max(...covered, 1e-9);
  const sources = source.map((piece, s) => make("span", {
    class: "piece", title: `looked at ${covered[s].toFixed(2)} times in all`,
  }, readable(piece), bar(covered[s] / most)));
  const told = make("p", { class: "caption", "aria-live": "polite" });
  const map = heatMap(source, target, weights, [written, read]);
  const choose = (t) => {
    targets.forEach((button, i) => button.setAttribute("aria-pressed", String(i === t)));
    weights[t].forEach((share, s) => lit(sources[s], share));
    map.mark(t);
    told.textContent = describe(source, target[t], weights[t]);
  };
  const targets = target.map((piece, t) => make("button", {
    type: "button", class: "piece", "aria-pressed": "false", tabindex: t ? "-1" : "0",
    onmouseenter: () => choose(t), onfocus: () => choose(t), onclick: () => choose(t),
    "aria-label": `${readable(piece)}: ${describe(source, piece, weights[t])}`,
  }, readable(piece), bar(entropy(weights[t]))));
  const element = make("div", {},
    make("p", { class: "caption" }, `Hover or move with the arrow keys over ${written}; what it looked at lights up.`),
    make("div", { class: "pieces", role: "group", "aria-label": written }, ...targets),
    make("div", { class: "pieces", role: "group", "aria-label": read }, ...sources),
    told,
    make("div", { class: "map" }, map.element),
    make("p", { class: "caption" }, `Bars below ${written}: how spread the look was. Below ${read}: how much it was looked at in all.`),
  );
  walk(targets);
  if (target.length) choose(0);
  return element;
}

function bar(share) {
  const element = make("span", { class: "bar" });
  element.style.setProperty("width", `calc(${(100 * share).toFixed(1)}% - .5rem)`);
  return element;
}

function describe(source, piece, row) {
  const order = row.map((share, s) => [share, s]).sort((a, b) => b[0] - a[0]).slice(0, 3);
  const parts = order.filter(([share]) => share > 0.01).map(([share, s]) => `${readable(source[s])} ${percent(share)}`);
  return parts.length ? `“${readable(piece)}” looked at ${parts.join(", ")}` : `“${readable(piece)}” looked nowhere`;
}

// The arrow keys go from one button to the next.
function walk(buttons) {
  buttons.forEach((button, i) => button.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -i, End: buttons.length - 1 - i }[event.key];
    const next = step === undefined ? null : buttons[i + step];
    if (!next) return;
    event.preventDefault();
    buttons.forEach((one) => one.setAttribute("tabindex", one === next ? "0" : "-1"));
    next.focus();
  }));
}

function heatMap(source, target, weights, [written, read]) {
  const left = 12 + 7.5 * Math.max(...target.map((piece) => readable(piece).length), 1);
  const top = 12 + 7.5 * Math.max(...source.map((piece) => readable(piece).length), 1);
  const [width, height] = [left + CELL * source.length + 4, top + CELL * target.length + 4];
  const mark = draw("rect", { class: "row-mark", x: left, y: top, width: CELL * source.length, height: CELL, visibility: "hidden" });
  const element = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `The weights as a map: rows are ${written}, columns ${read}` },
    ...source.map((piece, s) => draw("text", { transform: `translate(${left + CELL * (s + 0.5) + 4} ${top - 6}) rotate(-90)` }, readable(piece))),
    ...target.map((piece, t) => draw("text", { x: left - 6, y: top + CELL * (t + 0.5) + 4, "text-anchor": "end" }, readable(piece))),
    ...weights.flatMap((row, t) => row.map((share, s) => draw("rect", {
      x: left + CELL * s, y: top + CELL * t, width: CELL, height: CELL, "fill-opacity": Math.min(share, 1).toFixed(4),
    }, draw("title", {}, `${readable(target[t])} → ${readable(source[s])}: ${percent(share)}`)))),
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

function overImage(pieces, looks, image) {
  const [width, height] = [image.naturalWidth, image.naturalHeight];
  const scale = Math.max(1, Math.min(480 / width, 480 / height));
  const canvas = make("canvas", { width: Math.round(width * scale), height: Math.round(height * scale), role: "img" });
  const context = canvas.getContext("2d");
  const told = make("p", { class: "caption", "aria-live": "polite" });
  const choose = (t) => {
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === t)));
    shade(context, canvas, image, looks[t]);
    canvas.setAttribute("aria-label", `Where it looked for ${readable(pieces[t])}`);
    told.textContent = `Bright: where it looked for “${readable(pieces[t])}”`;
  };
  const buttons = pieces.map((piece, t) => make("button", {
    type: "button", class: "piece", "aria-pressed": "false", tabindex: t ? "-1" : "0",
    onmouseenter: () => choose(t), onfocus: () => choose(t), onclick: () => choose(t),
  }, readable(piece)));
  walk(buttons);
  choose(0);
  return make("div", {}, make("div", { class: "pieces" }, ...buttons), make("div", { class: "over-image" }, canvas), told);
}

// The image, dark where nothing was looked at; between the cells as a lens would see it.
function shade(context, canvas, image, grid) {
  const most = Math.max(...grid.flat(), 1e-9);
  const small = make("canvas", { width: grid[0].length, height: grid.length });
  const pixels = small.getContext("2d").createImageData(small.width, small.height);
  grid.flat().forEach((share, i) => { pixels.data[4 * i + 3] = 255 * 0.85 * (1 - share / most); });
  small.getContext("2d").putImageData(pixels, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  context.imageSmoothingEnabled = true;
  context.drawImage(small, 0, 0, canvas.width, canvas.height);
}

function amongPoints(points, answer, looks) {
  const side = 400, margin = 20;
  const edges = [0, 1].map((axis) => {
    const values = points.map((point) => point[axis]);
    return [Math.min(...values), Math.max(...values)];
  });
  const span = Math.max(...edges.map(([low, high]) => high - low), 1e-9);
  const place = ([x, y]) => [
    margin + ((x - edges[0][0]) / span) * (side - 2 * margin),
    side - margin - ((y - edges[1][0]) / span) * (side - 2 * margin),
  ];
  const line = (from, to, attributes) => {
    const [[x1, y1], [x2, y2]] = [place(points[from]), place(points[to])];
    return draw("line", { x1, y1, x2, y2, ...attributes });
  };
  const circle = (at, attributes) => {
    const [cx, cy] = place(points[at]);
    return draw("circle", { cx, cy, ...attributes });
  };
  return make("div", {}, draw("svg", { class: "plane", viewBox: `0 0 ${side} ${side}`, role: "img", "aria-label": `The order: ${answer.join(", ")}` },
    ...answer.slice(1).map((to, i) => line(answer[i], to, { "stroke-opacity": (0.25 + 0.75 * looks[i + 1][to]).toFixed(3) })),
    answer.length > 2 ? line(answer.at(-1), answer[0], { class: "back" }) : null,
    ...points.map((_, i) => (answer.includes(i) ? null : circle(i, { r: 5 }))),
    ...answer.map((at) => circle(at, { r: 9, class: "named" })),
    answer.length ? circle(answer[0], { r: 13, class: "begin" }) : null,
    ...answer.map((at, i) => {
      const [x, y] = place(points[at]);
      return draw("text", { x, y }, String(i + 1));
    })), make("p", { class: "caption" }, "The stronger a line, the surer the model was of where it leads; the dashed one leads back to the first."));
}
