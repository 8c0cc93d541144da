// Creates HTML and SVG elements. Text is never interpreted as markup.

const SVG = "http://www.w3.org/2000/svg";

export function make(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function draw(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

// While the content of an element is wider than the element, the keyboard can scroll it, and a hint
// is shown.
export function watchOverflow(element, hint = null) {
  new ResizeObserver(() => {
    const overflows = element.scrollWidth > element.clientWidth;
    if (overflows) element.setAttribute("tabindex", "0");
    else element.removeAttribute("tabindex");
    if (hint) hint.hidden = !overflows;
  }).observe(element);
  return element;
}

export const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)}%`;

// Returns a token for display: SentencePiece's sign for a space becomes a space.
export const readable = (token) => token.replace(/^▁/, "").replace(/▁/g, " ") || "␣";

// Whether each token begins a word; without SentencePiece's signs for spaces, every token does.
export function wordBeginnings(tokens) {
  const isMarked = tokens.some((token) => token.startsWith("▁"));
  return tokens.map((token, i) => i === 0 || !isMarked || /^(▁|<.+>$)/.test(token));
}
