// @ts-check
// What is said of a cell under the pointer, from the template that Python wrote for plotly.js. Pure functions.

const FIELD = /%\{(\w+)(?:\[(\d+)\])?(?::(\+?\.\d)f)?\}/g;
const MINUS = "−";

// A number in a form such as `.2`, two decimals, or `+.2`, a sign always; with a true minus sign.
export function number(value, form) {
  if (!form) return `${value}`.replace("-", MINUS);
  const text = value.toFixed(Number(form.at(-1)));
  return form.startsWith("+") && !text.startsWith("-") ? `+${text}` : text.replace("-", MINUS);
}

// The text for the cell of a row and a column.
export function said(trace, row, column, { x, y }) {
  const at = row * trace.columns + column;
  const channels = trace.custom ? trace.custom.length / (trace.rows * trace.columns) : 0;
  const fields = {
    x: () => x.name(trace.x0 + column * trace.dx),
    y: () => y.name(trace.y0 + row * trace.dy),
    z: (_, form) => number(trace.values[at], form),
    text: () => trace.text[row][column],
    customdata: (i, form) => number(trace.custom[at * channels + Number(i ?? 0)], form),
  };
  const template = trace.hovertemplate.replace(/<extra>(.*?)<\/extra>/s, (_, extra) => (extra ? `<br>${extra}` : ""));
  const own = template.replace(FIELD, (_, name, i, form) => fields[name](i, form));
  const named = trace.name && !trace.hovertemplate.includes("<extra>");
  return named ? `${own}<br>${trace.name}` : own;
}
