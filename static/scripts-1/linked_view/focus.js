// @ts-check
// Keeps the focus: Streamlit may build the view anew at any time, and the focus that was in the old one is then lost.

export class Focus {
  constructor() {
    this.inside = false;
  }

  watch(root) {
    root.addEventListener("focusin", () => (this.inside = true));
    root.addEventListener("focusout", () => setTimeout(() => this.left(root)));
  }

  // If a view is no longer in the page, the visitor did not move the focus away from it.
  left(root) {
    if (root.isConnected) this.inside = root.contains(document.activeElement);
  }

  // Gives the focus to the new view if the old one had it, unless the visitor is elsewhere by now.
  restore(root) {
    const free = document.activeElement === null || document.activeElement === document.body;
    if (this.inside && free) root.focus({ preventScroll: true });
  }
}
