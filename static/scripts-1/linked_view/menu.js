// @ts-check
// The addresses of the menu. The server sends every link with the same query, which means "keep this session's
// state", and Streamlit's click handler uses that query. This script gives each link its full address, for new tabs
// and copies, and makes sure that a click adds one entry to the history. A link of a lesson names in addition what
// its step shows, and keeps only the sentence and the cursor.

const LINKS = ":is(.st-key-menu, .st-key-beside, .st-key-next, [class*=st-key-paper-row]) a";
// Links in the words of the glossary, which the browser itself opens if the menu has no such page.
const WORDS = ":is(.glossary, .glossary-page) a";
const STEPS = '[class*="st-key-lesson"] a[data-testid="stPageLink-NavLink"]';
const FRAMED = ["embed", "embed_options"]; // what Streamlit reads in a page inside another one
const TOUCHES = ["pointerover", "pointerdown", "focusin", "contextmenu"];

let shared = []; // parameters that all pages read; any other belongs to one page
let query = {}; // what the server sent with every link
let steady = []; // parameters that a lesson keeps

// The parameters of a query whose names a rule keeps.
export function carried(search, keeps) {
  return new URLSearchParams([...new URLSearchParams(search)].filter(([name]) => keeps(name))).toString();
}

// What a link itself says of the other page, such as its section: parameters that one page alone reads.
const named = (given) => carried(given, (name) => !shared.includes(name) && !(name in query));

// The parameters that a link to another page keeps.
const travels = () => [...shared, ...FRAMED];

// Whether the address only passes the state on; the server's answer replaces it.
function passing() {
  const now = new URLSearchParams(location.search);
  const names = Object.keys(query);
  return names.length > 0 && names.every((name) => now.get(name) === query[name]);
}

// What a lesson's link shows, with what it keeps.
export function stepped(search, given, kept) {
  const now = new URLSearchParams(search);
  const shown = new URLSearchParams(carried(now, (name) => kept.includes(name)));
  for (const [name, value] of new URLSearchParams(given)) shown.set(name, value);
  return shown.toString();
}

// The query that the server sent with a link of a lesson, which its full address replaces in the page.
function sent(link) {
  const [, search = ""] = link.getAttribute("href").split("?");
  const asked = new URLSearchParams(search);
  const from = Object.keys(query).some((name) => asked.has(name));
  if (from) link.dataset.sent = carried(search, (name) => !(name in query));
  return link.dataset.sent ?? "";
}

// The query of a link that opens a step of a lesson, and of every other link.
function step(link) {
  const kept = travels();
  const stays = steady.filter((name) => kept.includes(name));
  return stepped(location.search, sent(link), stays);
}

function other(link) {
  const [, given] = link.getAttribute("href").split("?");
  const kept = travels();
  return [carried(location.search, (name) => kept.includes(name)), named(given)].filter(Boolean).join("&");
}

// The link of the menu or of a lesson under an event, with its full address; null for everything else.
function touched(event) {
  const link = event.target.closest?.(`${LINKS}, ${STEPS}, ${WORDS}`);
  if (!link) return null;
  const path = link.getAttribute("href").split("?")[0];
  const kept = link.matches(STEPS) ? step(link) : other(link);
  link.setAttribute("href", path + (kept && `?${kept}`));
  return link;
}

// A click that asks for a new tab or window is left to the browser, since Streamlit would open the page here. Any
// other click moves to the page's address at once, marked as passing: Streamlit reports page and state in any order.
function clicked(event) {
  const link = touched(event);
  if (!link || link.matches(WORDS)) return;
  if (event.ctrlKey || event.metaKey || event.shiftKey) {
    event.stopPropagation();
    return;
  }
  document.querySelector(".stMain")?.scrollTo(0, 0); // a section of the same page would open at its end
  if (link.pathname !== location.pathname) history.pushState({}, "", marked(link.href));
}

function marked(href) {
  const address = new URL(href);
  for (const [name, value] of Object.entries(query)) address.searchParams.set(name, value);
  return address;
}

// Back must not stop at a passing address, so the next entry takes its place.
function replacePassing() {
  const push = history.pushState;
  history.pushState = function pushState(...entry) {
    return (passing() ? history.replaceState : push).apply(history, entry);
  };
}

for (const touch of TOUCHES) document.addEventListener(touch, touched, true);
document.addEventListener("click", clicked, true);
replacePassing();

export function keep({ data }) {
  ({ shared, query, steady } = data);
}
