// Owns menus: a button that shows a short list, and closes it again.

import { h } from "./dom.js";
import { iconButton } from "./icons.js";

let count = 0;

export class Menu {
  /** @param {Element[]} items buttons and links; `more`: what else is shown below them */
  constructor(label, items, ...more) {
    const id = `menu-${(count += 1)}`;
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
