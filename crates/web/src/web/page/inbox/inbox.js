// Owns the inbox: the panel beside the views, its cards, the selected one, and the keys that decide.

import { age, button, fill, h, keyed, setText } from "../dom.js";
import { notice, sure } from "../dialog.js";
import { counted, left, line as oneLine } from "../format.js";
import { empty } from "../header.js";
import { iconButton } from "../icons.js";
import { moved } from "../keys.js";
import { Cards, UNREAD_MS, subject } from "./cards.js";
import { canAnswer, drawCard } from "./card-view.js";
import { Decider } from "./decide.js";
import { Latest } from "./latest.js";
import { Several } from "./several.js";

/** Cards that are shown at once. */
const MOST_SHOWN = 60;
/** Whether the inbox is over the view. */
const isNarrow = () => innerWidth <= 1100;
/** Characters of a message or an answer. */
const LONGEST_TEXT = 64 * 1024;

export class InboxPanel {
  constructor(app) {
    this.app = app;
    this.element = document.getElementById("inbox");
    this.toggleButton = document.getElementById("inbox-toggle");
    /** Whether a person opened it; else it is there while something waits. */
    this.isPinned = false;
    /** Whether a person closed it; the next card opens it again. */
    this.isPutAway = false;
    this.cards = new Cards();
    this.decider = new Decider(app, this.cards, (takesFocus) => this.draw(takesFocus));
    this.list = h("div", { class: "cards", role: "feed", "aria-label": "What waits for a decision" });
    this.none = empty("check", "Nothing waits for a decision.");
    this.more = h("p", { class: "dim small", hidden: true });
    this.isShown = false;
    this.seen = new IntersectionObserver((entries) => this.sight(entries), { rootMargin: "-40px 0px" });
    this.latest = new Latest(app);
    const [changed, left] = [() => this.draw(), () => this.focus()];
    this.several = new Several({ app, cards: this.cards, decider: this.decider, changed, left });
    this.count = h("span", { class: "badge" });
    const close = iconButton("cross", "Close the inbox", () => this.close());
    const head = h("div", { class: "row head" }, h("h2", null, "Inbox"), this.count, h("span", { class: "grow" }), this.several.toggle, close);
    this.scroll = h("div", { class: "scroll" }, this.none, this.list, this.more, this.latest.element);
    fill(this.element, head, this.several.element, this.scroll);
    document.addEventListener("visibilitychange", () => this.unread());
    setInterval(() => this.tick(), 1000);
  }

  /** Opens it, at a card where one is named. */
  open(id) {
    this.isPinned = true;
    this.isPutAway = false;
    this.arrange();
    // On a fresh page the cards come later.
    this.wanted = id ?? "";
    this.selectWanted();
    this.focus();
    return true;
  }

  selectWanted() {
    if (!this.wanted || !this.cards.byKey.has(this.wanted)) return;
    this.select(this.wanted);
    this.wanted = "";
    this.focus();
  }

  close() {
    this.wanted = "";
    this.isPinned = false;
    this.isPutAway = true;
    this.arrange();
    return true;
  }

  /** Opens it, goes there, or closes it. */
  toggle() {
    const isThere = this.isShown && (this.hasFocus() || !this.cards.firstWaiting() || isNarrow());
    return isThere ? this.close() : this.open();
  }

  hasFocus() {
    return this.element.contains(document.activeElement);
  }

  /** On a narrow screen it is over the view: another view puts it away. */
  viewChanged() {
    if (isNarrow() && this.isShown) this.close();
  }

  /** Shows or hides it, as what waits and the person have it. */
  arrange() {
    const waits = this.cards.list().some((card) => card.status !== "done");
    const wants = this.isPinned || (!isNarrow() && waits && !this.isPutAway);
    if (wants === this.isShown) return;
    this.isShown = wants;
    this.element.hidden = !wants;
    this.toggleButton.setAttribute("aria-expanded", String(wants));
    this.unread();
    if (wants) {
      this.latest.read();
      this.draw();
    }
  }

