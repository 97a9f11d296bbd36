// Light or dark: as the browser asks, or as the notebook around the view is. JupyterLab says it on its body.

const JUPYTER = "data-jp-theme-light";

// The body of the notebook; null if the view stands alone, or in a page of another origin.
function notebook() {
  try {
    return window.parent === window ? null : window.parent.document.body;
  } catch {
    return null;
  }
}

// Follows the theme, and calls `changed` after each change.
export function followTheme(changed) {
  const around = notebook();
  const take = () => {
    const light = around?.getAttribute(JUPYTER);
    if (light) document.documentElement.dataset.theme = light === "true" ? "light" : "dark";
  };
  take();
  const again = () => {
    take();
    changed();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  if (around) new MutationObserver(again).observe(around, { attributes: true, attributeFilter: [JUPYTER] });
}
