// Owns what opens over the page: menus, what is asked before something is done, and the line that says what came of it.

import { button, fill, h } from "./dom.js";
import { line } from "./format.js";
import { iconButton } from "./icons.js";

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

let menus = 0;

/** A button that shows a short list, and closes it again. */
export class Menu {
  /** @param {Element[]} items buttons and links; `more`: what else is shown below them */
  constructor(label, items, ...more) {
    const id = `menu-${(menus += 1)}`;
    this.list = h("div", { class: "list", id, hidden: true }, items, more);
    const press = () => (this.list.hidden ? this.open() : this.close());
    this.button = iconButton("more", label, press, { "aria-expanded": "false", "aria-controls": id });
    this.element = h(
      "div",
      {
        class: "menu",
        on: {
          keydown: (event) => this.key(event),
          focusout: (event) => event.relatedTarget && !this.element.contains(event.relatedTarget) && this.close(),
        },
      },
      this.button,
      this.list,
    );
    // Before what is pressed does something: a dialog gives the focus back to the button.
    this.list.addEventListener("click", (event) => event.target.closest("button, a") && this.close(), true);
    document.addEventListener("pointerdown", (event) => this.element.contains(event.target) || this.close());
  }

  open() {
    this.list.hidden = false;
    this.button.setAttribute("aria-expanded", "true");
    this.list.querySelector("button:not([hidden]), a")?.focus();
  }

  close() {
    if (this.list.contains(document.activeElement)) this.button.focus();
    this.list.hidden = true;
    this.button.setAttribute("aria-expanded", "false");
  }

  key(event) {
    if (event.key === "Escape" && !this.list.hidden) (this.close(), event.preventDefault());
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const all = [...this.list.querySelectorAll("button:not([hidden]), a")];
    const at = all.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
    all[(at + all.length) % all.length]?.focus();
    event.preventDefault();
  }
}
