// The cursor's controls: slider, back and forward buttons, play; and the buttons for the tour, for presenting and for
// the list of keys.

import { button, element } from "./dom.js";
import { playFrom } from "./cursor.js";
import { icon, sign } from "./icons.js";
import { countName } from "./text.js";

const PRESENT = "Present: large type, nothing else on the screen";
const WAYS = "How the rows of the chosen tokens become one";
const PLAY_EVERY = 1000;

export class Controls {
  constructor(view) {
    Object.assign(this, { view, playing: null, stopped: null });
    this.root = element("div", "lv-controls");
    this.slider = element("input", "lv-slider", undefined, { type: "range", min: "0", "aria-label": "Cursor" });
    this.slider.addEventListener("input", () => view.guard(() => view.outbox.moveCursor(Number(this.slider.value))));
    this.count = element("span", "lv-count");
    this.playButton = this.button([icon("play"), "Play"], "Play", () => this.toggle());
    this.tourButton = this.button("Tour", "Take the tour: five clicks", () => view.tour.go(0));
    const present = this.button("Present", PRESENT, () => view.keys.obey("present"));
    const keys = this.button("?", "Keys", () => view.keys.obey("keys"));
    for (const each of [this.playButton, this.tourButton, present]) each.classList.add("lv-text");
    this.presentButton = present;
    present.classList.add("lv-to-present");
    keys.classList.add("lv-to-keys");
    const back = this.button(icon("back"), "One back", () => view.outbox.moveCursor(view.inbox.cursor() - 1));
    const on = this.button(icon("on"), "One forward", () => view.outbox.moveCursor(view.inbox.cursor() + 1));
    this.ways = ["mean", "sum"].map((way) => this.way(way));
    this.together = element("span", "lv-choice lv-ways", this.ways, { role: "group", "aria-label": WAYS, hidden: "" });
    this.root.append(back, this.slider, on, this.count, this.together, this.playButton, this.tourButton, present, keys);
  }

  button(content, label, action) {
    return button("lv-button", content, () => this.view.guard(action), { "aria-label": label, title: label });
  }

  // A way in which the rows of several tokens become one.
  way(name) {
    const { view } = this;
    const title = `The ${name} of the chosen tokens' rows`;
    return button("lv-button", name, () => view.guard(() => view.outbox.join(name)), { title, "data-way": name });
  }

  // Offers both ways while several tokens are chosen.
  offer({ several, at }) {
    this.together.hidden = !several;
    for (const way of this.ways) way.setAttribute("aria-pressed", String(way.dataset.way === at.chosen.together));
  }

  // The way into presenting, and the way out of it.
  presents(on) {
    sign(this.presentButton, on ? "leave" : "", on ? "Leave" : "Present");
    this.presentButton.title = on ? "Leave presenting (Esc)" : PRESENT;
    this.presentButton.setAttribute("aria-label", this.presentButton.title);
  }

  // Shows the cursor's position, from 0, and the number of positions.
  follow(position, length) {
    this.presentButton.hidden = !this.view.presents;
    this.slider.max = length - 1;
    this.slider.value = position;
    const { inbox } = this.view;
    const { positions } = inbox.current("strips");
    this.count.textContent = countName(positions[inbox.spec.cursor], position, length);
    this.offer(inbox);
  }

  toggle() {
    if (this.playing) this.stop(true);
    else this.play();
  }

  // Plays from the first step, or continues from the one at which it was stopped. Tokens not yet written stay hidden.
  play() {
    const { inbox, outbox } = this.view;
    const last = Number(this.slider.max);
    const first = playFrom(inbox.cursor(), this.stopped, last);
    const tick = () => (inbox.cursor() >= last ? this.stop(true) : outbox.moveTo(inbox.cursor() + 1));
    sign(this.playButton, "stop", "Stop");
    this.playing = setInterval(() => this.view.guard(tick), PLAY_EVERY);
    this.view.root.classList.add("lv-playing");
    outbox.moveTo(first);
  }

  // Stops playing, and tells the server if `report` asks for that.
  stop(report = false) {
    if (!this.playing) return;
    clearInterval(this.playing);
    this.playing = null;
    this.stopped = this.view.inbox.cursor();
    sign(this.playButton, "play", "Play");
    this.view.root.classList.remove("lv-playing");
    if (report) this.view.outbox.tell();
  }
}
