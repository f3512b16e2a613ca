// Owns what keys do: plain letters only, never while somebody types, never from a key that is held.

import { forget } from "./focus.js";

/** Whether the event goes to something that takes text. */
function isTyping(event) {
  const el = event.target;
  return (
    el.isContentEditable ||
    el.tagName === "TEXTAREA" ||
    el.tagName === "SELECT" ||
    (el.tagName === "INPUT" && !["checkbox", "radio", "range", "button"].includes(el.type))
  );
}

/**
 * Calls `take(key, event)` for each key that may stand for something; true means that it did.
 * @param {(key: string, event: KeyboardEvent) => boolean | void} take
 */
export function listen(take) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || event.defaultPrevented) return;
    if (isTyping(event)) {
      if (event.key === "Escape") (event.target.blur(), forget());
      return;
    }
    if (document.querySelector("dialog[open]")) return;
    // What has the focus is pressed by these.
    if ((event.key === "Enter" || event.key === " ") && event.target.closest("button, a, summary, input"))
      return;
    if (take(event.key, event)) event.preventDefault();
  });
}

/** Moves the focus `by` places within a list of elements; it enters the list at its begin. */
export function walk(elements, by) {
  const next = moved([...elements], (it) => it.contains(document.activeElement), by);
  next?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "nearest" });
}

/** The item `by` places behind the one with this key, within the list. */
export function moved(items, isSelected, by) {
  if (!items.length) return null;
  const at = items.findIndex(isSelected);
  return items[Math.max(0, Math.min(items.length - 1, at < 0 ? 0 : at + by))];
}
