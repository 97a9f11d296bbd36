// Creates HTML and SVG nodes.

const SVG = "http://www.w3.org/2000/svg";

function withAttributes(node, attributes) {
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

export function element(tag, name, text, attributes = {}) {
  const node = document.createElement(tag);
  if (name) node.className = name;
  if (text !== undefined) node.textContent = text;
  return withAttributes(node, attributes);
}

export function shape(tag, attributes) {
  return withAttributes(document.createElementNS(SVG, tag), attributes);
}

// Styles in px: `{ left: 4 }` becomes `left: 4px`.
export function place(node, box) {
  for (const [name, value] of Object.entries(box)) node.style.setProperty(name, `${value}px`);
}