  scoped() {
    for (const card of this.cards.list()) card.version += 1;
  }

  /** What is seen again is to be read again. */
  unread() {
    const now = Date.now();
    for (const card of this.cards.list()) {
      if (card.shownAt) card.shownAt = now;
      card.doneSeen = 0;
    }
  }

  /** Hears of what was decided, also while the inbox is not shown. */
  heard(topic, line) {
    if (topic !== "waiting" && topic !== "budgets") return;
    if (line?.id) this.cards.heard(line);
    const fresh = this.cards.sync(this.app.state);
    if (fresh.length) this.isPutAway = false;
    this.arrange();
    if (this.wanted && topic === "waiting" && !line) {
      this.draw();
      this.selectWanted();
      if (this.wanted) notice(`${oneLine(this.wanted)} does not wait any more`);
      this.wanted = "";
    }
    if (line?.id && line.status !== "pending") this.latest.heard();
    if (fresh.length && !document.hidden) {
      const text = fresh.length === 1 ? subject(fresh[0]) : `${fresh.length} more wait for a decision`;
      setText(document.getElementById("aloud"), text);
    }
  }

  update(dirty) {
    if (["waiting", "budgets", "link"].some((topic) => dirty.has(topic))) this.draw();
  }

  draw(takesFocus = false) {
    if (!this.isShown) return;
    this.several.draw();
    const all = this.cards.list();
    const shown = all.slice(0, MOST_SHOWN);
    const before = [...this.list.children].map((el) => el.dataset.key).join();
    const hadFocus = this.list.contains(document.activeElement);
    keyed(
      this.list,
      shown,
      (card) => card.key,
      (card) => this.make(card),
      (el, card) => this.fill(el, card),
    );
    for (const el of this.list.children) if (!el.isSeen) ((el.isSeen = true), this.seen.observe(el));
    const after = [...this.list.children].map((el) => el.dataset.key).join();
    // Cards that come at the end move nothing.
    if (before && !after.startsWith(before)) this.cards.movedAt = Date.now();
    this.none.hidden = all.length > 0;
    const waiting = all.filter((card) => card.status !== "done").length;
    setText(this.count, waiting ? String(waiting) : "");
    this.list.hidden = !all.length;
    this.more.hidden = all.length <= MOST_SHOWN;
    setText(this.more, `${counted(all.length - MOST_SHOWN, "more card")} behind these`);
    if ((takesFocus || hadFocus) && !this.list.contains(document.activeElement)) this.focus();
    else if (takesFocus && !this.list.querySelector(".asking textarea, .asking input")) this.focus();
    for (const card of shown.slice(0, 20)) this.decider.preview(card);
  }

  make(card) {
    const el = h("article", {
      on: { focusin: () => this.select(card.key), pointerdown: () => this.select(card.key) },
    });
    el.card = card;
    return el;
  }

  fill(el, card) {
    el.card = card;
    const isSelected = card.key === this.cards.selected;
    el.tabIndex = isSelected ? 0 : -1;
    el.classList.toggle("selected", isSelected);
    const { isOpen, chosen } = this.several;
    this.mark(el, chosen.has(card.key));
    const look = `${card.version} ${card.status} ${card.previewState} ${JSON.stringify(card.line)} ${[...this.app.rights]} ${isOpen}`;
    if (el.look === look) return;
    const height = el.look ? el.offsetHeight : 0;
    el.look = look;
    const typed = el.querySelector(".asking")?.firstElementChild;
    drawCard(el, card, {
      press: (it, key) => this.press(it, key, false),
      may: (...rights) => this.app.may(...rights),
      tick: isOpen && ((it, isChosen) => this.several.tick(it, isChosen)),
    });
    el.classList.toggle("selected", isSelected);
    this.mark(el, chosen.has(card.key));
    // What a person types stays while the card changes.
    if (typed && card.status === "waits") el.querySelector(".asking").append(typed);
    // Cards below have moved under the pointer.
    if (height && el.offsetHeight !== height) this.cards.movedAt = Date.now();
  }

