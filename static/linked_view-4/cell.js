// Base of all cells of the linked view. A cell draws when its feed arrives, and then follows the cursor without
// drawing again.

import { element } from "./dom.js";
import { holding, marked } from "./spans.js";
import { filled } from "./text.js";

export class Cell {
  constructor(view, name) {
    Object.assign(this, { view, name, drawn: null, width: 0 });
    this.root = element("figure", `lv-cell lv-${name}`, undefined, { "data-plot": name });
    this.title = element("div", "lv-title");
    this.body = element("div", "lv-body");
    this.caption = element("figcaption", "lv-caption");
    this.root.append(this.title, this.body, this.caption);
  }

  // The feed, if it belongs to the translation on the screen.
  get data() {
    return this.view.current(this.name);
  }

  // Draws if there is something new, and returns whether the cell is up to date.
  refresh(lib) {
    const [data, width] = [this.data, this.root.clientWidth];
    if (!data || !width) return false;
    if (this.drawn === data && this.width === width) return true;
    this.root.dataset.hue = data.hue || "";
    const fresh = this.drawn !== data;
    Object.assign(this, { drawn: data, width });
    this.draw(lib, data, width, fresh);
    if (data.alt) this.describe(data.alt);
    return true;
  }

  describe(text) {
    this.body.setAttribute("role", "group");
    this.body.setAttribute("aria-label", text);
  }

  follow() {
    if (this.drawn && this.drawn === this.data) this.update(this.drawn);
  }

  update() {}
  ring() {}
  leave() {}

  // What is said of the row of the cursor; only a head has it.
  sentence() {
    return [];
  }

  says() {
    return "";
  }

  row() {
    return 0;
  }

  // Title and caption, which follow the cursor.
  words(strips) {
    const data = this.data;
    if (!data) return;
    const at = this.view.position(data.rows || data.follows) ?? 0;
    const about = filled(data.about || "", strips.names, at);
    this.title.replaceChildren(element("b", "", data.title), element("span", "lv-about", about));
    const step = data.rows === "step" ? ` · step ${at + 1} of ${strips.steps}` : "";
    this.caption.replaceChildren(element("span", "", data.caption.replace("{step}", step)));
    if (data.badge) this.caption.append(" · ", badge(data.badge));
    const note = data.notes && data.notes[this.row()];
    if (note) this.caption.append(element("span", "lv-note", ` · ${note}`));
    if (data.legend) this.caption.append(legend(data.legend));
  }
}

function badge({ passed, text, title }) {
  return element("span", passed ? "lv-badge" : "lv-badge lv-failed", text, { title, tabindex: "0" });
}

function legend({ title, marks }) {
  const texts = marks.map(([text]) => text).join(", ");
  const line = element("span", "lv-legend", undefined, { role: "img", "aria-label": `${title}: ${texts}` });
  line.append(title);
  for (const [text, color] of marks) {
    const sample = element("i");
    sample.style.background = color;
    const mark = element("span", "lv-mark", text);
    mark.prepend(sample);
    line.append(mark);
  }
  return line;
}

// Rows and columns of a head, and the cursor's place among them; shared by three ways of drawing.
export const Head = (Base) =>
  class extends Base {
    row() {
      return holding(this.data.spans.rows, this.view.position(this.data.rows));
    }

    column() {
      return holding(this.data.spans.columns, this.view.key(this.data));
    }

    weight(row, column) {
      return this.values[(row * this.data.names.columns.length + column) * this.channels];
    }

    sentence() {
      return this.data.sentences[this.row()] || [this.data.absent];
    }

    says() {
      const [row, column] = this.data ? [this.row(), this.column()] : [-1, -1];
      if (!this.values || row < 0 || column < 0) return "";
      return `${this.nameOf(row, column)}: weight ${this.weight(row, column).toFixed(2)}.`;
    }

    nameOf(row, column) {
      const { rows, columns } = this.data.names;
      return `${rows[row]}, ${columns[column]}`;
    }

    // The spans of a row and a column; -1 stands for none.
    spansOf(row, column) {
      const { rows, columns } = this.data.spans;
      return [row < 0 ? null : rows[row], column < 0 ? null : columns[column]];
    }

    pick(row, column) {
      this.view.pick(this.data, ...this.spansOf(row, column));
    }

    hover(row, column) {
      this.view.hover(this, ...this.spansOf(row, column));
    }

    marked(places, own) {
      return marked(this.drawn, places, own);
    }
  };
