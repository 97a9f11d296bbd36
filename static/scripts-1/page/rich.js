// @ts-check
// Texts with little markup as DOM nodes. All else stays text, so that nothing a visitor typed becomes HTML.

import { element } from "../linked_view/dom.js";
import { plain } from "../linked_view/text.js";

const INLINE = /\\(.)|\*\*((?:\\.|[^*\\])+)\*\*|\*((?:\\.|[^*\\])+)\*/gs;
const TAG = /<(\/?)(b|i|sub|sup|br)>/g;

// Nodes for Markdown with **bold**, *emphasis* and a backslash before a character to be taken literally.
export function inline(text) {
  const nodes = [];
  let at = 0;
  let written = "";
  const flush = () => {
    if (written) nodes.push(document.createTextNode(written));
    written = "";
  };
  for (const match of text.matchAll(INLINE)) {
    written += text.slice(at, match.index);
    at = match.index + match[0].length;
    const [, escaped, bold, emphasis] = match;
    if (escaped !== undefined) {
      written += escaped;
      continue;
    }
    flush();
    nodes.push(element(bold === undefined ? "em" : "strong", "", inline(bold ?? emphasis)));
  }
  written += text.slice(at);
  flush();
  return nodes;
}

function row(line, tag) {
  const cells = line.split("|").slice(1, -1);
  return element("tr", "", cells.map((text) => element(tag, "", inline(text.trim()))));
}

// A paragraph, or a table whose second line says nothing.
function block(text) {
  if (!text.startsWith("|")) return element("p", "", inline(text));
  const [head, , ...lines] = text.split("\n");
  return element("table", "", element("tbody", "", [row(head, "th"), ...lines.map((line) => row(line, "td"))]));
}

// Fills a node with the paragraphs and tables of a text.
export function fill(root, text) {
  root.replaceChildren(...text.split("\n\n").map(block));
}

// Nodes for the markup of plotly.js in labels: <b>, <i>, <sub>, <sup> and <br>; escaped signs become themselves.
export function label(text) {
  const root = document.createDocumentFragment();
  const open = [root];
  let at = 0;
  const write = (part) => part && open.at(-1).append(plain(part));
  for (const match of text.matchAll(TAG)) {
    write(text.slice(at, match.index));
    at = match.index + match[0].length;
    const [, closes, tag] = match;
    if (tag === "br") open.at(-1).append(element("br"));
    else if (!closes) {
      const node = element(tag);
      open.at(-1).append(node);
      open.push(node);
    } else if (open.length > 1) open.pop();
  }
  write(text.slice(at));
  return root;
}
