// Owns the field for prompts: it grows, completes files and the agent's commands, and takes pictures by paste.

import { notice } from "../dialog.js";
import { button, fill, h } from "../dom.js";
import { line } from "../format.js";
import { icon } from "../icons.js";

/** Characters of a prompt. */
const LONGEST_PROMPT = 256 * 1024;
/** Pictures of a prompt, and characters of all of them in base64: the port takes lines of four megabytes. */
const MOST_PICTURES = 4;
const LARGEST_PICTURES = 3_000_000;
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
/** Offers that are shown. */
const MOST_OFFERS = 8;
/** Texts that were begun for other agents. */
const MOST_DRAFTS = 50;

export class Composer {
  /**
   * @param {(blocks: Object[], text: string, pictures: Object[]) => void} send
   * @param {Element} below what stands below the field
   */
  constructor(app, send, below) {
    this.app = app;
    this.sendBlocks = send;
    this.agent = "";
    this.drafts = new Map();
    this.pictures = [];
    this.text = h("textarea", {
      rows: 1,
      placeholder: "Tell it what to do …",
      title: "@ names a file, / a command of the agent",
      "aria-label": "Prompt",
      maxlength: LONGEST_PROMPT,
      on: {
        keydown: (event) => this.typed(event),
        input: () => this.offer(),
        paste: (event) => this.pasted(event),
        blur: () => setTimeout(() => this.close(), 150),
      },
    });
    this.offers = h("ul", { class: "offers", role: "listbox", "aria-label": "Offers", hidden: true });
    this.shown = h("div", { class: "row wrap pictures", hidden: true });
    const send_ = button("Send", () => this.send(), { class: "main", title: "Enter; Shift+Enter begins a line" });
    this.element = h("div", { class: "prompt" }, this.offers, this.shown, h("div", { class: "row end-row" }, this.text, send_), below);
  }

  /** Goes to another agent; what was begun for this one is kept. */
  show(agent) {
    if (this.agent) {
      this.drafts.delete(this.agent);
      if (this.text.value) this.drafts.set(this.agent, this.text.value);
      if (this.drafts.size > MOST_DRAFTS) this.drafts.delete(this.drafts.keys().next().value);
    }
    this.agent = agent;
    this.text.value = this.drafts.get(agent) ?? "";
    this.setPictures([]);
    this.close();
  }

  /** Offers commands and files that came while a name is typed, unless its offers were closed. */
  update() {
    const commands = this.app.state.commands.get(this.agent);
    if (commands === this.known) return;
    this.known = commands;
    const word = this.word();
    if (document.activeElement === this.text && word && word !== this.left) this.offer();
  }

  focus() {
    this.text.focus();
  }

  /** Puts back what was not taken. */
  putBack(agent, text, pictures) {
    if (this.agent === agent && !this.pictures.length) this.setPictures(pictures);
    const behind = (typed) => (typed ? `${typed}\n${text}` : text);
    if (this.agent === agent) this.text.value = behind(this.text.value);
    else this.drafts.set(agent, behind(this.drafts.get(agent)));
  }

