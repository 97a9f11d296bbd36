// Presenting: large type over the whole window and nothing but the view, for a lecture room.

export class Presenting {
  constructor(view) {
    Object.assign(this, { view, on: false });
  }

  // Shows the view as the address says.
  show(on) {
    const { root } = this.view;
    if (root.classList.contains("lv-present") === on) return;
    this.on = on;
    root.classList.toggle("lv-present", on);
    this.view.resized();
  }

  // Starts or ends presenting as the visitor asks, and updates the address.
  ask(on) {
    if (!this.view.stage) return;
    this.show(on);
    this.view.tell();
    this.view.root.focus({ preventScroll: true });
  }
}
