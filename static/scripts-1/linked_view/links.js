// @ts-check
// The cells that show single links: lines between queries and keys, and lists of the strongest.

import { Cell, Head } from "./cell.js";
import { clamp } from "./cursor.js";
import { button, element, place, shape } from "./dom.js";
import { nearestLine } from "./frame.js";
import { holding, reached } from "./spans.js";
import { shortened } from "./text.js";
import { decode, strength, strongest } from "./values.js";

const REACH = 7;

// Places of lines and labels in a drawing, from its width and the number of tokens on its longer side.
function drawing(width, largest, tokens) {
  const pitch = clamp(largest / tokens, 12, 26);
  const edge = clamp(width * 0.22, 70, 120);
  const right = Math.min(width, largest + 2 * edge) - edge;
  return { left: edge, right, width: right + edge, height: pitch * tokens + 8, font: Math.min(12, pitch - 1), pitch };
}

// Queries on the left, keys on the right, a line for each link; pointing at a token shows only its own lines.
export class LinesCell extends Head(Cell) {
  draw(lib, data, [width]) {
    this.values = decode(data.values);
    this.channels = 1;
    const { rows, columns } = data.names;
    this.at = drawing(width, data.largest, Math.max(rows.length, columns.length));
    this.groups = rows.map(() => shape("g", { class: "lv-query" }));
    this.bundle = shape("g", { class: "lv-query lv-current lv-bundle" });
    this.links = data.links.map((link) => this.line(data, link));
    this.labels = {
      row: data.labels.rows.map((text, i) => this.label("row", text, i)),
      column: data.labels.columns.map((text, j) => this.label("column", text, j)),
    };
    this.svg = this.picture();
    this.tip = element("div", "lv-tip", undefined, { hidden: "" });
    this.body.replaceChildren(this.svg, this.tip, ...headKeys(data.heads));
    this.alone = null;
  }

  picture() {
    const { width, height, font } = this.at;
    const parts = [...this.groups, this.bundle, ...this.labels.row, ...this.labels.column];
    const svg = shape("svg", { class: "lv-lines", width, height, "font-size": font }, parts);
    svg.addEventListener("pointermove", (event) => this.view.guard(() => this.near(event)));
    svg.addEventListener("pointerleave", () => this.view.guard(() => this.tell(null)));
    return svg;
  }

  heightOf(i) {
    return 4 + this.at.pitch * (i + 0.5);
  }

  line(data, [row, column, weight, head]) {
    const { color, dash } = data.heads[head];
    const shift = (head - (data.heads.length - 1) / 2) * 2;
    const [y1, y2] = [this.heightOf(row) + shift, this.heightOf(column) + shift];
    const look = { stroke: color, "stroke-width": Math.max(0.6, 7 * weight), "stroke-dasharray": dash };
    const node = shape("line", { x1: this.at.left, x2: this.at.right, y1, y2, ...look });
    this.groups[row].append(node);
    return { node, row, column, weight, head, y1, y2 };
  }

  label(side, text, i) {
    const look =
      side === "row" ? { x: this.at.left - 6, "text-anchor": "end" } : { x: this.at.right + 6, "text-anchor": "start" };
    const where = { class: "lv-token", y: this.heightOf(i), "dominant-baseline": "central", ...look };
    const title = shape("title", {}, this.data.names[`${side}s`][i]);
    const node = shape("text", where, [shortened(text, 13), title]);
    this.wireLabel(node, side, i);
    return node;
  }

  wireLabel(node, side, i) {
    const cell = side === "row" ? [i, -1] : [-1, i];
    const on = (event, action) => node.addEventListener(event, () => this.view.guard(action));
    on("pointerenter", () => {
      this.isolate({ [side]: i });
      this.hover(...cell);
    });
    on("pointerleave", () => {
      this.isolate(this.alone);
      this.view.hover(null);
    });
    on("click", () => {
      const again = this.alone?.[side] === i;
      this.alone = again ? null : { [side]: i };
      this.isolate(this.alone);
      this.pick(...cell);
    });
  }

