// Owns the icons: lines of our own on a grid of 24.

import { button, h } from "./dom.js";
import { lookup } from "./format.js";

const PATHS = lookup({
  team: "M8 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM2 20c0-3.5 2.6-6 6-6s6 2.5 6 6M16 4.4a3.5 3.5 0 0 1 0 6.2M18 14.4c2.4.8 4 2.9 4 5.6",
  review: "M6 3v12M6 15a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM18 3a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM18 9c0 5-6 4.5-10 7",
  map: "M3 4h8v9H3zM13 4h8v5h-8zM13 11h8v9h-8zM3 15h8v5H3z",
  history: "M12 21a9 9 0 1 0-8.5-6M3 20v-5h5M12 7v5l3.5 2",
  inbox: "M3 13h5l1.5 3h5L16 13h5M5.5 5h13L21 13v6H3v-6z",
  bell: "M6 16v-5a6 6 0 0 1 12 0v5l2 2H4zM10 21h4",
  "bell-off": "M6 16v-5a6 6 0 0 1 9.5-4.9M18 11v5l2 2H4M10 21h4M3 3l18 18",
  help: "M9 9a3 3 0 1 1 4.5 2.6c-1 .6-1.5 1.2-1.5 2.4M12 18h.01",
  check: "M5 12.5l4.5 4.5L19 7.5",
  cross: "M6 6l12 12M18 6L6 18",
  wait: "M12 7v5l3 2M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z",
  warn: "M12 4l9 16H3zM12 10v4M12 17h.01",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  edit: "M4 20l1-4L16 5l3 3L8 19zM14 7l3 3",
  read: "M2 12s3.6-6 10-6 10 6 10 6-3.6 6-10 6-10-6-10-6zM12 14.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5z",
  search: "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM20 20l-4.6-4.6",
  terminal: "M4 5h16v14H4zM7.5 9.5l3 2.5-3 2.5M13 15h4",
  delete: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  think: "M8 18h6M9 21h4M12 3a6 6 0 0 0-3.5 10.9c.6.5 1 1.2 1 2.1h5c0-.9.4-1.6 1-2.1A6 6 0 0 0 12 3z",
  message: "M4 5h16v11H10l-4 4v-4H4z",
  person: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21c0-4 3.5-7 8-7s8 3 8 7",
  branch: "M7 3v12M7 15a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM17 3a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM17 9c0 4-4 5-7.5 7",
  clock: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 7v5h4",
  more: "M4.4 12h1.2M11.4 12h1.2M18.4 12h1.2",
  send: "M4 12L20 4l-5 16-3-7z",
  stop: "M6 6h12v12H6z",
  play: "M7 5l12 7-12 7z",
  again: "M20 12a8 8 0 1 1-2.5-5.8M20 3v5h-5",
  undo: "M8 5L3 10l5 5M3 10h11a6 6 0 0 1 0 12h-3",
  back: "M15 5l-7 7 7 7",
  down: "M6 9l6 6 6-6",
  right: "M9 6l6 6-6 6",
  comment: "M4 5h16v11H10l-4 4v-4H4zM8 9h8M8 12h5",
  merge: "M6 3v18M6 15a3 3 0 1 0 0 6M18 9c0 5-8 3-12 7M18 3a3 3 0 1 0 0 6 3 3 0 0 0 0-6z",
  copy: "M9 9h11v12H9zM5 15H4V3h11v2",
  plan: "M4 6l1.5 1.5L8 5M4 12l1.5 1.5L8 11M4 18l1.5 1.5L8 17M11 6.5h9M11 12.5h9M11 18.5h9",
  image: "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15.5 9.5h.01",
  link: "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1",
  box: "M5 5h14v14H5z",
  "box-half": "M5 5h14v14H5zM9 12h6",
  up: "M6 15l6-6 6 6",
  "box-checked": "M5 5h14v14H5zM8.5 12.5l2.5 2.5 4.5-5.5",
});

/** An icon; with a label it is told to those who hear the page, else it says nothing. */
export function icon(name, label) {
  const props = label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" };
  return h("svg", { class: "icon", viewBox: "0 0 24 24", ...props }, h("path", { d: PATHS[name] ?? PATHS.file }));
}

/** A button that is an icon alone; its name is told. */
export function iconButton(name, label, press, props) {
  return button(icon(name), press, { class: "quiet icon-only", title: label, "aria-label": label, ...props });
}
