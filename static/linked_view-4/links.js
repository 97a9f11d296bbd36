// The cells that show single links: lines between queries and keys, and lists of the strongest.

import { Cell, Head, clamp, decode, element, holding, reached, shape } from "./cell.js";

const LISTED = 10;
const short = (text) => (text.length > 13 ? `${text.slice(0, 12)}…` : text);

// Queries at the left, keys at the right, a line for each link; a token under the pointer stands alone.
export class LinesCell extends Head(Cell) {
  draw(lib, data, width) {
    this.values = decode(data.values);
    this.channels = 1;
    const { rows, columns } = data.names;
    const longest = Math.max(rows.length, columns.length);
    const pitch = clamp(data.largest / longest, 12, 26);
    const edge = clamp(width * 0.22, 70, 120);
    const [right, height] = [Math.min(width, data.largest + 2 * edge) - edge, pitch * longest + 8];
    this.at = { left: edge, right, pitch, y: (i) => 4 + pitch * (i + 0.5) };
    const svg = shape("svg", { class: "lv-lines", width: right + edge, height, "font-size": Math.min(12, pitch - 1) });
    this.groups = rows.map(() => shape("g", { class: "lv-query" }));
    this.links = data.links.map((link) => this.line(data, link));
    this.labels = { row: data.labels.rows.map((text, i) => this.label("row", text, i)), column: data.labels.columns.map((text, j) => this.label("column", text, j)) };
    svg.append(...this.groups, ...this.labels.row, ...this.labels.column);
    svg.addEventListener("pointermove", (event) => this.view.guard(() => this.near(event, svg)));
    svg.addEventListener("pointerleave", () => this.view.guard(() => { this.tip.hidden = true; }));
    this.tip = element("div", "lv-tip", undefined, { hidden: "" });
    this.body.replaceChildren(svg, this.tip, ...this.keys(data));
    this.alone = null;
  }

  line(data, [row, column, weight, head]) {
    const { color, dash } = data.heads[head];
    const shift = (head - (data.heads.length - 1) / 2) * 2;
    const [y1, y2] = [this.at.y(row) + shift, this.at.y(column) + shift];
    const width = Math.max(0.6, 7 * weight);
    const node = shape("line", { x1: this.at.left, x2: this.at.right, y1, y2, stroke: color, "stroke-width": width, "stroke-dasharray": dash });
    this.groups[row].append(node);
    return { node, row, column, weight, head, y1, y2 };
  }

  label(side, text, i) {
    const x = side === "row" ? this.at.left - 6 : this.at.right + 6;
    const node = shape("text", { class: "lv-token", x, y: this.at.y(i), "text-anchor": side === "row" ? "end" : "start", "dominant-baseline": "central" });
    node.textContent = short(text);
    const name = this.data.names[`${side}s`][i];
    node.append(Object.assign(shape("title", {}), { textContent: name }));
    const cell = () => (side === "row" ? [i, -1] : [-1, i]);
    node.addEventListener("pointerenter", () => this.view.guard(() => { this.isolate({ [side]: i }); this.hover(...cell()); }));
    node.addEventListener("pointerleave", () => this.view.guard(() => { this.isolate(this.alone); this.view.hover(null); }));
    node.addEventListener("click", () => this.view.guard(() => {
      const same = this.alone && this.alone[side] === i;
      this.isolate((this.alone = same ? null : { [side]: i }));
      this.pick(...cell());
    }));
    return node;
  }

  keys(data) {
    if (data.heads.length < 2) return [];
    const line = element("div", "lv-heads");
    for (const { name, color, dash } of data.heads) {
      const sample = shape("svg", { width: 28, height: 8 });
      sample.append(shape("line", { x1: 0, x2: 28, y1: 4, y2: 4, stroke: color, "stroke-width": 4, "stroke-dasharray": dash }));
      const mark = element("span", "lv-mark", name);
      mark.prepend(sample);
      line.append(mark);
    }
    return [line];
  }

  // All lines of one query or of one key; null shows every line again.
  isolate(token) {
    this.body.firstChild.classList.toggle("lv-isolated", Boolean(token));
    for (const { node, row, column } of this.links) node.classList.toggle("lv-alone", Boolean(token) && (token.row === row || token.column === column));
  }

  near(event, svg) {
    const box = svg.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const share = (x - this.at.left) / (this.at.right - this.at.left);
    const inside = share >= 0 && share <= 1;
    const away = ({ y1, y2 }) => Math.abs(y1 + share * (y2 - y1) - y);
    const isolated = this.body.firstChild.classList.contains("lv-isolated");
    const shown = inside ? this.links.filter((link) => away(link) < 7 && (!isolated || link.node.classList.contains("lv-alone"))) : [];
    const link = shown.reduce((best, each) => (best && away(best) <= away(each) ? best : each), null);
    for (const each of this.links) each.node.classList.toggle("lv-under", each === link);
    this.tip.hidden = !link;
    if (inside) this.view.hover(...(link ? [this, this.data.spans.rows[link.row], this.data.spans.columns[link.column]] : [null]));
    if (!link) return;
    const { names, heads } = this.data;
    this.tip.textContent = `${heads.length > 1 ? `${heads[link.head].name} · ` : ""}${names.rows[link.row]}, ${names.columns[link.column]}: weight ${link.weight.toFixed(3)}`;
    Object.assign(this.tip.style, { left: `${Math.min(x + 12, box.width - 180)}px`, top: `${y + 14}px` });
  }

