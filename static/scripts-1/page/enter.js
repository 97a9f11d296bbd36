// @ts-check
// The field for a text that a model continues takes several lines. Enter runs the model, as in every other field, and
// Shift+Enter begins a line: Streamlit's own key for a field of lines is Ctrl+Enter, which is sent in its place.

const FIELD = ".st-key-top textarea";

// Whether a key that is pressed in a field runs the model: not while a keyboard still composes a character.
export const runs = ({ key, shiftKey, isComposing }) => key === "Enter" && !shiftKey && !isComposing;

function pressed(event) {
  const field = event.target;
  if (event.ctrlKey || event.metaKey || !field.matches?.(FIELD) || !runs(event)) return;
  event.preventDefault();
  event.stopPropagation();
  field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", ctrlKey: true, bubbles: true, cancelable: true }));
}

document.addEventListener("keydown", pressed, true);