  // Shows only the lines of one query or of one key; null shows every line again.
  isolate(token) {
    this.svg.classList.toggle("lv-isolated", Boolean(token));
    for (const { node, row, column } of this.links) {
      node.classList.toggle("lv-alone", Boolean(token) && (token.row === row || token.column === column));
    }
  }

  // Shows the weight of the line under the pointer.
  near(event) {
    if (!this.live) return;
    const edges = this.svg.getBoundingClientRect();
    const [x, y] = [event.clientX - edges.left, event.clientY - edges.top];
    const share = (x - this.at.left) / (this.at.right - this.at.left);
    const inside = share >= 0 && share <= 1;
    const link = inside ? nearestLine(this.shown(), share, y, REACH) : null;
    for (const each of this.links) each.node.classList.toggle("lv-under", each === link);
    if (inside && link) this.hover(link.row, link.column);
    else if (inside) this.view.hover(null);
    this.tell(link);
    place(this.tip, { left: Math.min(x + 12, edges.width - 180), top: y + 14 });
  }

  shown() {
    const isolated = this.svg.classList.contains("lv-isolated");
    return this.links.filter(({ node }) => !isolated || node.classList.contains("lv-alone"));
  }

  tell(link) {
    this.tip.hidden = !link;
    if (!link) return;
    const { heads } = this.data;
    const head = heads.length > 1 ? `${heads[link.head].name} · ` : "";
    const between = this.nameOf(link.row, link.column);
    const weight = this.data.silent ? "" : `: ${this.data.quantity} ${link.weight.toFixed(3)}`;
    this.tip.textContent = `${head}${between}${weight}`;
  }

  update(data) {
    const [row, last] = [this.row(), reached(data.spans.rows, this.view.inbox.position(data.rows))];
    for (const [i, group] of this.groups.entries()) {
      group.classList.toggle("lv-current", i === row);
      group.classList.toggle("lv-coming", data.fade && i > last);
    }
    const { rows, columns } = this.several;
    this.tie(rows);
    this.mark({ row: rows.length ? rows : row, column: columns.length ? columns : this.column() }, "lv-at");
  }

  // The lines of the row that stands for several, to every key that one of them has a line to; only of the first head.
  tie(rows) {
    const one = this.data.silent ? null : this.one();
    this.svg.classList.toggle("lv-tied", Boolean(one));
    if (!one) {
      this.bundle.replaceChildren();
      return;
    }
    const { left: x1, right: x2 } = this.at;
    const stroke = this.data.heads[0].color;
    const y1 = rows.reduce((sum, row) => sum + this.heightOf(row), 0) / rows.length;
    const keys = new Set(this.links.filter(({ row, head }) => !head && rows.includes(row)).map(({ column }) => column));
    const lines = [...keys].map((key) => {
      const look = { stroke, "stroke-width": Math.max(0.6, 7 * Math.min(1, one.weights[key])) };
      return shape("line", { x1, x2, y1, y2: this.heightOf(key), ...look });
    });
    this.bundle.replaceChildren(...lines);
  }

  ring(places, own) {
    this.mark(this.marked(places, own), "lv-hovered");
  }

  mark(cell, name) {
    for (const side of ["row", "column"]) {
      const marked = [cell[side]].flat();
      for (const [i, node] of this.labels[side].entries()) node.classList.toggle(name, marked.includes(i));
    }
  }
}

// A legend that says which line belongs to which head, if there are several heads.
function headKeys(heads) {
  if (heads.length < 2) return [];
  const marks = heads.map(({ name, color, dash }) => {
    const look = { stroke: color, "stroke-width": 4, "stroke-dasharray": dash };
    const line = shape("line", { x1: 0, x2: 28, y1: 4, y2: 4, ...look });
    return element("span", "lv-mark", [shape("svg", { width: 28, height: 8 }, line), name]);
  });
  return [element("div", "lv-heads", marks)];
}

