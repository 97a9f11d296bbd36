// @ts-check
// The links of the cursor's step between the strips: from each source token to the token that is written, as thick as
// the weight that the large map shows; nothing flows through a head that is off.

import { shape } from "./dom.js";

// Links below this weight are too thin to see.
const LEAST = 0.03;
const FLOWS = 450;
const STILL = matchMedia("(prefers-reduced-motion: reduce)");

// A line that leaves one point downwards and reaches the other from above.
export function curve([x1, y1], [x2, y2]) {
  const middle = (y1 + y2) / 2;
  return `M${x1} ${y1}C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}`;
}

export class Flow {
  constructor(view) {
    this.view = view;
    this.root = shape("svg", { class: "lv-flow", "aria-hidden": "true" });
    this.places = new Map();
  }

  // Forgets where the tokens stand, since they may have moved.
  forget() {
    this.places = new Map();
    this.shown = "";
    this.follow();
  }

  follow() {
    const links = this.links();
    const shown = JSON.stringify(links);
    if (shown === this.shown) return;
    this.shown = shown;
    const paths = links.map(({ from, to, weight }) => {
      const look = { "stroke-width": 1 + 6 * weight, opacity: 0.25 + 0.75 * weight, pathLength: 1 };
      return shape("path", { d: curve(from, to), ...look });
    });
    this.root.replaceChildren(...paths);
    if (this.view.controls.playing && !STILL.matches) for (const path of paths) stream(path);
  }

  // The links of the row of the cursor, in px from the corner of the strips.
  links() {
    const { view } = this;
    const { focus: cell } = view;
    const { drawn } = cell;
    if (!cell.values || !drawn || drawn.off || drawn !== cell.data || drawn.columns === drawn.rows) return [];
    const { rows } = cell.several;
    if (rows.length) return rows.flatMap((row) => this.linksOf(row, drawn.spans.rows[row]));
    const step = view.inbox.position("step");
    return this.linksOf(cell.row(), [step, step + 1]);
  }

  // The links of a row of the large map to the tokens of a span.
  linksOf(row, tokens) {
    const { focus: cell } = this.view;
    const to = this.placeOf("target", tokens);
    if (row < 0 || !to) return [];
    return cell.drawn.spans.columns.flatMap((span, column) => {
      const [weight, from] = [cell.weight(row, column), this.placeOf("source", span)];
      return weight < LEAST || !from ? [] : [{ weight, from: [from.x, from.bottom], to: [to.x, to.top] }];
    });
  }

  placeOf(side, span) {
    const name = `${side} ${span}`;
    if (!this.places.has(name)) this.places.set(name, this.measured(side, span));
    return this.places.get(name);
  }

  measured(side, [start, stop]) {
    const chips = this.view.strips.chips[side].slice(start, stop);
    if (!chips.length) return null;
    const corner = this.view.strips.root.getBoundingClientRect();
    const frame = chips[0].parentNode.getBoundingClientRect();
    const boxes = chips.map((chip) => chip.firstChild.getBoundingClientRect());
    const [left, right] = [Math.min(...boxes.map((box) => box.left)), Math.max(...boxes.map((box) => box.right))];
    const inside = (y) => Math.min(Math.max(y, frame.top), frame.bottom) - corner.top;
    return { x: (left + right) / 2 - corner.left, top: inside(boxes[0].top), bottom: inside(boxes[0].bottom) };
  }
}

function stream(path) {
  path.setAttribute("stroke-dasharray", "1 1");
  path.animate([{ strokeDashoffset: 1 }, { strokeDashoffset: 0 }], { duration: FLOWS, easing: "ease-out" });
}
