// Draws what the linked view asks plotly.js for, on a canvas: a library with the calls that its cells make. In a
// file it stands in the place of `linked_view/library.js`; the style of the view is there already.

import { element } from "../linked_view/dom.js";
import { Canvas } from "../page/canvas.js";
import { toImage } from "../page/file.js";

// One figure and what listens to its pointer. Its frame has the name of plotly.js's own, into which cells lay boxes.
class Drawing {
  constructor(node) {
    this.heard = {};
    this.frame = element("div", "svg-container pic pic-plot");
    this.canvas = new Canvas(this.frame);
    node.replaceChildren(this.frame);
    node.on = (event, action) => (this.heard[event] = action);
    this.frame.addEventListener("pointermove", (event) => this.point(event));
    this.frame.addEventListener("pointerleave", () => this.leave());
    this.frame.addEventListener("click", (event) => this.say("plotly_click", this.under(event)));
  }

  say(event, point) {
    if (point) this.heard[event]?.({ points: [point] });
  }

  under({ clientX, clientY }) {
    const box = this.frame.getBoundingClientRect();
    const found = this.canvas.hit(clientX - box.left, clientY - box.top);
    return found && { ...found, x: found.column, y: found.row };
  }

  point(event) {
    const found = this.under(event);
    if (found) this.say("plotly_hover", found);
    else this.leave();
  }

  leave() {
    this.heard.plotly_unhover?.();
  }
}

const drawings = new WeakMap();

export const library = {
  toImage,

  react(node, traces, layout) {
    if (!drawings.has(node)) drawings.set(node, new Drawing(node));
    const { frame, canvas } = drawings.get(node);
    frame.style.height = `${layout.height}px`;
    frame.style.width = `${layout.width}px`;
    canvas.draw(traces, layout);
  },

  purge(node) {
    drawings.delete(node);
    node.replaceChildren();
  },
};

export const fetchPlotly = () => Promise.resolve(library);
