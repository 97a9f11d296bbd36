// The sizes of the home page: the map of the sentence is large, the other maps and the next token lie beside it, and
// together they fill the window. On a narrow page everything stands one below the other.

import { place } from "./dom.js";
import { FONTS, spread } from "./fit.js";

// Px: between cells; titles and colours over and under a picture; width of the longest title with its controls; height
// of a bar in two columns, and of what is around the bars; what a bar needs beside its name; what lies under the view,
// and the choice of the order of all heads there.
const SIZES = { gap: 18, around: 70, head: 290, lane: 19, about: 80, beside: 104, below: 74, sorting: 52 };
const LAYOUTS = ["beside", "over", "square", "alone"];
// The least height of the maps, below which the page scrolls.
const LEAST = 264;
const NARROW = matchMedia("(max-width: 900px)");
const TOUCH = matchMedia("(hover: none)");

// The fonts and cells that a map may have. On a touch screen, a cell is large enough for a finger tip.
export const look = (largest = 13, factor = 1) => ({
  fonts: FONTS.filter((font) => font <= largest).map((font) => Math.round(font * factor)),
  smallest: TOUCH.matches ? 10 : 6,
  largest: 84 * factor,
  factor,
});

const everywhere = (cells, room) => Object.fromEntries(Object.keys(cells).map((name) => [name, room]));

export class Stage {
  constructor(view) {
    Object.assign(this, { view, rooms: {} });
    this.resized = () => view.redraw();
    this.observer = new ResizeObserver(this.resized);
    addEventListener("resize", this.resized);
  }

  // Arranges the maps anew if anything on the page becomes higher or lower, because it moves them.
  watch(root) {
    const page = root.closest(".stMain")?.querySelector(".stVerticalBlock");
    if (page) this.observer.observe(page);
  }

  leave() {
    this.observer.disconnect();
    removeEventListener("resize", this.resized);
  }

  // The cells of a small map are no larger than those of the large one.
  look(name) {
    const large = name === this.view.inbox.spec.focus;
    const found = look(large ? 14 : 12);
    if (NARROW.matches) return found;
    if (this.view.inbox.spec.paired) return { ...found, smallest: 1 };
    return { ...found, smallest: 1, largest: large ? found.largest : this.cell ?? found.largest };
  }

  // Gives every cell its room, before any of them is drawn.
  arrange() {
    const { grid, cells, inbox, presenting } = this.view;
    const { spec } = inbox;
    if (presenting.on) return;
    const width = grid.clientWidth;
    const halved = Boolean(spec.paired) && !NARROW.matches;
    grid.classList.toggle("lv-wide", !NARROW.matches && !halved);
    grid.classList.toggle("lv-halved", halved);
    if (halved) this.halve(width, cells, spec.focus);
    else if (NARROW.matches) this.stack(width, cells);
    else if (cells.wall || spec.alone) this.alone(width, cells, spec.focus);
    else this.spread(width, cells, spec.focus);
  }

  // One below the other, each as wide as the page.
  stack(width, cells) {
    this.rooms = everywhere(cells, [width, 1.25 * width]);
    this.lay(null, {});
  }

  // The only map that a model has: beside it the next token, and under that all heads, in what is left of the window.
  alone(width, cells, focus) {
    const { gap, around, head, below, sorting, lane, about } = SIZES;
    const height = this.height(cells.wall ? below + sorting : below);
    const bars = cells.next ? about + lane * Math.ceil((cells.next.most ?? 10) / 2) : 0;
    const room = [0.5 * width, height - around];
    const { size, cell } = cells[focus].measured?.(room) ?? { size: room, cell: null };
    this.cell = cell;
    const main = Math.max(Math.ceil(size[0]), head);
    const right = width - main - gap;
    const wall = [right, Math.max(height - bars - gap - around, LEAST / 2)];
    this.rooms = { ...everywhere(cells, room), next: [right, bars - about], wall };
    this.lay("alone", { "--gap": gap, "--main": main });
  }

  // Names the layout of a wide page in the grid; null if it has none of them.
  lay(layout, sizes) {
    for (const each of LAYOUTS) this.view.grid.classList.toggle(`lv-${each}`, each === layout);
    place(this.view.grid, sizes);
  }

  // Beside another run: the map of the sentence over two of half its width, and the next token under them.
  halve(width, cells, focus) {
    const half = (width - SIZES.gap) / 2;
    const high = Math.max(0.6 * innerHeight, LEAST); // the same in both, whatever stands over them
    this.rooms = { ...everywhere(cells, [half, 1.25 * half]), [focus]: [width, high], next: [width, null] };
    this.lay(null, {});
  }

  spread(width, cells, focus) {
    const { gap, around, head, below, beside, lane, about } = SIZES;
    const height = this.height(below);
    const { longest = 60, most = 10 } = cells.next ?? {};
    const bars = cells.next ? [beside + longest, about + lane * Math.ceil(most / 2)] : [0, 0];
    const measure = (room) => {
      const { size, cell } = cells[focus].measured?.(room) ?? { size: room, cell: null };
      this.cell = cell;
      return Math.max(Math.ceil(size[0]), head);
    };
    const { layout, room, main, side, next } = spread({ width, height, gap, bars, around, measure });
    measure(room); // the cell of the layout that was chosen
    this.rooms = { ...everywhere(cells, side), [focus]: room, next: [next[0], next[1] - about] };
    this.lay(layout, { "--gap": gap, "--side": side[0], "--main": main });
  }

  // From the top of the grid to the bottom of the window, as if nothing were scrolled.
  height(below) {
    const { root, grid } = this.view;
    const frame = root.closest(".stMain");
    const top = grid.getBoundingClientRect().top + (frame?.scrollTop ?? 0);
    return Math.max(innerHeight - top - below, LEAST);
  }
}