// The keys of the chosen query and the queries of the chosen key, strongest first, and the text shaded by weight.
export class StrongestCell extends Head(Cell) {
  draw(lib, data) {
    this.values = decode(data.values);
    this.channels = 1;
    this.shades = decode(data.shades);
    this.tokens = data.labels.columns.map((text, j) => this.token(text, data.names.columns[j], j));
    const text = element("p", "lv-shaded", this.tokens, { dir: data.direction });
    this.lists = ["query", "key"].map((of) => element("div", `lv-list lv-list-${of}`));
    this.body.replaceChildren(text, element("div", "lv-lists", this.lists));
  }

  token(text, title, j) {
    const pick = () => this.view.guard(() => this.pick(-1, j));
    const node = button("lv-token", text, pick, { tabindex: "-1", title });
    const on = (event, action) => node.addEventListener(event, () => this.view.guard(action));
    on("pointerenter", () => this.hover(-1, j));
    on("pointerleave", () => this.view.hover(null));
    return node;
  }

  // The column of the chosen key; if none is chosen in self-attention, that of the token at the cursor.
  column() {
    const key = this.view.inbox.key(this.data) ?? this.view.inbox.position(this.data.rows);
    return holding(this.data.spans.columns, key);
  }

  update(data) {
    const [row, column] = [this.row(), this.column()];
    const one = data.silent ? null : this.one();
    this.shade(row, column, one);
    const { rows, columns } = data.names;
    const none = row < 0 && !one;
    const heading = { query: none ? data.absent : `${one ? one.name : rows[row]}: its keys` };
    heading.key = column < 0 ? data.absent : `${columns[column]}: its queries`;
    const keys = (j) => ({ weight: one ? one.weights[j] : this.weight(row, j), act: () => this.pick(-1, j) });
    const queries = (i) => ({ weight: this.weight(i, column), act: () => this.pick(i, -1) });
    this.lists[0].replaceChildren(...this.list(heading.query, none ? [] : entriesOf(columns, keys), "key"));
    const side = data.rows === "step" ? "row" : "query";
    this.lists[1].replaceChildren(...this.list(heading.key, column < 0 ? [] : entriesOf(rows, queries), side));
  }

  shade(row, column, one) {
    const own = (j) => (row < 0 ? 0 : this.shades[row * this.tokens.length + j] / 255);
    for (const [j, node] of this.tokens.entries()) {
      const share = one ? strength(one.weights[j], this.data.scale) : own(j);
      node.style.setProperty("--share", `${Math.round(100 * share)}%`);
      node.classList.toggle("lv-strong", share > 0.55);
      node.classList.toggle("lv-at", j === column);
    }
  }

  list(title, entries, side) {
    const { listed, more, rest } = strongest(entries, this.data.listed);
    const head = [element("caption", "", title), columnWidths(), headings(side, this.data.quantity)];
    const table = element("table", "", [...head, ...listed.map((entry) => this.entry(entry))]);
    if (!more) return [table];
    return [table, element("p", "lv-rest", `and ${more} more with ${rest.toFixed(2)} together`)];
  }

  entry({ name, weight, act }) {
    const text = element("bdi", "", shortened(name, 40));
    const token = button("lv-entry", text, () => this.view.guard(act), { title: name });
    const bar = element("i");
    bar.style.width = `${(100 * Math.min(1, weight)).toFixed(1)}%`;
    const cells = { "": token, "lv-number": weight.toFixed(2), "lv-bar": bar };
    return element("tr", "", Object.entries(cells).map(([kind, content]) => element("td", kind, content)));
  }

  ring(places, own) {
    const { column } = this.marked(places, own);
    for (const [j, node] of this.tokens.entries()) node.classList.toggle("lv-hovered", j === column);
  }
}

// Tokens with what the list says of each and what a click does, without the word that says their side.
function entriesOf(names, of) {
  return names.map((name, i) => ({ name: name.replace(/^(key|query) /, ""), ...of(i) }));
}

const columnWidths = () =>
  element("colgroup", "", ["token", "number", "bar"].map((name) => element("col", `lv-col-${name}`)));

function headings(side, quantity) {
  const over = { scope: "col", colspan: "2" };
  return element("tr", "", [element("th", "", side, { scope: "col" }), element("th", "", quantity, over)]);
}
