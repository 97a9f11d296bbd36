// Creates HTML and SVG nodes.

const SVG = "http://www.w3.org/2000/svg";

// Gives a node attributes, and what is in it: texts and nodes, one or a list.
function filled(node, content, attributes) {
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...[content ?? []].flat());
  return node;
}

export function element(tag, name = "", content = [], attributes = {}) {
  const node = filled(document.createElement(tag), content, attributes);
  if (name) node.className = name;
  return node;
}

export const shape = (tag, attributes, content = []) => filled(document.createElementNS(SVG, tag), content, attributes);

export function button(name, content, act, attributes = {}) {
  const node = element("button", name, content, { type: "button", ...attributes });
  node.addEventListener("click", act);
  return node;
}

// Styles in px: `{ left: 4 }` becomes `left: 4px`.
export function place(node, box) {
  for (const [name, value] of Object.entries(box)) node.style.setProperty(name, `${value}px`);
}
