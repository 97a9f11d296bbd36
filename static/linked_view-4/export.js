// Saves a figure that Python has prepared as PNG or SVG, in the browser; plotly.js is fetched on the first click.

const PLOTLY = new URL("app/static/plotly-cartesian-4.1.1.min.js", document.baseURI);
let library = null;

function plotly() {
  library ||= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    const before = window.Plotly;
    script.src = PLOTLY;
    script.onload = () => {
      resolve(window.Plotly);
      if (before) window.Plotly = before;
    };
    script.onerror = () => {
      library = null;
      reject(new Error("plotly.js did not arrive"));
    };
    document.head.append(script);
  });
  return library;
}

async function save({ figure, name }, format, row) {
  const lib = await plotly();
  const { data, layout } = JSON.parse(figure);
  const { width, height } = layout;
  const link = document.createElement("a");
  link.href = await lib.toImage({ data, layout }, { format, width, height, scale: format === "png" ? 2 : 1 });
  link.download = `${name}.${format}`;
  row.append(link); // a click outside the popover would close it
  link.click();
  link.remove();
}

export function show({ data, parentElement }) {
  const row = parentElement.querySelector(".export-row");
  const note = document.createElement("span");
  note.setAttribute("role", "status");
  const buttons = ["png", "svg"].map((format) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = format.toUpperCase();
    button.addEventListener("click", async () => {
      button.disabled = true;
      note.textContent = "";
      try {
        await save(data, format, row);
      } catch (error) {
        note.textContent = `The picture could not be made: ${error.message}. Reload the page and try again.`;
      }
      button.disabled = false;
    });
    return button;
  });
  row.replaceChildren(...buttons, note);
}
