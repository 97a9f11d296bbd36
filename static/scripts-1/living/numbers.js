// The weights of the head that is shown as a table, and as CSV for a spreadsheet.

import { button, element } from "../linked_view/dom.js";

// Texts that a spreadsheet would take for a formula get an apostrophe, as in the app.
const FORMULA = /^[=+\-@＝＋－＠\t\r]/;
const cell = (text) => `"${(FORMULA.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;

// By this first character spreadsheets know that a file is UTF-8.
const MARK = "\ufeff";

// Rows of a CSV file: the names of the columns, then each row with its name.
export function csv({ rows, columns }, weights) {
  const width = columns.length;
  const lines = rows.map((name, i) => [cell(name), ...weights.slice(i * width, (i + 1) * width)].join(","));
  return MARK + [["", ...columns].map(cell).join(","), ...lines, ""].join("\r\n");
}

const MOST = 256 * 256; // cells of a table

export class Numbers {
  constructor(run, name) {
    Object.assign(this, { run, name });
    this.told = element("summary");
    this.body = element("div", "living-table");
    const save = button("lv-button", "CSV", () => this.download());
    this.root = element("details", "living-numbers", [this.told, save, this.body]);
    this.root.addEventListener("toggle", () => this.write());
  }

  show(head) {
    this.head = head;
    const layers = this.run.kinds[this.name].shared.choice.names; // of what has no heads
    this.title = `Numbers of ${layers?.[head[0]] ?? `layer ${head[0] + 1}, head ${head[1] + 1}`}`;
    this.told.textContent = this.title;
    this.write();
  }

  get names() {
    return this.run.kinds[this.name].shared.names;
  }

  get weights() {
    return this.run.weights(this.name, this.head).map((each) => each.toFixed(this.run.decimals(this.name)));
  }

  // Written only while it is open.
  write() {
    if (!this.root.open) return;
    const { rows, columns } = this.names;
    if (rows.length * columns.length > MOST) {
      this.body.replaceChildren("Too many for a table; the CSV file has them all.");
      return;
    }
    const { weights } = this;
    const head = [element("td"), ...columns.map((name) => element("th", "", name, { scope: "col" }))];
    const lines = rows.map((name, i) => {
      const own = weights.slice(i * columns.length, (i + 1) * columns.length);
      const cells = own.map((each) => element("td", "", each));
      return element("tr", "", [element("th", "", name, { scope: "row" }), ...cells]);
    });
    const parts = [element("caption", "", this.title), element("tr", "", head), ...lines];
    this.body.replaceChildren(element("table", "", parts));
  }

  download() {
    const href = URL.createObjectURL(new Blob([csv(this.names, this.weights)], { type: "text/csv" }));
    const download = `${this.name}-${this.head[0] + 1}.${this.head[1] + 1}.csv`;
    element("a", "", "", { href, download }).click();
    setTimeout(() => URL.revokeObjectURL(href), 1000);
  }
}
