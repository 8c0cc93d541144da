// What is given to a model: texts, an image, points. Each input has `element`, `value`, `set`.

import { draw, make } from "./dom.js";

const MAKERS = { text: textInput, image: imageInput, points: pointsInput };

export function inputFor(entry, changed) {
  return MAKERS[entry.kind](entry, changed);
}

function textInput(entry, changed) {
  const area = make("textarea", {
    id: `input-${entry.name}`, name: entry.name, spellcheck: "false", dir: "auto", oninput: changed,
  });
  return {
    element: make("div", {}, make("label", { for: area.id }, entry.name), area),
    value: () => area.value,
    isEmpty: () => area.value === "",
    link: () => area.value,
    set: (text) => { area.value = text; changed(); },
  };
}

function imageInput(entry, changed) {
  let encoded = null;
  let shown = make("img", { alt: "The image that is asked about", hidden: true });
  const told = make("span", {}, "Drop an image here, or choose one");
  const file = make("input", {
    type: "file", accept: "image/png,image/jpeg,image/gif,image/bmp", id: `input-${entry.name}`,
    onchange: () => file.files.length && take(file.files[0]),
  });
  const take = async (chosen) => {
    encoded = base64(new Uint8Array(await chosen.arrayBuffer()));
    // An element of its own, for the one before may still be looked at.
    const next = make("img", { alt: shown.alt, src: URL.createObjectURL(chosen) });
    shown.replaceWith(next);
    shown = next;
    told.textContent = chosen.name;
    changed();
  };
  const zone = make("label", {
    class: "drop", for: file.id,
    ondragover: (event) => { event.preventDefault(); zone.classList.add("over"); },
    ondragleave: () => zone.classList.remove("over"),
    ondrop: (event) => {
      event.preventDefault();
      zone.classList.remove("over");
      if (event.dataTransfer.files.length) take(event.dataTransfer.files[0]);
    },
  }, shown, told, file);
  return {
    element: zone,
    value: () => ({ b64: encoded }),
    isEmpty: () => encoded === null,
    link: () => null, // too long for an address
    set: () => {},
    image: () => shown,
  };
}

function base64(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i += 0x8000) {
    text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  }
  return btoa(text);
}

const SIDE = 400;

function pointsInput(entry, changed) {
  let points = [];
  const plane = draw("svg", {
    class: "plane", viewBox: `0 0 ${SIDE} ${SIDE}`, role: "application", tabindex: "0",
    "aria-label": "A plane: click to set a point, click a point to take it away",
  });
  const list = make("textarea", {
    id: `input-${entry.name}`, spellcheck: "false", rows: "2", "aria-label": "The points as JSON",
  });
  const redraw = () => {
    plane.replaceChildren(...points.map(([x, y], i) => draw("circle", {
      cx: x * SIDE, cy: (1 - y) * SIDE, r: 7, "data-index": i,
    })));
    list.value = JSON.stringify(points);
    changed();
  };
  plane.addEventListener("click", (event) => {
    const index = event.target.dataset?.index;
    if (index !== undefined) points.splice(Number(index), 1);
    else {
      const box = plane.getBoundingClientRect();
      const x = (event.clientX - box.left) / box.width;
      const y = 1 - (event.clientY - box.top) / box.height;
      points.push([Number(x.toFixed(3)), Number(y.toFixed(3))]);
    }
    redraw();
  });
  list.addEventListener("change", () => { set(list.value); });
  const set = (text) => {
    try {
      const given = JSON.parse(text);
      points = given.filter((one) => one.length === 2 && one.every(Number.isFinite));
    } catch {
      // What is no list of points changes nothing; the plane shows what there is.
    }
    redraw();
  };
  return {
    element: make("div", {}, make("label", { for: list.id }, entry.name), plane, list),
    value: () => points,
    isEmpty: () => points.length === 0,
    link: () => JSON.stringify(points),
    set,
  };
}
