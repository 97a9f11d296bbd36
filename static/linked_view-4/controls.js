// The cursor's controls: slider, back and forward buttons, play; and the button that starts the tour.

import { element } from "./dom.js";
import { playFrom } from "./cursor.js";
import { countName } from "./text.js";

const PLAY_EVERY = 700;

export class Controls {
  constructor(view) {
    Object.assign(this, { view, playing: null });
    this.root = element("div", "lv-controls");
    this.slider = element("input", "lv-slider", undefined, { type: "range", min: "0", "aria-label": "cursor" });
    this.slider.addEventListener("input", () => view.guard(() => view.moveCursor(Number(this.slider.value))));
    this.count = element("span", "lv-count");
    this.playButton = this.button("▷ play", "play", () => this.toggle());
    this.tourButton = this.button("tour", "take the tour: five clicks", () => view.tour.go(0));
    this.playButton.classList.add("lv-text");
    this.tourButton.classList.add("lv-text");
    const back = this.button("◀", "one back", () => view.moveCursor(view.cursor() - 1));
    const on = this.button("▶", "one on", () => view.moveCursor(view.cursor() + 1));
    this.root.append(back, this.slider, on, this.count, this.playButton, this.tourButton);
  }

  button(text, label, action) {
    const node = element("button", "lv-button", text, { type: "button", "aria-label": label, title: label });
    node.addEventListener("click", () => this.view.guard(action));
    return node;
  }

  // Shows the cursor's position, from 0, and the number of positions.
  follow(position, length) {
    this.slider.max = length - 1;
    this.slider.value = position;
    this.count.textContent = countName(this.view.spec.cursor, position, length);
  }

  toggle() {
    if (this.playing) this.stop(true);
    else this.play();
  }

  play() {
    const last = Number(this.slider.max);
    const tick = () => (this.view.cursor() >= last ? this.stop(true) : this.step(last));
    this.playButton.textContent = "◼ stop";
    this.playing = setInterval(() => this.view.guard(tick), PLAY_EVERY);
    this.step(last);
  }

  step(last) {
    this.view.moveTo(playFrom(this.view.cursor(), last));
  }

  // Stops playing, and tells the server if `report` asks for that.
  stop(report = false) {
    if (!this.playing) return;
    clearInterval(this.playing);
    this.playing = null;
    this.playButton.textContent = "▷ play";
    if (report) this.view.tell();
  }
}
