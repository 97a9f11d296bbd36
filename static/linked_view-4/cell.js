// What all cells of the linked view share. A cell draws when its feed arrives, and follows the cursor without
// drawing again.

export const element = (tag, name, text, attributes = {}) => {
  const node = document.createElement(tag);
  if (name) node.className = name;
  if (text !== undefined) node.textContent = text;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
};
export const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
export const shape = (tag, attributes) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
};

export function decode(values) {
  if (!values || values.bdata === undefined) return values;
  const bytes = Uint8Array.from(atob(values.bdata), (c) => c.charCodeAt(0));
  return values.dtype === "f4" ? new Float32Array(bytes.buffer) : bytes;
}

// Spans [start, stop) of tokens, one for each row or column: which one holds a token, or how far they come.
export const holding = (spans, token) => spans.findIndex(([start, stop]) => start <= token && token < stop);
export const reached = (spans, token) => spans.filter(([start]) => start <= token).length - 1;

export class Cell {
  constructor(view, name) {
    Object.assign(this, { view, name, drawn: null, width: 0 });
    this.root = element("figure", `lv-cell lv-${name}`, undefined, { "data-plot": name });
    this.title = element("div", "lv-title");
    this.body = element("div", "lv-body");
    this.caption = element("figcaption", "lv-caption");
    this.root.append(this.title, this.body, this.caption);
  }

  // The feed, once it speaks of the translation on the screen.
  get data() {
    return this.view.current(this.name);
  }

  refresh(lib) {
    const [data, width] = [this.data, this.root.clientWidth];
    if (!data || !width) return false;
    if (this.drawn === data && this.width === width) return true;
    this.root.dataset.hue = data.hue || "";
    const fresh = this.drawn !== data;
    Object.assign(this, { drawn: data, width });
    this.draw(lib, data, width, fresh);
    if (data.alt) Object.entries({ role: "group", "aria-label": data.alt }).forEach((each) => this.body.setAttribute(...each));
    return true;
  }

  follow() {
    if (this.drawn && this.drawn === this.data) this.update(this.drawn);
  }

  update() {}
  ring() {}
  leave() {}
  row() { return 0; }

  words(strips) {
    const data = this.data;
    if (!data) return;
    const at = this.view.position(data.rows || data.follows) ?? 0;
    const about = (data.about || "").replace("{reads}", strips.names.reads[at]).replace("{predicts}", strips.names.predicts[at])
      .replace("{source}", strips.names.source[at]);
    this.title.replaceChildren(element("b", "", data.title), element("span", "lv-about", about));
    const step = data.rows === "step" ? ` · step ${at + 1} of ${strips.steps}` : "";
    this.caption.replaceChildren(element("span", "", data.caption.replace("{step}", step)));
    if (data.badge) this.caption.append(" · ", element("span", data.badge.passed ? "lv-badge" : "lv-badge lv-failed", data.badge.text, { title: data.badge.title, tabindex: "0" }));
    const note = data.notes && data.notes[this.row()];
    if (note) this.caption.append(element("span", "lv-note", ` · ${note}`));
    if (data.legend) this.caption.append(this.legend(data.legend));
  }

  legend({ title, marks }) {
    const line = element("span", "lv-legend", undefined, { role: "img", "aria-label": `${title}: ${marks.map(([text]) => text).join(", ")}` });
    line.append(title);
    for (const [text, color] of marks) {
      const mark = element("span", "lv-mark", text);
      mark.prepend(Object.assign(element("i"), { style: `background:${color}` }));
      line.append(mark);
    }
    return line;
  }
}

// Rows and columns of a head, and where the cursor stands among them; shared by three ways of drawing.
export const Head = (Base) => class extends Base {
  row() { return holding(this.data.spans.rows, this.view.position(this.data.rows)); }

  column() {
    const key = this.view.key(this.data);
    return key === null ? -1 : holding(this.data.spans.columns, key);
  }

  weight(row, column) { return this.values[(row * this.data.names.columns.length + column) * this.channels]; }

  sentence() { return this.data.sentences[this.row()] || [this.data.absent]; }

  says() {
    const [row, column] = this.data ? [this.row(), this.column()] : [-1, -1];
    if (!this.values || row < 0 || column < 0) return "";
    const { rows, columns } = this.data.names;
    return `${rows[row]}, ${columns[column]}: weight ${this.weight(row, column).toFixed(2)}.`;
  }

  pick(row, column) {
    const { spans } = this.data;
    this.view.pick(this.data, row < 0 ? null : spans.rows[row], column < 0 ? null : spans.columns[column]);
  }

  hover(row, column) {
    const { spans } = this.data;
    this.view.hover(this, row < 0 ? null : spans.rows[row], column < 0 ? null : spans.columns[column]);
  }
};
