// Several rows of a head as one, and several keys: what a cell that draws a head has of them.

import { holding } from "./spans.js";
import { continued, joined, rowsOf, told, toldOfKeys } from "./together.js";

export const Several = (Base) =>
  class extends Base {
    // The rows that are looked at as one, and the columns: none, or two and more.
    get several() {
      const { data, view } = this;
      const keys = data.columns === data.rows ? [] : view.inbox.chosen(data.columns);
      return { rows: rowsOf(data.spans.rows, view.inbox.chosen(data.rows)), columns: rowsOf(data.spans.columns, keys) };
    }

    // The row that stands for several, and its name; null if there is none.
    one() {
      const { rows } = this.several;
      if (!rows.length || !this.values) return null;
      const { together } = this.view.inbox.at.chosen;
      const columns = this.data.names.columns.length;
      const cells = { values: this.values, columns, channels: this.channels };
      const seen = Array.from({ length: columns }, (_, column) => rows.some((row) => this.sees(row, column)));
      const weights = joined(cells, rows, together);
      return { weights, seen, how: together, name: `${together} of ${rows.length} rows` };
    }

    // Whether a query sees a key; a drawing without a mask does not know.
    sees() {
      return true;
    }

    // What is said of the row that stands for several. The second part of a row's sentence is its token.
    together(weights) {
      const { data, view } = this;
      const names = this.several.rows.map((row) => data.sentences[row][1]);
      const parts = told(weights, this.bare, names, view.inbox.at.chosen.together, data.quantity);
      const off = data.off ? " The head is off, so this reaches nothing." : "";
      const lost = view.inbox.chosen(data.rows).filter((token) => holding(data.spans.rows, token) < 0).length;
      return continued(parts, [lost ? `${off} Chosen tokens without a row here: ${lost}.` : off]);
    }

    // What is said of several keys, in the row of the cursor or in the one that stands for several.
    onKeys(weights) {
      const { data, view } = this;
      const { columns } = this.several;
      const row = this.row();
      if (data.silent || !columns.length || !this.values || (row < 0 && !weights)) return [];
      const there = columns.map((column) => (weights ? weights[column] : this.weight(row, column)));
      const keys = columns.map((column) => this.bare[column]);
      return toldOfKeys(there, keys, view.inbox.at.chosen.together, data.quantity);
    }

    // The tokens of the columns, without the word that says their side.
    get bare() {
      return this.data.names.columns.map((name) => name.replace(/^key /, ""));
    }
  };
