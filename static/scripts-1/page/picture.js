// One figure with its caption. Figures of cells, lines and labels are drawn on a canvas; other figures by plotly.js.

import { element, place } from "../linked_view/dom.js";
import { fetchPlotly } from "../linked_view/library.js";
import { Canvas, canDraw } from "./canvas.js";
import { margins, size } from "./sizes.js";

const CONFIG = { displayModeBar: false, doubleClick: false, responsive: false };
const NO_PLOTLY = "This picture could not be drawn, because plotly.js is missing. Reload the page to try again.";
const FAILED = "This picture could not be drawn. Reload the page to try again.";

export class Picture {
  constructor(name) {
    this.node = element("div", "pic-plot", undefined, { role: "img" });
    this.words = element("figcaption", "pic-caption");
    const parts = [element("div", "pic-scroll", this.node), this.words];
    this.root = element("figure", "pic", parts, { "data-picture": name });
    this.observer = new ResizeObserver(([{ contentRect }]) => {
      this.room = contentRect.width;
      this.refresh(this.look);
    });
    this.observer.observe(this.root);
  }

  show(data) {
    this.data = data;
    this.node.setAttribute("aria-label", data.alt);
    if (!this.figure) place(this.node, { height: data.height });
    this.write(data);
  }

  // Caption, badge and the meaning of the colours.
  write({ caption, badge, legends }) {
    const said = JSON.stringify([caption, badge, legends]);
    if (said === this.said) return;
    this.said = said;
    this.words.replaceChildren(element("span", "", caption));
    if (badge) this.words.append(" · ", verdict(badge));
    for (const each of legends) this.words.append(legend(each));
  }

  // Draws again if the figure, the width or the colour of the text differs from what is drawn. The width comes from the
  // observer, so that no code has to wait for a layout of the page.
  refresh(look) {
    this.look = look;
    const { room: width, data } = this;
    if (!width || !data || !look) return;
    const { figure } = data;
    if (figure === this.figure && width === this.width && look.ink === this.ink) return;
    Object.assign(this, { figure, width, ink: look.ink, family: look.family });
    try {
      this.paint();
    } catch (error) {
      console.error("picture", error);
      this.fail(FAILED);
    }
  }

  paint() {
    const { data, layout } = JSON.parse(this.figure);
    const wide = size(layout.width, this.width, this.data.least);
    const font = { ...layout.font, color: this.ink, family: this.family };
    Object.assign(layout, { width: wide, margin: margins(layout.margin, this.width), font });
    place(this.node, { width: wide, height: layout.height });
    this.root.classList.toggle("pic-scrolls", wide > this.width);
    if (canDraw(data)) {
      this.canvas ??= new Canvas(this.node);
      this.canvas.draw(data, layout);
      this.drawn();
    } else this.plot(data, layout);
  }

  async plot(data, layout) {
    const lib = await fetchPlotly().catch(() => null);
    if (!lib) return this.fail(NO_PLOTLY);
    this.lib = lib;
    layout.hoverlabel = { ...layout.hoverlabel, font: { size: 12 } };
    await lib.react(this.node, data, layout, CONFIG);
    return this.drawn();
  }

  // Counts the drawings in an attribute, for tests.
  drawn() {
    this.root.dataset.drawn = `${Number(this.root.dataset.drawn ?? 0) + 1}`;
  }

  fail(text) {
    this.figure = null;
    this.canvas = null;
    this.node.replaceChildren(element("p", "", text, { role: "alert" }));
  }

  leave() {
    this.observer.disconnect();
    if (this.lib) this.lib.purge(this.node);
  }
}

function verdict({ passed, text, title }) {
  return element("span", passed ? "pic-badge" : "pic-badge pic-failed", text, { title, tabindex: "0" });
}

function legend({ low, high, colors, about }) {
  const bar = element("i");
  bar.style.background = `linear-gradient(to right, ${colors.join(", ")})`;
  const parts = [element("span", "", low), bar, element("span", "", high), element("span", "pic-about", about)];
  return element("span", "pic-legend", parts, { role: "img", "aria-label": `${about}: from ${low} to ${high}` });
}
