// Owns where the focus goes when what has it goes away: to the same thing built anew, to what is next in its place, else
// to what was before. A dialog gives it back to what opened it.

/** Elements that take it: no field in which letters stand for themselves, but for a text. */
const TAKERS = "a[href], button, textarea, summary, [tabindex]";
/** Parts that are left as a whole. */
const PLACES = ".view, #inbox";

/** The element that had the focus last, and where it was: each parent with the number of its child, the innermost first. */
let last = null;
let places = [];

// Older browsers have no `checkVisibility`.
const isSeen = (el) =>
  el.isConnected && (el.checkVisibility?.({ visibilityProperty: true }) ?? el.getClientRects().length > 0);
// A field for text brings up the keyboard of a phone: there it takes the focus only of one.
const takesText = () => last.tagName === "TEXTAREA" || !matchMedia("(pointer: coarse)").matches;
const takes = (el) => !el.disabled && isSeen(el) && (el.tagName !== "TEXTAREA" || takesText());
const takersIn = (el) => (el.matches(TAKERS) ? [el] : []).concat(...el.querySelectorAll(TAKERS));

/** Begins to look after the focus. */
export function keepFocus() {
  document.addEventListener("focusin", ({ target }) => target.closest("dialog") || remember(target));
  // A press beside all that takes it is meant.
  document.addEventListener("pointerdown", ({ target }) => target.closest(TAKERS) || forget(), true);
  const looked = { childList: true, subtree: true, attributeFilter: ["class", "hidden", "disabled"] };
  new MutationObserver(changed).observe(document.body, looked);
}

/** The focus was left on purpose. */
export function forget() {
  last = null;
}

function remember(el) {
  last = el;
  places = [];
  for (let it = el; it.parentElement; it = it.parentElement) {
    const children = it.parentElement.children;
    places.push({ parent: it.parentElement, at: Array.prototype.indexOf.call(children, it) });
  }
}

function changed(records) {
  const active = document.activeElement ?? document.body;
  if (!last || (active !== document.body && active !== last)) return;
  // `isSeen` forces a layout.
  const mayBeHidden = records.some((it) => it.type === "attributes" && it.target.contains(last));
  if (!last.isConnected || (mayBeHidden && !isSeen(last))) {
    const el = heir();
    if (el) el.focus({ preventScroll: true });
    else forget();
  } else if (active !== last && records.some((it) => it.target === last && !last.disabled)) last.focus({ preventScroll: true });
}

/** The element that gets the focus. */
function heir() {
  const around = [last, ...places.map(({ parent }) => parent)];
  if (around.some((it) => it.matches(PLACES) && it.hidden)) return document.querySelector(".view:not([hidden])");
  const [inner, ...outer] = places.filter(({ parent }) => isSeen(parent));
  return inner && (twin(inner) ?? [inner, ...outer].map(nearest).find(Boolean));
}

/** The same thing, built anew; of a list another row may have its name. */
function twin({ parent, at }) {
  const child = parent.children[at];
  if (!child || parent.matches("ul, ol, tbody, [role=feed]")) return null;
  const nameOf = (el) => `${el.tagName} ${el.getAttribute("aria-label")} ${el.textContent}`;
  return takersIn(child).find((it) => nameOf(it) === nameOf(last) && takes(it));
}

/** The first thing that takes the focus from a place on, else the nearest before it, else what is around it. */
function nearest({ parent, at }) {
  const all = [...parent.children];
  for (const child of [...all.slice(at), ...all.slice(0, at).reverse()]) {
    const el = takersIn(child).find(takes);
    if (el) return el;
  }
  return parent.matches(TAKERS) ? parent : null;
}