  /** Shows whether a card is chosen, to be decided with others. */
  mark(el, isChosen) {
    el.classList.toggle("chosen", isChosen);
    const tick = el.querySelector(".tick");
    if (tick) tick.checked = isChosen;
  }

  select(key) {
    if (this.cards.selected === key) return;
    this.cards.selected = key;
    for (const el of this.list.children) {
      const isSelected = el.dataset.key === key;
      el.classList.toggle("selected", isSelected);
      el.tabIndex = isSelected ? 0 : -1;
    }
  }

  elementOf(key) {
    return [...this.list.children].find((el) => el.dataset.key === key);
  }

  /** The focus goes to the card itself, never to a button of it. */
  focus() {
    const el = this.elementOf(this.cards.selected) ?? this.element;
    el.focus({ preventScroll: true });
    if (el !== this.element) el.scrollIntoView({ block: "nearest" });
  }

  sight(entries) {
    const now = Date.now();
    for (const { target, isIntersecting } of entries) {
      const { card } = target;
      if (!isIntersecting) card.shownAt = 0;
      else if (!card.shownAt) card.shownAt = now;
    }
  }

  tick() {
    if (!this.isShown || document.hidden) return;
    const now = Date.now();
    for (const card of this.cards.list())
      if (card.status === "done" && card.shownAt && !card.doneSeen) card.doneSeen = now;
    age(this.scroll, now);
    for (const el of this.list.querySelectorAll("time[data-until]"))
      setText(el, left(Number(el.dataset.until), now));
    if (this.cards.sweep(now)) {
      this.draw();
      this.arrange();
    }
  }

  key(key) {
    if ((key === "j" || key === "k") && this.hasFocus()) {
      const shown = this.cards.list().slice(0, MOST_SHOWN);
      const next = moved(shown, (card) => card.key === this.cards.selected, key === "j" ? 1 : -1);
      if (next) (this.select(next.key), this.focus());
      return true;
    }
    if (this.hasFocus() && this.several.key(key)) return true;
    if (key === "Escape" && this.hasFocus()) return this.close();
    if (key === "t" && this.hasFocus()) return this.choose();
    if (!this.isShown || !"asmdDre".includes(key)) return false;
    const card = this.cards.byKey.get(this.cards.selected);
    if (!card) notice("nothing waits for a decision");
    else this.press(card, key, true);
    return true;
  }

  /** Chooses the selected card, to be decided with others. */
  choose() {
    const card = this.cards.byKey.get(this.cards.selected);
    if (card && this.app.may("decide")) this.several.tick(card);
    return true;
  }

  /** A key or a button of a card. */
  press(card, key, isKey) {
    const now = Date.now();
    const isBeyond = key === "e" || (key === "r" && card.line.denied_by);
    const rights = [card.kind !== "budget" && "decide", (card.kind === "budget" || isBeyond) && "control"];
    if (!this.app.may(...rights.filter(Boolean))) return notice("this browser may not decide that", true);
    const hasJustMoved = !isKey && now - this.cards.movedAt < UNREAD_MS;
    const refusal = hasJustMoved ? "the cards have just moved: look again" : this.cards.refusal(card, now);
    if (refusal) return notice(refusal, true);
    const isDenial = key === "d" || key === "D";
    if (!isDenial && !this.decider.isShown(card)) return notice("what it would do is not shown yet: look at it first", true);
    if (card.kind === "budget") return key === "r" && this.askLimits(card);
    if (key === "D")
      return this.ask(card, "Why it is denied, for the agent", "Deny", (message) =>
        this.decider.decide(card, "deny", { message }),
      );
    if (key === "d") return this.decider.decide(card, "deny");
    if (key === "r") {
      if (!canAnswer(card)) return notice("only a read can be answered", true);
      const more = card.line.denied_by ? { even_denied: true } : {};
      return this.ask(card, "What stands in place of the file", "Answer", (content) =>
        this.decider.decide(card, "answer", { content, ...more }),
      );
    }
    if (card.line.denied_by) {
      if (key !== "e")
        return notice("this is denied: `e` allows it in spite of that", true);
      return sure(
        `${subject(card)}, which is denied by ${oneLine(card.line.denied_by)}. Allow it once all the same?`,
        "Allow once",
      ).then((yes) => yes && this.decider.decide(card, "allow", { even_denied: true }));
    }
    if (key === "a") return this.decider.decide(card, "allow");
    if (key === "m" && card.kind === "access") return this.askPattern(card);
    if (key === "s" && card.kind === "access")
      return this.decider.decide(card, "allow", { scope: "session" });
  }

