// Shows an excerpt below each result of the search, from the texts in search-texts.js.
"use strict";

(() => {
  const LENGTH = 240; // characters of an excerpt
  const output = document.getElementById("search-results");
  const query = new URLSearchParams(location.search).get("q") ?? "";
  const stemmer = typeof Stemmer === "undefined" ? null : new Stemmer();
  const escape = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  // A word in any form: `alignments` also finds `alignment`.
  const stems = query.toLowerCase().match(/[\p{L}\p{N}_]+/gu)?.map((word) => {
    const stem = stemmer?.stemWord(word) ?? word;
    return word.startsWith(stem) ? stem : word;
  }) ?? [];
  if (!output || !stems.length) return;
  const patterns = stems.map((stem) => new RegExp(`(?<![\\p{L}\\p{N}])${escape(stem)}[\\p{L}\\p{N}]*`, "giu"));
  const anyWord = new RegExp(patterns.map((pattern) => pattern.source).join("|"), "giu");

  // The place of a text with the most different words of the query, and their number.
  function bestPlace(text) {
    const places = patterns.flatMap((pattern, word) => [...text.matchAll(pattern)].map(({ index }) => [index, word]));
    places.sort(([a], [b]) => a - b);
    let best = { words: 0, begin: 0 };
    places.forEach(([begin], i) => {
      const near = places.slice(i).filter(([index]) => index < begin + LENGTH - 40);
      const words = new Set(near.map(([, word]) => word)).size;
      if (words > best.words) best = { words, begin };
    });
    return best;
  }

  // The section of a page that fits best: the one that the result links to, if it has the words.
  function findSection(page, anchor) {
    const sections = (SEARCH_TEXTS[page] ?? []).map(([id, title, text]) => {
      const inTitle = patterns.filter((pattern) => title.search(pattern) >= 0).length;
      return { id, title, text, ...bestPlace(text), inTitle };
    });
    const linked = sections.find(({ id }) => id === anchor);
    if (linked && (linked.words || linked.inTitle)) return linked;
    return sections.reduce((best, each) => (
      each.words + each.inTitle > (best ? best.words + best.inTitle : 0) ? each : best), null) ?? linked ?? sections[0];
  }

  function excerpt({ text, begin }) {
    let from = Math.max(0, begin - LENGTH / 3);
    if (from) from = text.indexOf(" ", from) + 1;
    let to = Math.min(text.length, from + LENGTH);
    if (to < text.length) to = Math.max(text.lastIndexOf(" ", to), from + 1);
    const part = text.slice(from, to);
    const element = document.createElement("p");
    element.className = "excerpt";
    element.append(from ? "… " : "");
    let end = 0;
    for (const { 0: word, index } of part.matchAll(anyWord)) {
      const mark = document.createElement("mark");
      mark.textContent = word;
      element.append(part.slice(end, index), mark);
      end = index + word.length;
    }
    element.append(part.slice(end), to < text.length ? " …" : "");
    return element;
  }

  function addExcerpt(item) {
    const link = item.querySelector("a");
    const [address, anchor] = link.getAttribute("href").split("#");
    const page = address.replace(/\.html(\?.*)?$/, "").replace(/^\.\//, "");
    const section = findSection(page, anchor);
    if (!section?.text) return;
    if (section.id !== anchor && section !== SEARCH_TEXTS[page][0] && section.title !== SEARCH_TEXTS[page][0][1]) {
      const more = document.createElement("a");
      more.className = "section";
      more.href = `${address}#${section.id}`;
      more.textContent = section.title;
      item.append(" › ", more);
    }
    item.append(excerpt(section));
  }

  const add = () => output.querySelectorAll("ul.search > li:not([data-excerpt])").forEach((item) => {
    item.dataset.excerpt = "";
    addExcerpt(item);
  });
  new MutationObserver(add).observe(output, { childList: true, subtree: true });
  add();
})();
