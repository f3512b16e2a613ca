// Owns how elements are made: text is always a text node, and no attribute runs anything.

import { ago, clock } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";
const SVG_NAMES = new Set(["svg", "g", "rect", "path", "circle", "line", "text", "title", "polygon"]);

/**
 * An element. Of `props`, `on` has listeners by event, `data` the dataset, `class` and all others
 * are attributes; `false`, null and undefined leave one out. Children that are no nodes become text.
 * @param {string} name
 * @param {Object<string, *>} [props]
 * @param {...*} children
 */
export function h(name, props, ...children) {
  const el = SVG_NAMES.has(name) ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "on") for (const [type, fn] of Object.entries(value)) el.addEventListener(type, fn);
    else if (key === "data") Object.assign(el.dataset, value);
    else if (/^(on|style|src)/.test(key)) throw new Error(`${key} is not set here`);
    else el.setAttribute(key, value === true ? "" : value);
  }
  append(el, children);
  return el;
}

/** Adds children; of these, `null`, undefined and `false` leave one out. */
export function append(el, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(el, child);
    else el.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Puts these children in place of all others. */
export function fill(el, ...children) {
  el.replaceChildren();
  append(el, children);
  return el;
}

/** Sets the text, if it is another one: the reader's selection stays. */
export function setText(el, text) {
  if (el.textContent !== text) el.textContent = text;
}

/** A button; with `aria-disabled` it does nothing, and keeps the focus. */
export function button(text, press, props = {}) {
  const click = (event) => event.currentTarget.getAttribute("aria-disabled") === "true" || press(event);
  return h("button", { type: "button", ...props, on: { click, ...props.on } }, text);
}

/** A button with its key; its name is what it does, and `aria-keyshortcuts` tells the key. */
export function keyButton(key, text, press, props) {
  return button([kbd(key), " ", text], press, { "aria-keyshortcuts": key, ...props });
}

export function kbd(key) {
  return h("kbd", { "aria-hidden": "true" }, key);
}

/** A moment as how long ago it is, which `age` keeps true; its title has the moment. */
export function timeOf(at, name, now) {
  return h("time", { class: name, title: clock(at), data: { at } }, ago(at, now));
}

/** Tells how long ago it is now, and builds nothing anew. */
export function age(el, now) {
  for (const time of el.querySelectorAll("time[data-at]")) setText(time, ago(Number(time.dataset.at), now));
}

/**
 * Makes the children of `parent` those of `items`, in order. An element is kept as long as its key
 * is there: focus, scroll and selection stay.
 * @param {Element} parent
 * @param {Array<*>} items
 * @param {(item: *) => string} keyOf
 * @param {(item: *) => Element} make
 * @param {(el: Element, item: *) => void} [update]
 */
export function keyed(parent, items, keyOf, make, update) {
  const known = new Map();
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  for (const el of parent.children) known.set(el.dataset.key, el);
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    let el = known.get(key);
    if (el) known.delete(key);
    else {
      el = make(item);
      el.dataset.key = key;
    }
    update?.(el, item);
    if (el === place) place = place.nextElementSibling;
    else parent.insertBefore(el, place);
  }
  for (const el of known.values()) el.remove();
  // To move an element takes the focus from it.
  if (focused && focused !== document.activeElement && parent.contains(focused))
    focused.focus({ preventScroll: true });
}
