// The linked view: token strips, a cursor over decode steps, attention maps and bars that move together.
// Python sends each figure once (feed) and the cursor often (show); a step moves an overlay and never a map.

const HERE = new URL("app/static/", document.baseURI);
const PLOTLY = "plotly-cartesian-4.1.1.min.js";
const STYLE = "linked_view-1.css";
const CONFIG = { displayModeBar: false, doubleClick: false, responsive: false };
const PLAY_EVERY = 700;
const views = new Map();

const element = (tag, name, text, attributes = {}) => {
  const node = document.createElement(tag);
  if (name) node.className = name;
  if (text !== undefined) node.textContent = text;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
};
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const escape = (text) => text.replace(/[&<>#]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", "#": "&#35;" })[c]);

function decode(values) {
  if (!values || values.bdata === undefined) return values;
  const bytes = Uint8Array.from(atob(values.bdata), (c) => c.charCodeAt(0));
  return values.dtype === "f4" ? new Float32Array(bytes.buffer) : bytes;
}

const plotly = new Promise((resolve, reject) => {
  document.head.append(element("link", "", undefined, { rel: "stylesheet", href: new URL(STYLE, HERE) }));
  const script = element("script", "", undefined, { src: new URL(PLOTLY, HERE), async: "" });
  script.onload = () => resolve(window.Plotly);
  script.onerror = () => reject(new Error("plotly.js did not arrive"));
  document.head.append(script);
});
plotly.catch(() => {});

class View {
  constructor(name) {
    Object.assign(this, { name, feeds: {}, plots: {}, at: { step: 0, source: null }, seq: 0, trace: null, picks: {} });
  }

  // --- what arrives ---------------------------------------------------------------------------------------

  receive(data) {
    this.feeds[data.name] = data;
    this.draw();
  }

  show({ data, parentElement, setStateValue }) {
    this.send = setStateValue;
    if (this.host !== parentElement) this.build(parentElement, data);
    this.seq = Math.max(this.seq, data.ack);
    let changed = true;
    if (data.trace !== this.trace) {
      this.stop();
      this.picks = {};
      this.trace = data.trace;
      this.at = { step: data.step, source: data.source };
    } else if (data.ack >= this.seq && !this.playing && !this.telling) {
      changed = data.step !== this.at.step || data.source !== this.at.source;
      this.at = { step: data.step, source: data.source };
    } else changed = false;
    const style = getComputedStyle(this.root);
    const ink = style.getPropertyValue("--st-text-color").trim();
    this.family = style.fontFamily;
    if (ink !== this.ink) {
      this.ink = ink;
      for (const plot of Object.values(this.plots)) plot.drawn = null;
      changed = true;
    }
    if (changed) this.draw();
    return () => this.host === parentElement && this.leave();
  }

  leave() {
    this.stop();
    this.observer.disconnect();
    for (const plot of Object.values(this.plots)) if (plot.drawn) plotly.then((lib) => lib.purge(plot.node));
    this.host.replaceChildren();
    Object.assign(this, { host: null, root: null, plots: {}, stripsDrawn: null, trace: null });
  }

  // --- the frame, built once ------------------------------------------------------------------------------

  build(host, data) {
    if (this.host) this.leave();
    this.host = host;
    this.spec = data;
    this.root = element("div", `lv lv-${data.layout}`, undefined, { tabindex: "0", role: "group", "data-view": this.name,
      "aria-label": "Linked view. Left and right arrows move the cursor, up and down arrows move the key token, space plays." });
    this.strips = element("div", "lv-strips");
    this.controls = this.buildControls();
    this.tourBox = element("div", "lv-tour", undefined, { role: "note", hidden: "" });
    this.sentence = element("p", "lv-sentence");
    this.grid = element("div", "lv-grid");
    this.live = element("div", "lv-live", undefined, { "aria-live": "polite" });
    this.problem = element("p", "lv-problem", undefined, { role: "alert", hidden: "" });
    for (const name of data.plots) this.plots[name] = this.buildPlot(name);
    this.root.append(this.strips, this.controls, this.tourBox, this.sentence, this.grid, this.problem, this.live);
    this.root.addEventListener("keydown", (event) => this.guard(() => this.key(event)));
    host.replaceChildren(this.root);
    this.observer = new ResizeObserver(() => this.guard(() => this.resize()));
    this.observer.observe(this.grid);
    plotly.catch(() => this.say("The maps could not be loaded, because plotly.js did not arrive. The strips and the "
      + "cursor still work; reload the page to try again."));
  }

  buildControls() {
    const bar = element("div", "lv-controls");
    const button = (text, label, action) => {
      const node = element("button", "lv-button", text, { type: "button", "aria-label": label, title: label });
      node.addEventListener("click", () => this.guard(action));
      return node;
    };
    this.slider = element("input", "lv-slider", undefined, { type: "range", min: "0", "aria-label": "cursor" });
    this.slider.addEventListener("input", () => this.guard(() => this.moveCursor(Number(this.slider.value))));
    this.count = element("span", "lv-count");
    this.playButton = button("▷ play", "play", () => (this.playing ? this.stop(true) : this.play()));
    this.tourButton = button("tour", "take the tour: five clicks", () => this.tour(0));
    this.playButton.classList.add("lv-text");
    this.tourButton.classList.add("lv-text");
    bar.append(button("◀", "one back", () => this.moveCursor(this.cursor() - 1)), this.slider,
      button("▶", "one on", () => this.moveCursor(this.cursor() + 1)), this.count, this.playButton, this.tourButton);
    return bar;
  }

  buildPlot(name) {
    const cell = element("figure", `lv-cell lv-${name}`, undefined, { "data-plot": name });
    const plot = { cell, node: element("div", "lv-plot"), title: element("div", "lv-title"),
      caption: element("figcaption", "lv-caption"), overlay: element("div", "lv-overlay"), drawn: null };
    plot.sheet = element("div", "lv-sheet");
    for (const part of ["fade", "row", "column", "hover"]) plot.sheet.append((plot[part] = element("div", `lv-${part}`, undefined, { hidden: "" })));
    plot.overlay.append(plot.sheet);
    const frame = element("div", "lv-scroll");
    frame.append(plot.node);
    cell.append(plot.title, frame, plot.caption);
    cell.addEventListener("touchstart", (event) => event.stopPropagation(), { capture: true, passive: true });
    this.grid.append(cell);
    return plot;
  }

  // --- drawing --------------------------------------------------------------------------------------------

  draw() {
    if (!this.root) return;
    this.guard(() => {
      this.root.dataset.ready = "false";
      const strips = this.current("strips");
      if (strips && this.stripsDrawn !== strips) this.drawStrips(strips);
      this.update();
    });
    plotly.then((lib) => this.guard(() => this.drawPlots(lib)), () => {});
  }

  current(name) {
    const data = this.feeds[name];
    return data && data.trace === this.trace ? data : null;
  }

  drawStrips(strips) {
    this.stripsDrawn = strips;
    this.strips.replaceChildren();
    this.chips = { source: [], target: [] };
    for (const side of this.spec.strips) {
      const line = element("div", `lv-strip lv-strip-${side}`, undefined, { role: "group", "aria-label": `${side} tokens`, dir: strips.direction[side] });
      line.append(element("span", "lv-side", side));
      for (const chip of strips[side]) line.append(this.chip(side, chip));
      this.strips.append(line);
    }
    this.tourButton.hidden = !strips.tour.length;
    this.endTour();
  }

  chip(side, { text, first, last, gap, special, index, gloss }) {
    const node = element("button", "lv-chip", undefined, { type: "button", tabindex: "-1" });
    node.append(element("bdi", "lv-word", text));
    if (index) node.firstChild.append(element("sub", "", index));
    if (gloss) node.append(element("small", "lv-gloss", gloss));
    node.classList.toggle("lv-gap", gap);
    node.classList.toggle("lv-special", special);
    node.addEventListener("click", () => this.guard(() => {
      if (side === "target") this.move({ step: first });
      else this.move({ source: this.at.source === first && this.spec.cursor === "step" ? null : first });
    }));
    for (let i = first; i <= last; i++) this.chips[side][i] = node;
    return node;
  }

  drawPlots(lib) {
    if (!this.root) return;
    let waiting = false;
    for (const [name, plot] of Object.entries(this.plots)) {
      const data = this.current(name);
      const width = plot.cell.clientWidth;
      if (!data || !width) waiting = true;
      else if (plot.drawn !== data || plot.width !== width) this.drawPlot(lib, plot, data, width);
    }
    this.lib = lib;
    this.update();
    if (!waiting && this.current("strips")) requestAnimationFrame(() => { if (this.root) this.root.dataset.ready = "true"; });
  }

  drawPlot(lib, plot, data, width) {
    plot.cell.dataset.hue = data.hue || "";
    if (plot.source !== data) plot.figure = this.parse(data, plot);
    Object.assign(plot, { drawn: data, source: data, width, frame: null, traces: null });
    const { traces, layout } = plot.figure;
    const side = Math.min(width, data.largest);
    Object.assign(layout, { width: data.square ? side : width, height: data.height || side, font: { ...layout.font, color: this.ink, family: this.family } });
    plot.node.style.height = `${layout.height}px`;
    if (data.rows) plot.node.style.width = `${side}px`;
    if (data.follows) this.merge(plot, data);
    lib.react(plot.node, plot.traces || traces, layout, CONFIG);
    if (plot.traces) this.writeTexts(plot);
    this.wire(plot);
  }

  parse(data, plot) {
    const { data: traces, layout, frames } = JSON.parse(data.figure);
    for (const axis of ["xaxis", "yaxis"]) layout[axis] = { ...layout[axis], fixedrange: false };
    layout.hoverlabel = { ...layout.hoverlabel, font: { size: 12 } };
    if (data.rows) {
      const { rows, columns } = layout.meta;
      const masked = decode(traces[0].z);
      plot.values = decode(traces[0].customdata);
      plot.columns = columns.length;
      traces[0].text = rows.map((row, i) => columns.map((column, j) =>
        escape(`${row}, ${column}${masked[i * columns.length + j] ? "" : " (masked)"}`)));
    }
    plot.frames = Object.fromEntries((frames || []).map((frame) => [frame.name, frame]));
    return { traces, layout };
  }

  wire(plot) {
    const node = plot.node;
    if (!plot.wired) {
      plot.wired = true;
      node.on("plotly_afterplot", () => this.guard(() => this.place(plot)));
      node.on("plotly_hover", ({ points }) => this.guard(() => this.hover(plot, points[0])));
      node.on("plotly_unhover", () => this.guard(() => this.hover(null)));
      node.on("plotly_click", ({ points }) => this.guard(() => this.pick(plot, points[0])));
    }
    this.place(plot);
  }

  place(plot) {
    const layout = plot.node._fullLayout;
    if (!layout || !plot.drawn || !plot.drawn.rows) return;
    const { xaxis, yaxis } = layout;
    const [top, bottom, left, right] = plot.drawn.window;
    Object.assign(plot.overlay.style, { left: `${xaxis._offset}px`, top: `${yaxis._offset}px`, width: `${xaxis._length}px`, height: `${yaxis._length}px` });
    const x = [xaxis.d2p(-0.5), xaxis.d2p(right - left - 0.5)];
    const y = [yaxis.d2p(-0.5), yaxis.d2p(bottom - top - 0.5)];
    Object.assign(plot.sheet.style, { left: `${x[0]}px`, top: `${y[0]}px`, width: `${x[1] - x[0]}px`, height: `${y[1] - y[0]}px` });
    plot.sheet.style.setProperty("--rows", bottom - top);
    plot.sheet.style.setProperty("--columns", right - left);
    const stack = plot.node.querySelector(".svg-container");
    if (stack && plot.overlay.parentNode !== stack) stack.append(plot.overlay);
  }

  resize() {
    plotly.then((lib) => this.guard(() => this.drawPlots(lib)), () => {});
  }

  // --- the cursor -----------------------------------------------------------------------------------------

  cursor() {
    return this.spec.cursor === "step" ? this.at.step : this.sourceNow();
  }

  sourceNow() {
    if (this.at.source !== null) return this.at.source;
    const strips = this.current("strips");
    return strips && strips.follow.length ? strips.follow[clamp(this.at.step, 0, strips.follow.length - 1)] : 0;
  }

  position(kind) {
    return kind === "step" ? this.at.step : kind === "source" ? this.sourceNow() : null;
  }

  update() {
    const strips = this.current("strips");
    if (!this.root || !strips) return;
    const length = this.spec.cursor === "step" ? strips.steps : strips.names.source.length;
    this.slider.max = length - 1;
    this.slider.value = this.cursor();
    this.count.textContent = `${this.spec.cursor === "step" ? "step" : "source token"} ${this.cursor() + 1} of ${length}`;
    for (const side of this.spec.strips) this.mark(side, side === "source" ? this.sourceNow() : this.at.step, "lv-on");
    for (const plot of Object.values(this.plots)) this.updatePlot(plot);
    this.updateWords(strips);
    const painted = `${this.cursor()}`;
    requestAnimationFrame(() => { if (this.root) this.root.dataset.painted = painted; });
  }

  mark(side, position, name) {
    const chips = this.chips[side];
    for (const [i, chip] of chips.entries()) {
      chip.classList.toggle(name, chip === chips[position]);
      if (name === "lv-on") chip.setAttribute("aria-pressed", chip === chips[position]);
      if (name === "lv-on") chip.classList.toggle("lv-later", side === "target" && i > this.at.step);
    }
  }

  updatePlot(plot) {
    const data = plot.drawn;
    if (!data || data !== this.current(data.name)) return;
    if (data.rows) {
      const [top, bottom, left, right] = data.window;
      const row = this.position(data.rows);
      const column = this.picks[data.name] ?? (data.rows === data.columns ? null : this.position(data.columns));
      plot.sheet.style.setProperty("--row", clamp(row, top - 1, bottom) - top);
      plot.sheet.style.setProperty("--column", (column ?? 0) - left);
      plot.row.hidden = row < top || row >= bottom;
      plot.column.hidden = column === null || column < left || column >= right;
      plot.fade.hidden = !data.fade;
    } else if (this.lib && data.follows) {
      if (!this.merge(plot, data)) return;
      this.lib.react(plot.node, plot.traces, plot.figure.layout, CONFIG);
      this.writeTexts(plot);
    }
  }

  merge(plot, data) {
    const frame = plot.frames[this.position(data.follows)];
    if (!frame || plot.frame === frame) return false;
    plot.frame = frame;
    const { traces, layout } = plot.figure;
    const changed = frame.layout || {};
    layout.yaxis = { ...layout.yaxis, ...changed.yaxis };
    if (changed.title) layout.title = { ...layout.title, ...changed.title };
    plot.traces = [{ ...traces[0], ...frame.data[0] }, ...traces.slice(1)];
    plot.texts = plot.traces[0].text;
    delete plot.traces[0].text;
    return true;
  }

  // The numbers at the ends of the bars: Plotly would measure each of them at every step.
  writeTexts(plot) {
    const { xaxis, yaxis } = plot.node._fullLayout;
    const shares = decode(plot.traces[0].x);
    plot.ends ??= element("div", "lv-ends");
    plot.ends.replaceChildren(...(plot.texts || []).map((text, i) => {
      const node = element("span", "", text.replace("&lt;", "<"));
      Object.assign(node.style, { left: `${xaxis._offset + xaxis.d2p(shares[i]) + 4}px`, top: `${yaxis._offset + yaxis.d2p(i)}px` });
      return node;
    }));
    const stack = plot.node.querySelector(".svg-container");
    if (stack && plot.ends.parentNode !== stack) stack.append(plot.ends);
  }

  updateWords(strips) {
    const focus = this.current(this.spec.focus);
    if (focus) this.sentence.replaceChildren(...this.rich(focus.sentences[this.position(focus.rows) - focus.window[0]]));
    if (strips.claim && strips.claim.step === this.at.step) this.sentence.append(element("span", "lv-claim", strips.claim.text));
    for (const [name, plot] of Object.entries(this.plots)) {
      const data = this.current(name);
      if (!data) continue;
      const row = this.position(data.rows || data.follows) ?? 0;
      const about = (data.about || "").replace("{reads}", strips.names.reads[row]).replace("{predicts}", strips.names.predicts[row])
        .replace("{source}", strips.names.source[row]);
      plot.title.replaceChildren(element("b", "", data.title), element("span", "lv-about", about));
      this.caption(plot, data, row);
    }
  }

  caption(plot, data, row) {
    const step = data.rows === "step" ? ` · step ${row + 1} of ${this.current("strips").steps}` : "";
    plot.caption.replaceChildren(element("span", "", data.caption.replace("{step}", step)));
    if (data.badge) plot.caption.append(" · ", element("span", data.badge.passed ? "lv-badge" : "lv-badge lv-failed", data.badge.text, { title: data.badge.title, tabindex: "0" }));
    const rests = data.rests && data.rests[row];
    if (rests) plot.caption.append(element("span", "lv-rests", ` · ${rests}`));
  }

  rich(parts) {
    return (parts || []).map((part, i) => (i % 2 ? element("em", "", `“${part}”`) : document.createTextNode(part)));
  }

  // --- what the visitor does ------------------------------------------------------------------------------

  move(change) {
    const strips = this.current("strips");
    if (!strips) return;
    const next = { ...this.at, ...change };
    next.step = clamp(next.step, 0, strips.steps - 1);
    if (next.source !== null) next.source = clamp(next.source, 0, strips.names.source.length - 1);
    if (next.step === this.at.step && next.source === this.at.source) return;
    if (next.step !== this.at.step || this.spec.cursor === "source") this.picks = {};
    this.at = next;
    this.update();
    if (!this.playing) this.tellSoon();
    if (!this.playing) this.announce();
  }

  moveCursor(position) {
    this.stop();
    this.move(this.spec.cursor === "step" ? { step: position } : { source: position });
  }

  // After the picture: the server's answer must not compete with the paint, and quick steps become one message.
  tellSoon() {
    clearTimeout(this.telling);
    this.telling = setTimeout(() => this.guard(() => this.tell()), 80);
  }

  tell(more = {}) {
    clearTimeout(this.telling);
    this.telling = null;
    if (!this.root) return;
    this.seq += 1;
    this.send("at", { ...this.at, seq: this.seq, trace: this.trace, pick: this.lastPick || null, ...more });
  }

  announce(cell) {
    const { names } = this.current("strips");
    const place = this.spec.cursor === "step"
      ? `Step ${this.at.step + 1}: reads ${names.reads[this.at.step]}, predicts ${names.predicts[this.at.step]}.`
      : `Source token ${this.sourceNow() + 1}: ${names.source[this.sourceNow()]}.`;
    this.live.textContent = `${place} ${cell ?? this.weightAt(this.spec.focus)}`;
  }

  weightAt(name) {
    const [data, plot] = [this.current(name), this.plots[name]];
    const column = data && (this.picks[name] ?? (data.rows === data.columns ? null : this.position(data.columns)));
    if (!data || column === null || !plot?.values) return "";
    const [top, bottom, left, right] = data.window;
    const row = this.position(data.rows);
    if (row < top || row >= bottom || column < left || column >= right) return "";
    const { rows, columns } = plot.figure.layout.meta;
    const value = plot.values[2 * ((row - top) * plot.columns + column - left)];
    return `${rows[row - top]}, ${columns[column - left]}: weight ${value.toFixed(2)}.`;
  }

  pick(plot, point) {
    const data = plot.drawn;
    if (data.picks && point.customdata) return this.tell({ head: [data.picks, ...point.customdata] });
    if (!data.rows || point.curveNumber !== 0) return;
    const [row, column] = [data.window[0] + point.y, data.window[2] + point.x];
    this.stop();
    this.lastPick = { kind: data.name, row, column };
    const change = { [data.rows]: row };
    if (data.columns !== data.rows) change[data.columns] = column;
    this.move(change);
    if (data.columns === data.rows) this.picks[data.name] = column;
    this.update();
    this.announce(this.weightAt(data.name));
  }

  hover(plot, point) {
    for (const each of Object.values(this.plots)) each.hover.hidden = true;
    for (const side of this.spec.strips) this.mark(side, -1, "lv-hovered");
    if (!plot || !plot.drawn.rows || point.curveNumber !== 0) return;
    const from = plot.drawn;
    const found = { [from.columns]: from.window[2] + point.x };
    const rows = { [from.rows]: from.window[0] + point.y };
    const all = { ...found, ...rows };
    if (this.spec.strips.includes("source") && all.source !== undefined) this.mark("source", all.source, "lv-hovered");
    if (this.spec.strips.includes("target") && all.step !== undefined) this.mark("target", all.step, "lv-hovered");
    for (const each of Object.values(this.plots)) {
      const data = each.drawn;
      if (!data || !data.rows || each === plot) continue;
      const row = all[data.rows];
      const column = data.columns === data.rows ? undefined : all[data.columns];
      if (row === undefined && column === undefined) continue;
      each.hover.hidden = false;
      each.hover.classList.toggle("lv-whole-row", column === undefined);
      each.hover.classList.toggle("lv-whole-column", row === undefined);
      each.sheet.style.setProperty("--hover-row", (row ?? 0) - data.window[0]);
      each.sheet.style.setProperty("--hover-column", (column ?? 0) - data.window[2]);
    }
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const last = this.spec.cursor === "step" ? this.current("strips")?.steps : this.current("strips")?.names.source.length;
    const moves = { ArrowLeft: () => this.moveCursor(this.cursor() - 1), ArrowRight: () => this.moveCursor(this.cursor() + 1),
      Home: () => this.moveCursor(0), End: () => this.moveCursor(last - 1),
      ArrowUp: () => this.moveKey(-1), ArrowDown: () => this.moveKey(1),
      Escape: () => (this.tourBox.hidden ? this.move({ source: this.spec.cursor === "step" ? null : this.at.source }) : this.endTour()) };
    const onButton = event.target.tagName === "BUTTON";
    const action = event.key === " " && !onButton ? () => (this.playing ? this.stop(true) : this.play()) : moves[event.key];
    if (!action || !last) return;
    event.preventDefault();
    action();
  }

  moveKey(by) {
    const data = this.current(this.spec.focus);
    if (!data) return;
    if (data.columns !== data.rows) return this.move({ [data.columns]: this.position(data.columns) + by });
    const [, , left, right] = data.window;
    this.picks[data.name] = clamp((this.picks[data.name] ?? (by > 0 ? left - 1 : right)) + by, left, right - 1);
    this.update();
    this.announce(this.weightAt(data.name));
  }

  play() {
    const last = Number(this.slider.max);
    const to = (position) => this.move(this.spec.cursor === "step" ? { step: position } : { source: position });
    this.playButton.textContent = "◼ stop";
    this.playing = setInterval(() => this.guard(() => (this.cursor() >= last ? this.stop(true) : to(this.cursor() + 1))), PLAY_EVERY);
    to(this.cursor() >= last ? 0 : this.cursor() + 1);
  }

  stop(report = false) {
    if (!this.playing) return;
    clearInterval(this.playing);
    this.playing = null;
    this.playButton.textContent = "▷ play";
    if (report) this.tell();
  }

  // --- the tour -------------------------------------------------------------------------------------------

  tour(number) {
    const stops = this.current("strips").tour;
    this.light(null);
    if (number >= stops.length) return this.endTour();
    const { plot, text, step } = stops[number];
    if (step !== null) this.moveCursor(step);
    this.light(plot);
    const next = element("button", "lv-button lv-text", number + 1 < stops.length ? "next" : "done", { type: "button" });
    const close = element("button", "lv-button lv-text", "end tour", { type: "button" });
    next.addEventListener("click", () => this.guard(() => this.tour(number + 1)));
    close.addEventListener("click", () => this.guard(() => this.endTour()));
    this.tourBox.replaceChildren(element("b", "", `${number + 1} of ${stops.length}`), element("span", "lv-tour-text", text), next, close);
    this.tourBox.hidden = false;
    this.sentence.hidden = true;
    next.focus({ preventScroll: true });
  }

  endTour() {
    this.light(null);
    this.tourBox.hidden = true;
    this.sentence.hidden = false;
  }

  light(name) {
    for (const [each, plot] of Object.entries(this.plots)) plot.cell.classList.toggle("lv-lit", each === name);
    this.controls.classList.toggle("lv-lit", name === "controls");
  }

  // --- when something goes wrong --------------------------------------------------------------------------

  guard(action) {
    try {
      return action();
    } catch (error) {
      console.error("linked view", error);
      this.say("A part of this view could not be drawn. Reload the page; the address keeps where you were.");
    }
  }

  say(text) {
    if (!this.problem) return;
    this.problem.textContent = text;
    this.problem.hidden = false;
  }
}

function view(name) {
  if (!views.has(name)) views.set(name, new View(name));
  return views.get(name);
}

export function feed({ data }) {
  const target = view(data.view);
  target.guard(() => target.receive(data));
}

export function show(component) {
  const target = view(component.data.view);
  return target.guard(() => target.show(component));
}
