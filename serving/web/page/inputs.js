// Input fields: text, image, points. Each has `element`, `value`, `isEmpty`, `link` and `set`; a text
// also has `problem`, the reason why its value cannot be sent.

import { draw, make } from "./dom.js";

const FIELDS = { text: textInput, image: imageInput, points: pointsInput };

// `tags` are those one of which must begin a text.
export function createInput(entry, changed, label = entry.name, tags = []) {
  return (FIELDS[entry.kind] ?? textInput)(entry, changed, label, tags);
}

function textInput(entry, changed, label, tags) {
  const area = make("textarea", {
    id: `input-${entry.name}`, name: entry.name, spellcheck: "false", dir: "auto", oninput: changed,
  });
  const select = make("select", { id: `tag-${entry.name}`, onchange: changed }, ...tags.map((tag) => make("option", {}, tag)));
  const isBlank = () => !area.value.trim();
  const value = () => (tags.length && !isBlank() ? `<${select.value}> ${area.value}` : area.value);
  return {
    element: make("div", {},
      make("div", { class: "labels" }, make("label", { for: area.id }, label),
        tags.length ? make("label", {}, "Tag ", select) : null),
      area),
    value,
    isEmpty: () => (tags.length ? isBlank() : area.value === ""),
    link: value,
    set: (text) => {
      const [tag, rest] = splitTag(text, tags);
      if (tag !== null) select.value = tag;
      area.value = rest;
      changed();
    },
    problem: () => {
      const tag = findTag(area.value, tags);
      return tag && `The text contains the tag <${tag}>. Select the tag above the text, and remove it from the text.`;
    },
  };
}

// The tag that a text begins with, or null, and the rest of the text; as `models/tags.py`.
function splitTag(text, tags) {
  const start = text.trimStart();
  const tag = tags.find((name) => start.startsWith(`<${name}>`));
  return tag === undefined ? [null, text] : [tag, start.slice(tag.length + 2).replace(/^ /, "")];
}

// A tag that a text contains anywhere: the model would read it as the tag.
function findTag(text, tags) {
  const plain = text.normalize("NFKC").toLowerCase().replace(/\p{Cc}/gu, "");
  return tags.find((tag) => plain.includes(`<${tag.toLowerCase()}>`));
}

function imageInput(entry, changed) {
  let encoded = null;
  let preview = make("img", { alt: "Input image", hidden: true });
  const label = make("span", {}, "Drop an image here, or click to choose one");
  const file = make("input", {
    type: "file", accept: "image/png,image/jpeg,image/bmp", id: `input-${entry.name}`,
    onchange: () => file.files.length && load(file.files[0]),
  });
  const load = async (chosen) => {
    encoded = base64(new Uint8Array(await chosen.arrayBuffer()));
    // A new element: the attention of the previous image may still be on display.
    const next = make("img", { alt: preview.alt, src: URL.createObjectURL(chosen) });
    preview.replaceWith(next);
    preview = next;
    label.textContent = chosen.name;
    changed();
  };
  const zone = make("label", {
    class: "drop", for: file.id,
    ondragover: (event) => { event.preventDefault(); zone.classList.add("over"); },
    ondragleave: () => zone.classList.remove("over"),
    ondrop: (event) => {
      event.preventDefault();
      zone.classList.remove("over");
      if (event.dataTransfer.files.length) load(event.dataTransfer.files[0]);
    },
  }, preview, label, file);
  return {
    element: zone,
    value: () => ({ b64: encoded }),
    isEmpty: () => encoded === null,
    link: () => null, // too long for a URL
    set: () => {},
    image: () => preview,
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
  const dimensions = entry.dimensions ?? 2; // only points of the plane can be drawn
  const plane = draw("svg", {
    class: "plane", viewBox: `0 0 ${SIDE} ${SIDE}`, role: "application", tabindex: "0",
    "aria-label": "Plane: click to add a point, click a point to remove it",
  });
  const list = make("textarea", {
    id: `input-${entry.name}`, spellcheck: "false", rows: "2", "aria-label": "Points as JSON",
  });
  const redraw = () => {
    if (dimensions === 2) plane.replaceChildren(...points.map(([x, y], i) => draw("circle", {
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
      points = JSON.parse(text).filter((point) => point.length === dimensions && point.every(Number.isFinite));
    } catch {
      // Invalid JSON changes nothing.
    }
    redraw();
  };
  return {
    element: make("div", {}, make("label", { for: list.id }, entry.name), ...(dimensions === 2 ? [plane] : []), list),
    value: () => points,
    isEmpty: () => points.length === 0,
    link: () => JSON.stringify(points),
    set,
  };
}