  typed(event) {
    if (!this.offers.hidden && this.choose(event)) return event.preventDefault();
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      this.send();
    }
  }

  send() {
    const text = this.text.value.trim();
    if (!text && !this.pictures.length) return;
    if (!this.app.wire.isLive)
      return notice(`prompt ${this.agent}: not sent, there is no connection to the team`, true);
    const blocks = [
      ...(text ? [{ type: "text", text }] : []),
      ...this.pictures.map(({ mimeType, data }) => ({ type: "image", mimeType, data })),
    ];
    this.text.value = "";
    const pictures = this.pictures;
    this.setPictures([]);
    this.close();
    this.sendBlocks(blocks, text, pictures);
  }

  /** The word before the cursor that begins with `@`, or the `/` at the begin. */
  word() {
    const before = this.text.value.slice(0, this.text.selectionStart);
    const found = /(?:^|\s)(@[^\s@]{0,200})$/.exec(before.slice(-220)) ?? /^(\/[\w:-]{0,60})$/.exec(before.slice(0, 80));
    return found ? found[1] : "";
  }

  offer() {
    const word = this.word();
    const all = word.startsWith("@") ? this.files(word.slice(1)) : word ? this.commands(word.slice(1)) : [];
    const chosen = !this.offers.hidden && this.offers.children[this.at].dataset.text;
    this.at = Math.max(0, all.findIndex((it) => it.text === chosen));
    this.offers.hidden = !all.length;
    fill(
      this.offers,
      all.map((it, at) =>
        h(
          "li",
          {
            role: "option",
            "aria-selected": String(at === this.at),
            data: { text: it.text },
            on: { pointerdown: (event) => (event.preventDefault(), this.take(it.text)) },
          },
          icon(it.icon),
          h("span", { class: "clip" }, line(it.text)),
          it.what && h("span", { class: "dim small clip" }, line(it.what)),
        ),
      ),
    );
  }

  files(part) {
    this.app.lists.wantGraph();
    const { files, isKnown } = this.app.state.graph;
    if (!isKnown) this.known = null;
    const wanted = part.toLowerCase();
    const found = [];
    for (const path of files) {
      if (!path.toLowerCase().includes(wanted)) continue;
      found.push({ text: `@${path}`, icon: "file" });
      if (found.length === 200) break;
    }
    const rank = ({ text }) => text.length + (text.toLowerCase().includes(`/${wanted}`) ? -100 : 0);
    return found.sort((a, b) => rank(a) - rank(b)).slice(0, MOST_OFFERS);
  }

  commands(part) {
    const all = this.app.state.commands.get(this.agent) ?? [];
    const fits = all.filter(({ name }) => name.startsWith(part)).slice(0, MOST_OFFERS);
    return fits.map(({ name, what }) => ({ text: `/${name}`, what, icon: "terminal" }));
  }

  /** A key while there are offers; true if it was for them. */
  choose(event) {
    const all = [...this.offers.children];
    if (event.key === "Escape") return ((this.left = this.word()), this.close(), event.stopPropagation(), true);
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      this.at = (this.at + (event.key === "ArrowDown" ? 1 : all.length - 1)) % all.length;
      all.forEach((el, at) => el.setAttribute("aria-selected", String(at === this.at)));
      return true;
    }
    if (event.key !== "Tab" && event.key !== "Enter") return false;
    this.take(all[this.at].dataset.text);
    return true;
  }

  take(text) {
    const end = this.text.selectionStart;
    const begin = end - this.word().length;
    this.text.setRangeText(`${text} `, begin, end, "end");
    this.close();
  }

  close() {
    this.offers.hidden = true;
  }

  async pasted(event) {
    const files = [...(event.clipboardData?.files ?? [])].filter((it) => PICTURES.has(it.type));
    if (!files.length) return;
    event.preventDefault();
    const agent = this.agent;
    for (const file of files) {
      if (this.pictures.length >= MOST_PICTURES) return notice(`a prompt takes ${MOST_PICTURES} pictures`, true);
      const taken = this.pictures.reduce((all, it) => all + it.data.length, 0);
      if (taken + (file.size * 4) / 3 > LARGEST_PICTURES) {
        notice("the pictures of a prompt may have 2.2 MB together", true);
        continue;
      }
      const data = await base64(file);
      if (agent === this.agent) this.setPictures([...this.pictures, { mimeType: file.type, data, size: file.size }]);
    }
  }

  setPictures(pictures) {
    this.pictures = pictures;
    this.shown.hidden = !pictures.length;
    fill(
      this.shown,
      pictures.map((it) =>
        h(
          "span",
          { class: "tag" },
          icon("image"),
          `${it.mimeType.slice(6)}, ${Math.ceil(it.size / 1024)} KiB`,
          button("×", () => this.setPictures(this.pictures.filter((other) => other !== it)), {
            class: "plain",
            "aria-label": "Leave this picture out",
          }),
        ),
      ),
    );
  }
}

async function base64(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
}
