// @ts-check
// What is written about a cell: in full under a picture, or in brief, with the details behind the badge.

import { element } from "./dom.js";
import { countName, filled } from "./text.js";

// Title over the picture; everything else under it.
export class Full {
  constructor(cell) {
    this.cell = cell;
    this.title = element("div", "lv-title");
    this.caption = element("figcaption", "lv-caption");
  }

  follow(data, strips, at) {
    const told = element("span", "lv-about", about(data, strips, at));
    this.title.replaceChildren(element("b", "", data.title), ...this.cell.acts, told);
    this.caption.replaceChildren(element("span", "", captionAt(data, strips, at)));
    if (data.badge) this.caption.append(" · ", badge(data.badge));
    const note = this.cell.noted();
    if (note) this.caption.append(element("span", "lv-note", ` · ${note}`));
    if (data.legend) this.caption.append(legend(data.legend));
  }
}

// One line over the picture, with a choice of heads; one line under it, with the colours. The long caption, the audit
// and the head that opens first are behind the badge.
export class Brief {
  constructor(cell) {
    this.cell = cell;
    this.title = element("div", "lv-title lv-brief");
    this.caption = element("figcaption", "lv-foot");
    this.name = element("b");
    this.about = element("span", "lv-about");
    this.note = element("span", "lv-note");
    this.summary = element("summary", "lv-badge");
    this.proof = element("div", "lv-proof-text lv-caption");
    this.details = closing(element("details", "lv-proof", [this.summary, this.proof]));
  }

  follow(data, strips, at) {
    if (this.data !== data) this.write(data);
    this.about.textContent = about(data, strips, at);
    this.about.title = this.about.textContent;
    const lines = [captionAt(data, strips, at), data.badge?.title, data.choice?.first].filter(Boolean);
    this.proof.replaceChildren(...lines.map((line) => element("p", "", line)));
    // What there is to note about the large map stands behind the sentence.
    this.note.textContent = this.cell === this.cell.view.focus ? "" : this.cell.noted();
    this.note.title = this.note.textContent;
  }

  // What stays the same while the cursor moves. The choice of heads stays in its place, so that it keeps the focus.
  write(data) {
    this.data = data;
    this.name.textContent = data.choice ? data.choice.name : data.title;
    const heads = data.choice ? [this.heads(data)] : [];
    const parts = [this.name, ...heads, ...this.cell.acts, this.about, ...(data.badge ? [this.details] : [])];
    if (parts.some((part, i) => this.title.children[i] !== part)) this.title.replaceChildren(...parts);
    if (data.badge) this.mark(data.badge);
    const { caption } = data;
    const under = data.legend ? legend(data.legend) : element("span", "lv-words", caption, { title: caption });
    this.caption.replaceChildren(under, this.note);
  }

  heads({ kind, choice }) {
    const { size, head } = choice;
    if (this.size !== `${size}`) this.choice = this.select(kind, choice);
    this.size = `${size}`;
    this.choice.value = head.join(".");
    return this.choice;
  }

  select(kind, { label, size: [layers, heads], roles, only, names }) {
    const choice = element("select", "lv-head", undefined, { "aria-label": label, title: label });
    for (let layer = 0; layer < layers; layer++) {
      const options = Array.from({ length: heads }, (_, head) => {
        const role = roles[layer]?.[head];
        const name = names?.[layer] ?? `L${layer + 1} H${head + 1}${role ? ` · ${role}` : ""}`;
        const there = !only || only.some((each) => `${each}` === `${[layer, head]}`);
        return element("option", "", name, { value: `${layer}.${head}`, ...(!there && { disabled: "" }) });
      });
      choice.append(element("optgroup", "", options, { label: `layer ${layer + 1}` }));
    }
    const { view } = this.cell;
    const taken = () => view.outbox.tell({ head: [kind, ...choice.value.split(".").map(Number)] });
    choice.addEventListener("change", () => view.guard(taken));
    return choice;
  }

  mark({ passed, text, title }) {
    const [sign, ...words] = text.split(" ");
    this.summary.replaceChildren(sign, element("span", "lv-words", ` ${words.join(" ")}`));
    this.summary.title = title;
    this.summary.setAttribute("aria-label", text);
    this.summary.classList.toggle("lv-failed", !passed);
  }
}

// Details that close on Escape and when the focus leaves them.
function closing(details) {
  details.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !details.open) return;
    details.open = false;
    event.stopPropagation();
  });
  details.addEventListener("focusout", ({ relatedTarget }) => {
    if (!details.contains(relatedTarget)) details.open = false;
  });
  return details;
}

const about = (data, strips, at) => filled(data.about || "", strips.names, at);

/** @type {(data: any, strips: import("./feeds.js").StripsFeed, at: number) => string} */
function captionAt(data, strips, at) {
  const step = data.rows === "step" ? ` · ${countName(strips.positions.step, at, strips.steps)}` : "";
  return data.caption.replace("{step}", step);
}

/** @type {(badge: import("./feeds.js").Badge) => any} */
function badge({ passed, text, title }) {
  return element("span", passed ? "lv-badge" : "lv-badge lv-failed", text, { title, tabindex: "0" });
}

/** @type {(legend: import("./feeds.js").Legend) => any} */
function legend({ title, marks }) {
  const texts = marks.map(([text]) => text).join(", ");
  const parts = marks.map(([text, color]) => {
    const sample = element("i");
    sample.style.background = color;
    return element("span", "lv-mark", [sample, element("span", "", text)], { title: text });
  });
  return element("span", "lv-legend", [title, ...parts], { role: "img", "aria-label": `${title}: ${texts}` });
}
