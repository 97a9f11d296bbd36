// @ts-check
// Has the page drawn anew when its colours change from light to dark, or back: the server chooses the colours of words
// inside coloured cells, and a sheet for a dark page.

let known = null; // whether the page was dark when it was looked at last
let send = (_name, _value) => {};

// The sum of red, green and blue below which a ground is dark.
const DARK = 384;

const ground = () => document.querySelector(".stApp");

function isDark(app) {
  const [red, green, blue] = getComputedStyle(app).backgroundColor.match(/\d+/g).map(Number);
  return red + green + blue < DARK;
}

function look() {
  const app = ground();
  if (!app || isDark(app) === known) return;
  known = !known;
  send("scheme", known ? "dark" : "light");
}

const observer = new MutationObserver(() => requestAnimationFrame(look));

// Follows the colours of the page; the part tells the server.
export function follow({ setTriggerValue }) {
  send = setTriggerValue;
  const app = ground();
  if (!app || known !== null) return;
  known = isDark(app);
  observer.observe(app, { attributes: true, attributeFilter: ["class"] });
}
