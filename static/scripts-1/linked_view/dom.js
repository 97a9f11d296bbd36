// @ts-check
// Creates HTML and SVG nodes.
/** @typedef {string | Node | (string | Node)[]} Content */
/** @typedef {Record<string, any>} Attributes */

const SVG = "http://www.w3.org/2000/svg";

// Gives a node attributes, and what is in it: texts and nodes, one or a list.
function filled(node, content, attributes) {
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...[content ?? []].flat());
  return node;
}

/** @type {(tag: string, name?: string, content?: Content, attributes?: Attributes) => any} */
export function element(tag, name = "", content = [], attributes = {}) {
  const node = filled(document.createElement(tag), content, attributes);
  if (name) node.className = name;
  return node;
}

/** @type {(tag: string, attributes: Attributes, content?: Content) => any} */
export const shape = (tag, attributes, content = []) => filled(document.createElementNS(SVG, tag), content, attributes);

/** @type {(name: string, content: Content, act: (event: any) => void, attributes?: Attributes) => any} */
export function button(name, content, act, attributes = {}) {
  const node = element("button", name, content, { type: "button", ...attributes });
  node.addEventListener("click", act);
  return node;
}

// Styles in px: `{ left: 4 }` becomes `left: 4px`.
/** @type {(node: HTMLElement, box: Record<string, number>) => void} */
export function place(node, box) {
  for (const [name, value] of Object.entries(box)) node.style.setProperty(name, `${value}px`);
}
