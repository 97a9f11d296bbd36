// Runs in a file: opens them, and checks that they are whole. No network.

import { unpacked } from "./data.js";
import { Living, part } from "./shown.js";

const WHOLE = "Its numbers and texts fit the hash written beside them (this is no signature).";
const ALTERED = "✗ Its numbers or texts do not fit the hash written beside them: they were altered.";
const UNCHECKED = "Not checked: browsers compute a hash only in files and at secure addresses.";
const UNREAD = "The run in this file cannot be read.";
const TOO_OLD = "This browser is too old to unpack the run; any browser from 2023 on can.";

// The texts are in the page already, for readers without scripts; these are those that the digest covers.
function say(node, lines) {
  for (const [i, line] of lines.entries()) node.children[i].textContent = line;
}

// What the page shows without its scripts: its title, and its texts with single spaces.
function pageTexts() {
  const texts = ["title", ".stMain"].map((found) => document.querySelector(found).textContent);
  return texts.map((text) => text.replace(/[\t\n\f\r ]+/g, " ").replace(/^ | $/g, ""));
}

async function sha256(text) {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Whether the page is what was written; told after the first picture, which does not wait for it.
async function check(packed, [title, texts]) {
  const digest = part("digest", packed.id.slice(3));
  const hashed = [title, packed.dataset.place, texts, packed.textContent].join("\n");
  const whole = !crypto.subtle || (await sha256(hashed)) === packed.dataset.sha256;
  digest.textContent = crypto.subtle ? (whole ? WHOLE : ALTERED) : UNCHECKED;
  digest.classList.toggle("lv-failed", !whole);
}

async function open() {
  const [packed, read] = [[...document.querySelectorAll("script[data-sha256]")], pageTexts()];
  try {
    const runs = await Promise.all(packed.map((each) => unpacked(each.textContent)));
    document.documentElement.classList.add("living");
    const all = [];
    for (const [i, run] of runs.entries()) {
      const number = packed[i].id.slice(3);
      for (const [id, lines] of Object.entries(run.said)) say(part(id, number), lines);
      all.push(new Living(run, number, all));
    }
    for (const each of all) each.start(`#${packed[0].dataset.place}`);
  } catch (error) {
    part("view", "").textContent = window.DecompressionStream ? UNREAD : TOO_OLD;
    console.warn("living page", error);
  }
  requestAnimationFrame(() => setTimeout(() => packed.forEach((each) => check(each, read))));
}

open();