  update(data) {
    const [row, last] = [this.row(), reached(data.spans.rows, this.view.position(data.rows))];
    this.groups.forEach((group, i) => {
      group.classList.toggle("lv-current", i === row);
      group.classList.toggle("lv-coming", data.fade && i > last);
    });
    this.mark("row", row, "lv-at");
    this.mark("column", this.column(), "lv-at");
  }

  mark(side, index, name) {
    this.labels[side].forEach((node, i) => node.classList.toggle(name, i === index));
  }

  ring(places, own) {
    const at = (spans, span) => (span ? holding(spans, span[0]) : -1);
    const { rows, columns, spans } = this.drawn;
    this.mark("row", places ? at(spans.rows, own ? places.row : places[rows]) : -1, "lv-hovered");
    this.mark("column", places ? at(spans.columns, own ? places.column : rows === columns ? null : places[columns]) : -1, "lv-hovered");
  }
}

// The chosen query's keys and the chosen key's queries, strongest first, and the text shaded by weight.
export class StrongestCell extends Head(Cell) {
  draw(lib, data) {
    this.values = decode(data.values);
    this.channels = 1;
    this.shades = decode(data.shades);
    this.text = element("p", "lv-shaded", undefined, { dir: data.direction });
    this.tokens = data.labels.columns.map((text, j) => {
      const node = element("button", "lv-token", text, { type: "button", tabindex: "-1", title: data.names.columns[j] });
      node.addEventListener("click", () => this.view.guard(() => this.pick(-1, j)));
      node.addEventListener("pointerenter", () => this.view.guard(() => this.hover(-1, j)));
      node.addEventListener("pointerleave", () => this.view.guard(() => this.view.hover(null)));
      return node;
    });
    this.text.append(...this.tokens);
    this.lists = ["query", "key"].map((of) => element("div", `lv-list lv-list-${of}`));
    const pair = element("div", "lv-lists");
    pair.append(...this.lists);
    this.body.replaceChildren(this.text, pair);
  }

  // Without a chosen key: in self-attention the token of the cursor itself, as a key.
  column() {
    const key = this.view.key(this.data);
    return holding(this.data.spans.columns, key === null ? this.view.position(this.data.rows) : key);
  }

  update(data) {
    const [row, column] = [this.row(), this.column()];
    const { rows, columns } = data.names;
    this.tokens.forEach((node, j) => {
      const share = row < 0 ? 0 : this.shades[row * columns.length + j] / 255;
      node.style.setProperty("--share", `${Math.round(100 * share)}%`);
      node.classList.toggle("lv-strong", share > 0.55);
      node.classList.toggle("lv-at", j === column);
    });
    const keys = row < 0 ? [] : columns.map((name, j) => [name.replace(/^key /, ""), this.weight(row, j), () => this.pick(-1, j)]);
    const queries = column < 0 ? [] : rows.map((name, i) => [name.replace(/^query /, ""), this.weight(i, column), () => this.pick(i, -1)]);
    this.list(this.lists[0], row < 0 ? data.absent : `${rows[row]}: its keys`, keys, "key");
    this.list(this.lists[1], column < 0 ? data.absent : `${columns[column]}: its queries`, queries, data.rows === "step" ? "row" : "query");
  }

  list(place, title, all, head) {
    const seen = all.filter(([, weight]) => weight > 0).sort((one, other) => other[1] - one[1]);
    const table = element("table");
    const widths = element("colgroup");
    for (const name of ["token", "number", "bar"]) widths.append(element("col", `lv-col-${name}`));
    table.append(element("caption", "", title), widths);
    const line = element("tr");
    line.append(element("th", "", head, { scope: "col" }), element("th", "", "weight", { scope: "col", colspan: "2" }));
    table.append(line);
    for (const [name, weight, act] of seen.slice(0, LISTED)) {
      const entry = element("tr");
      const token = element("td");
      const button = element("button", "lv-entry", undefined, { type: "button", title: name });
      button.append(element("bdi", "", name.length > 40 ? `${name.slice(0, 39)}…` : name));
      button.addEventListener("click", () => this.view.guard(act));
      token.append(button);
      const bar = element("td", "lv-bar");
      bar.append(Object.assign(element("i"), { style: `width:${(100 * weight).toFixed(1)}%` }));
      entry.append(token, element("td", "lv-number", weight.toFixed(2)), bar);
      table.append(entry);
    }
    const rest = seen.slice(LISTED).reduce((sum, [, weight]) => sum + weight, 0);
    place.replaceChildren(table);
    if (seen.length > LISTED) place.append(element("p", "lv-rest", `and ${seen.length - LISTED} more with ${rest.toFixed(2)} together`));
  }

  ring(places, own) {
    const { rows, columns, spans } = this.drawn;
    const span = places && (own ? places.column : rows === columns ? null : places[columns]);
    const column = span ? holding(spans.columns, span[0]) : -1;
    this.tokens.forEach((node, j) => node.classList.toggle("lv-hovered", j === column));
  }
}
