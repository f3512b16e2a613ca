// Owns how values become text that is safe and short to show.

/** Characters that could end or overwrite a line. */
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;
/** Those that cannot be seen: the list of `crates/base/src/model/shown.rs`, to which a test compares it. */
const UNSEEN =
  /[\u{ad}\u{34f}\u{61c}\u{115f}-\u{1160}\u{17b4}-\u{17b5}\u{180b}-\u{180f}\u{200b}-\u{200f}\u{2028}-\u{202e}\u{2060}-\u{206f}\u{2800}\u{3164}\u{fe00}-\u{fe0f}\u{feff}\u{ffa0}\u{fff0}-\u{fffb}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;
const BREAKS = /[\n\t]/g;
/** A sequence that would colour or move in a terminal. */
const ESCAPES = /\u001b\[[0-9;?]{0,32}[A-Za-z]/g;

/** What stands for a character that is not shown. */
export const MARK = "\ufffd";

/** Text of agents over several lines: what is hidden in it becomes a visible mark. */
export function plain(text) {
  return textOf(text)
    .replace(/\r\n/g, "\n")
    .replace(ESCAPES, MARK)
    .replace(CONTROLS, MARK)
    .replace(UNSEEN, (c, at, all) => (belongs(c, at, all) ? c : MARK));
}

/** Whether an unseen character belongs to its neighbours, as in `crates/base/src/model/shown.rs`. */
function belongs(c, at, text) {
  const last = text.charCodeAt(at - 1);
  const before = last >= 0xdc00 && last <= 0xdfff ? text.codePointAt(at - 2) : last;
  const within = (first, end) => before >= first && before <= end;
  const isPicture = within(0x2190, 0x27ff) || within(0x2900, 0x2bff) || within(0x1f000, 0x1faff);
  const isJoined = within(0x620, 0x109f);
  if (c === "\u200c") return isJoined;
  if (c === "\u200d") return isJoined || isPicture || before === 0xfe0f;
  if (c !== "\ufe0e" && c !== "\ufe0f") return false;
  const isKey = within(0x30, 0x39) || before === 0x23 || before === 0x2a;
  return isPicture || (isKey && text[at + 1] === "\u20e3");
}

/** A name or path, in one line. */
export function line(text) {
  return plain(text).replace(BREAKS, MARK);
}

/** The first characters of a text, as a copy: a part of a text keeps the whole of it in memory. */
export function begin(text, most) {
  if (text.length <= most) return text;
  // Half of a pair of surrogates is no text, and no address takes it.
  const last = text.charCodeAt(most - 1);
  const end = last >= 0xd800 && last <= 0xdbff ? most - 1 : most;
  return ` ${text.slice(0, end)}`.slice(1);
}

/** At most `most` characters of what agents say, for keeping. */
export function short(value, most) {
  return plain(begin(textOf(value), most));
}

/** What should be a text, and comes from an agent as it likes: an object may have a `toString` of its own. */
export function textOf(value) {
  if (typeof value === "string") return value;
  return value === null || value === undefined || typeof value === "object" ? "" : String(value);
}

/** At most `most` characters, with a mark where something was cut. */
export function cut(text, most) {
  return text.length > most ? `${begin(text, most - 1)}…` : text;
}

const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const WHOLE = new Intl.NumberFormat("en");

/** 41200 → 41.2K; a dash for what is unknown. */
export function count(number) {
  return Number.isFinite(number) ? COMPACT.format(number) : "–";
}

export function whole(number) {
  return Number.isFinite(number) ? WHOLE.format(number) : "–";
}

export function bytes(number) {
  if (!Number.isFinite(number)) return "–";
  const units = ["B", "KiB", "MiB", "GiB"];
  let at = 0;
  while (number >= 1024 && at < 3) ((number /= 1024), (at += 1));
  return `${number.toFixed(at && number < 10 ? 1 : 0)} ${units[at]}`;
}

export function money(amount, currency) {
  if (!Number.isFinite(amount)) return "–";
  const isTiny = amount > 0 && amount < 0.005;
  const sum = isTiny ? "0.01" : amount.toFixed(2);
  const sign = currency === "USD" ? "$" : currency === "EUR" ? "€" : "";
  return (isTiny ? "< " : "") + (sign ? sign + sum : `${sum} ${line(currency ?? "")}`);
}

/** One word for how long, of milliseconds. */
export function duration(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** The same in its largest unit only. */
export function brief(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  return s < 86400 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} d`;
}

/** How long something still waits. */
export function left(until, now = Date.now()) {
  const seconds = Math.floor(Math.max(0, until - now) / 1000);
  if (!seconds) return "no time left";
  if (seconds < 60) return `${seconds} s left`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min left`;
  return seconds < 86_400 ? `${Math.round(seconds / 3600)} h left` : `${Math.floor(seconds / 86_400)} d left`;
}

/** How long ago, of milliseconds since 1970. */
export function ago(at, now = Date.now()) {
  const ms = now - at;
  if (!Number.isFinite(ms)) return "–";
  return ms < 1500 ? "now" : `${brief(ms)} ago`;
}

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { month: "short", day: "2-digit" });

export function clock(at) {
  if (!Number.isFinite(at)) return "–";
  const date = new Date(at);
  const today = new Date().toDateString() === date.toDateString();
  return today ? CLOCK.format(date) : `${DAY.format(date)} ${CLOCK.format(date)}`;
}

/** A turn as people read it: the wire counts from 0. */
export function turnName(turn) {
  const place = turn + 1;
  if (place <= 3) return `${["first", "second", "third"][turn] ?? "first"} turn`;
  const teen = place % 100 > 10 && place % 100 < 14;
  const ending = (!teen && ["th", "st", "nd", "rd"][place % 10]) || "th";
  return `${place}${ending} turn`;
}

/** 1 file, 2 files. */
export function counted(number, word) {
  return `${whole(number)} ${word}${number === 1 ? "" : /[cs]h$/.test(word) ? "es" : "s"}`;
}

/** Whether a path is none of the team's work: outside the workspace, or git's own. */
export function isAside(path) {
  return typeof path === "string" && (path.startsWith("/") || path.split("/").includes(".git"));
}

/** A table whose keys come from agents: it has its own names only, and not those of every object. */
export function lookup(names) {
  return Object.assign(Object.create(null), names);
}

/** The first objects of what should be a list, and comes from an agent as it likes. */
export function objects(list, most) {
  return Array.isArray(list) ? list.slice(0, most).filter((it) => it && typeof it === "object") : [];
}

/** The last part of a path. */
export function baseName(path) {
  return path.slice(path.lastIndexOf("/") + 1);
}
