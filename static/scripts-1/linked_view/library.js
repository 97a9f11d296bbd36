// Fetches plotly.js, and the style of views and figures. A file that holds a run has another library in this place
// (`living`), since it fetches nothing.

import { element } from "./dom.js";

const STYLE = new URL("view.css", import.meta.url);
const PLOTLY = new URL("../../plotly-cartesian-4.1.1.min.js", import.meta.url);

let library = null;

document.head.append(element("link", "", undefined, { rel: "stylesheet", href: STYLE }));

// Resolves to plotly.js, fetched once for all who ask; after a failure, the next one who asks fetches it again.
export function fetchPlotly() {
  library ??= arrival().catch((error) => {
    library = null;
    throw error;
  });
  return library;
}

// A copy that the page already has keeps its place in `window`.
function arrival() {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    const before = window.Plotly;
    script.src = PLOTLY;
    script.addEventListener("load", () => {
      resolve(window.Plotly);
      if (before) window.Plotly = before;
    });
    script.addEventListener("error", () => reject(new Error("plotly.js is missing")));
    document.head.append(script);
  });
}
