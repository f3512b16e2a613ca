// Owns what is asked before something is done, and the line that says what came of it.

import { button, fill, h } from "./dom.js";
import { line } from "./format.js";

const NOTICE_MS = 8_000;
let timer = 0;

/** Shows one line for a while, and reads it out. */
export function notice(text, isError = false) {
  const el = document.getElementById("notice");
  fill(el, line(text));
  el.className = isError ? "notice error" : "notice";
  el.hidden = false;
  clearTimeout(timer);
  timer = setTimeout(() => (el.hidden = true), isError ? NOTICE_MS * 2 : NOTICE_MS);
}

/** Says why a request failed. */
export function failed(what) {
  return (error) => notice(`${what}: ${error.message}`, true);
}

/**
 * Asks whether to do something; the focus is on the way back.
 * @returns {Promise<boolean>}
 */
export function sure(question, yes, ...more) {
  return new Promise((resolve) => {
    const end = (answer) => {
      dialog.close();
      dialog.remove();
      resolve(answer);
    };
    const back = button("Back", () => end(false), { autofocus: true });
    const dialog = h(
      "dialog",
      { "aria-label": line(question), on: { cancel: () => end(false) } },
      h("p", { class: "question" }, line(question)),
      more,
      h(
        "div",
        { class: "row end" },
        back,
        button(yes, () => end(true), { class: "danger" }),
      ),
    );
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Shows something until it is closed. */
export function show(title, ...content) {
  const dialog = h(
    "dialog",
    { class: "wide", "aria-label": title, on: { close: () => dialog.remove() } },
    h(
      "div",
      { class: "row" },
      h("h2", null, title),
      h("span", { class: "grow" }),
      button("Close", () => dialog.close(), { autofocus: true }),
    ),
    content,
  );
  document.body.append(dialog);
  dialog.showModal();
}
