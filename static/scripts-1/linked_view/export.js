// @ts-check
// Saves a figure as PNG or SVG in the browser; the first click fetches plotly.js.

import { button, element } from "./dom.js";
import { fetchPlotly } from "./library.js";

export async function save({ figure, name }, format, row) {
  const lib = await fetchPlotly();
  const { data, layout } = JSON.parse(figure);
  const { width, height } = layout;
  const link = element("a");
  link.href = await lib.toImage({ data, layout }, { format, width, height, scale: format === "png" ? 2 : 1 });
  link.download = `${name}.${format}`;
  row.append(link); // a click outside a popover would close it
  link.click();
  link.remove();
}

function saveButton(data, format, row, note) {
  return button("", format.toUpperCase(), async ({ currentTarget }) => {
    currentTarget.disabled = true;
    note.textContent = "";
    try {
      await save(data, format, row);
    } catch (error) {
      note.textContent = `The picture could not be drawn: ${error.message}. Reload the page and try again.`;
    }
    currentTarget.disabled = false;
  });
}

export function show({ data, parentElement }) {
  const row = parentElement.querySelector(".export-row");
  const note = element("span", "", undefined, { role: "status" });
  const buttons = ["png", "svg"].map((format) => saveButton(data, format, row, note));
  row.replaceChildren(...buttons, note);
}
