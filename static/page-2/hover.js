// What is said of a cell under the pointer, from the template that Python wrote for plotly.js. Pure functions.

const FIELD = /%\{(\w+)(?:\[(\d+)\])?(?::\.(\d)f)?\}/g;
const MINUS = "−";

// A number with so many decimals, with a true minus sign.
export function number(value, decimals) {
  const text = decimals === undefined ? `${value}` : value.toFixed(Number(decimals));
  return text.replace("-", MINUS);
}

// The text for the cell of a row and a column.
export function said(trace, row, column, { x, y }) {
  const at = row * trace.columns + column;
  const channels = trace.custom ? trace.custom.length / (trace.rows * trace.columns) : 0;
  const fields = {
    x: () => x.name(trace.x0 + column * trace.dx),
    y: () => y.name(trace.y0 + row * trace.dy),
    z: (_, decimals) => number(trace.values[at], decimals),
    text: () => trace.text[row][column],
    customdata: (i, decimals) => number(trace.custom[at * channels + Number(i ?? 0)], decimals),
  };
  const template = trace.hovertemplate.replace(/<extra>(.*?)<\/extra>/s, (_, extra) => (extra ? `<br>${extra}` : ""));
  const own = template.replace(FIELD, (_, name, i, decimals) => fields[name](i, decimals));
  const named = trace.name && !trace.hovertemplate.includes("<extra>");
  return named ? `${own}<br>${trace.name}` : own;
}
