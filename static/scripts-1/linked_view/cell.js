// Base of all cells of the linked view. A cell draws when its feed arrives, and then follows the cursor without
// drawing again.

import { acts } from "./acts.js";
import { Brief, Full } from "./captions.js";
import { element } from "./dom.js";
import { Several } from "./several.js";
import { holding, marked } from "./spans.js";
import { continued } from "./together.js";

export class Cell {
  constructor(view, name) {
    Object.assign(this, { view, name, drawn: null, size: "" });
    this.body = element("div", "lv-body");
    this.text = view.stage ? new Brief(this) : new Full(this);
    const parts = [this.text.title, this.body, this.text.caption];
    this.root = element("figure", `lv-cell lv-${name}`, parts, { "data-plot": name });
  }

  // The feed, if it belongs to the translation on the screen.
  get data() {
    return this.view.inbox.current(this.name);
  }

  // Whether the picture is of the feed on the screen. After a new translation it stays for a moment, under the pointer
  // too, and then says nothing.
  get live() {
    return Boolean(this.drawn) && this.drawn === this.data;
  }

  // The buttons for what can be done with the head; they stay the same while that does, so that they keep the focus.
  get acts() {
    const offered = this.data?.acts ?? [];
    if (this.offered !== `${offered}`) Object.assign(this, { offered: `${offered}`, made: acts(this, offered) });
    for (const each of this.made) {
      if (each.dataset.act === "off") each.setAttribute("aria-pressed", String(Boolean(this.data?.off)));
    }
    return this.made;
  }

  // Draws if there is something new, and returns whether the cell is up to date.
  refresh(lib) {
    const [data, room] = [this.data, this.room()];
    if (!data || !room[0]) return false;
    if (this.drawn === data && this.size === `${room}`) return true;
    this.root.dataset.hue = data.hue || "";
    this.root.classList.toggle("lv-off", Boolean(data.off));
    Object.assign(this, { drawn: data, size: `${room}` });
    this.draw(lib, data, room);
    this.describe();
    return true;
  }

  // The largest width and height that the picture may have, in px; the height is null if the page is as long as it is.
  room() {
    const { presenting, stage, left } = this.view;
    return presenting.room ?? stage?.rooms[this.name] ?? [this.root.clientWidth, left];
  }

  // The text alternative, with what it says of the row of the cursor.
  describe() {
    const { alt, alts } = this.drawn;
    this.body.setAttribute("role", "group");
    this.body.setAttribute("aria-label", [alt, alts?.[this.row()]].filter(Boolean).join(" "));
  }

  follow() {
    if (!this.live) return;
    this.update(this.drawn);
    if (this.drawn.alts) this.describe();
    if (this.drawn.silent) this.hush();
  }

  // Takes away the numbers that the picture has written, while a lesson's question is open.
  hush() {
    for (const node of this.body.querySelectorAll("[title]")) node.removeAttribute("title");
    for (const node of this.body.querySelectorAll(".lv-share")) node.textContent = "";
  }

  update() {}
  ring() {}
  leave() {}

  // What is said of the row of the cursor; only a head has it.
  sentence() {
    return [];
  }

  // What there is to note about the row of the cursor.
  noted() {
    if (this.data && this.several?.rows.length) return "";
    return this.data?.notes?.[this.row()] ?? "";
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
    if (data) this.text.follow(data, strips, this.view.inbox.position(data.rows || data.follows) ?? 0);
  }
}

// Rows and columns of a head, and the cursor's place among them; shared by three ways of drawing.
export const Head = (Base) =>
  class extends Several(Base) {
    row() {
      return holding(this.data.spans.rows, this.view.inbox.position(this.data.rows));
    }

    column() {
      return holding(this.data.spans.columns, this.view.inbox.key(this.data));
    }

    weight(row, column) {
      return this.values[(row * this.data.names.columns.length + column) * this.channels];
    }

    sentence() {
      const { data } = this;
      const one = data.silent ? null : this.one();
      const usual = data.sentences[this.row()] || [data.absent];
      return continued(one ? this.together(one.weights) : usual, this.onKeys(one?.weights));
    }

    says() {
      const [row, column] = this.data ? [this.row(), this.column()] : [-1, -1];
      if (this.data?.silent || !this.values || row < 0 || column < 0) return "";
      return `${this.nameOf(row, column)}: ${this.data.quantity} ${this.weight(row, column).toFixed(2)}.`;
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
      if (this.live) this.view.outbox.pick(this.data, ...this.spansOf(row, column));
    }

    hover(row, column) {
      if (this.live) this.view.hover(this, ...this.spansOf(row, column));
    }

    marked(places, own) {
      return marked(this.drawn, places, own);
    }
  };
