// Owns the WebSocket: access, requests and their answers, reconnecting, and the age of what is heard.

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;
/** A ping that is not answered in this time ends the connection. */
const PING_MS = 5_000;
/** The connection is asked this often whether it lives, while the page is seen. */
const PING_EVERY_MS = 20_000;
/** The code by which a team ends the connections of a credential that was revoked. */
const REVOKED = 1008;
/** Open requests; the port takes 256. */
const MOST_CALLS = 200;

/** An answer with an error, as the port has it; code 0 if there was none. */
export class WireError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

export class Wire {
  /**
   * @param {() => string | null} token reads the token, which another tab may have renewed
   * @param {{joined: (answer: Object) => void, line: (line: Object) => void, changed: () => void, refused: () => void}} hears
   */
  constructor(token, hears) {
    this.token = token;
    this.hears = hears;
    this.isLive = false;
    /** The token that was shown last. */
    this.shown = "";
    /** It was refused, and no other one is there. */
    this.isRefused = false;
    /** When the last line came, or a ping was answered. */
    this.heardAt = 0;
    this.socket = null;
    this.calls = new Map();
    this.nextId = 1;
    this.wait = FIRST_WAIT_MS;
    this.timer = 0;
    document.addEventListener("visibilitychange", () => document.hidden || this.look());
    addEventListener("online", () => this.look());
    addEventListener("pageshow", (event) => event.persisted && this.look());
    setInterval(() => document.hidden || !this.isLive || this.ping(), PING_EVERY_MS);
  }

  connect() {
    clearTimeout(this.timer);
    if (this.isRefused && this.token() === this.shown) return;
    this.isRefused = false;
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/ws`);
    this.socket = socket;
    // A server that takes the connection and says nothing is no server.
    const silent = setTimeout(() => this.drop(socket), PING_MS);
    let isOpened = false;
    socket.onopen = () => {
      isOpened = true;
      this.shown = this.token() ?? "";
      socket.send(JSON.stringify({ type: "auth", token: this.shown }));
    };
    socket.onmessage = (event) => {
      if (socket !== this.socket) return;
      clearTimeout(silent);
      this.heard(event.data);
    };
    socket.onclose = (event) => {
      clearTimeout(silent);
      if (socket !== this.socket) return;
      this.lost();
      if (event.code === REVOKED || !isOpened) this.doubt();
    };
  }

  heard(text) {
    let line;
    try {
      line = JSON.parse(text);
    } catch {
      return;
    }
    this.heardAt = Date.now();
    if (line === null || typeof line !== "object") return;
    if (!this.isLive) return this.join(line);
    if (line.type === "rpc_result" || line.type === "rpc_error") return this.answered(line);
    this.hears.line(line);
  }

  join(line) {
    if (line.type === "rpc_result" && line.result?.authenticated) {
      this.isLive = true;
      this.wait = FIRST_WAIT_MS;
      this.hears.joined(line.result);
      this.hears.changed();
    } else if (line.type === "rpc_error" && line.error?.code === 401) {
      this.socket.onclose = null;
      this.socket.close();
      this.refuse();
    }
  }

  answered(line) {
    const call = this.calls.get(line.id);
    if (!call) return;
    this.calls.delete(line.id);
    clearTimeout(call.timer);
    if (line.type === "rpc_result") call.resolve(line.result);
    else call.reject(new WireError(line.error?.code ?? 500, line.error?.message ?? "an error"));
  }

  /** Whether the connection still lives; called when the page is seen again, or the network is. */
  look() {
    if (this.isLive) return this.ping();
    this.wait = FIRST_WAIT_MS;
    if (!this.socket || this.socket.readyState > WebSocket.OPEN) this.connect();
  }

  ping() {
    const socket = this.socket;
    this.call("list_budgets", {}, PING_MS).catch((error) => {
      if (error.code === 0) this.drop(socket);
    });
  }

  /** Leaves a socket that may never say that it ended. */
  drop(socket) {
    if (socket !== this.socket) return;
    socket.onclose = null;
    socket.close();
    this.lost();
  }

  lost() {
    this.isLive = false;
    this.socket = null;
    for (const call of this.calls.values()) {
      clearTimeout(call.timer);
      call.reject(new WireError(0, "the connection was lost; whether it was done is not known"));
    }
    this.calls.clear();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.connect(), this.wait * (0.8 + 0.4 * Math.random()));
    this.wait = Math.min(this.wait * 2, LONGEST_WAIT_MS);
    this.hears.changed();
  }

  /** Gives up, until there is another token. */
  refuse() {
    clearTimeout(this.timer);
    this.isRefused = true;
    this.hears.refused(this.shown);
  }

  /** Asks whether this browser still has access: a socket that is refused does not say why. */
  async doubt() {
    const answer = await fetch("/icon.svg", { method: "HEAD", cache: "no-store" }).catch(() => null);
    if (answer?.status !== 401 && answer?.status !== 429) return;
    this.refuse();
  }

  /** Sends a line that has no answer. */
  send(line) {
    if (this.isLive) this.socket.send(JSON.stringify(line));
  }

  /**
   * Asks the port; `timeout` in milliseconds, 0 for what may take as long as it takes.
   * @returns {Promise<*>} the result; rejects with a WireError
   */
  call(method, params = {}, timeout = 30_000) {
    return new Promise((resolve, reject) => {
      if (!this.isLive) return reject(new WireError(0, "there is no connection to the team"));
      if (this.calls.size >= MOST_CALLS) return reject(new WireError(0, "too many requests are open"));
      const id = this.nextId++;
      const late = () => {
        this.calls.delete(id);
        reject(new WireError(0, `${method} was not answered in ${timeout / 1000} s`));
      };
      this.calls.set(id, { resolve, reject, timer: timeout ? setTimeout(late, timeout) : 0 });
      this.socket.send(JSON.stringify({ type: "rpc", id, method, params }));
    });
  }
}