  /** Puts a form below a card: `parts` makes it of what closes it and of the button that leads back. */
  form(card, kind, parts) {
    const box = this.elementOf(card.key)?.querySelector(".asking");
    if (!box) return;
    const back = () => (form.remove(), this.focus());
    const keydown = (event) => event.key === "Escape" && (back(), event.preventDefault());
    const form = h("div", { class: kind, on: { keydown } });
    fill(box, fill(form, parts(() => form.remove(), button("Back", back))));
    form.querySelector("textarea, input, button").focus();
  }

  /** Asks for a text below a card: the reason, or what stands in place of a file. */
  ask(card, label, yes, send) {
    this.form(card, "ask", (close, back) => {
      const keydown = (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && go();
      const props = { rows: 4, maxlength: LONGEST_TEXT, "aria-label": label, placeholder: `${label} …` };
      const text = h("textarea", { ...props, on: { keydown } });
      const go = () => {
        if (!text.value.trim()) return text.focus();
        close();
        send(text.value);
      };
      return [text, h("div", { class: "row end" }, back, button(yes, go, { class: "main" }))];
    });
  }

  /** Asks for the pattern of all that is allowed with an access, and for how long. */
  askPattern(card) {
    const offered = card.line.match;
    const may = this.app.may("control");
    if (!offered && !may) return;
    this.form(card, "ask row wrap", (close, back) => {
      const props = { value: offered, maxlength: 1024, size: 30, "aria-label": "pattern of all that is allowed" };
      const keydown = (event) => event.key === "Enter" && go("session");
      const field = offered && h("input", { ...props, on: { keydown } });
      const go = (scope) => {
        const pattern = field?.value.trim();
        if (field && !pattern) return field.focus();
        close();
        this.decider.decide(card, "allow", { scope, ...(field && { match: pattern }) });
      };
      return [
        field ? h("label", null, "Allow ", field) : h("span", null, "Allow this path alone"),
        back,
        field && button("For the session", () => go("session"), { class: "main" }),
        may && button("For the team, until it is revoked", () => go("team")),
      ];
    });
  }

  askLimits(card) {
    const names = ["tokens", "cost", "turns", "minutes"];
    this.form(card, "ask row wrap", (close, back) => {
      const fields = names.map((name) =>
        h("input", {
          type: "number",
          min: 0,
          step: name === "cost" ? "0.01" : "1",
          value: card.line[name]?.limit ?? "",
          "aria-label": `new total of ${name}`,
          on: { keydown: (event) => event.key === "Enter" && go() },
        }),
      );
      const go = () => {
        const limits = {};
        names.forEach((name, at) => {
          const value = Number(fields[at].value);
          if (fields[at].value !== "" && value !== card.line[name]?.limit) limits[name] = value;
        });
        if (!Object.keys(limits).length) return notice("no total was changed", true);
        close();
        this.decider.raise(card, limits);
      };
      return [names.map((name, at) => h("label", null, name, " ", fields[at])), back, button("Raise", go, { class: "main" })];
    });
  }
}
