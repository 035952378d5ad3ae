// One reader of the server's event stream. It reconnects by itself and goes on from the last reply that it saw.
// Read with fetch, not EventSource: a status (401, 503) is seen, and a connection that went silent is given up.

const SILENT = 60_000; // longer than a few heartbeats
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10_000;

export class Stream {
  // `tell` gets {type: "event", name, content} and {type: "state", state: "open" | "down" | "unauthorised", resumed}.
  constructor(user, tell) {
    this.user = user;
    this.tell = tell;
    this.lastId = "";
    this.pause = FIRST_PAUSE;
    this.closed = false;
    this.state = "";
    this.run();
  }

  close() {
    this.closed = true;
    this.abort?.abort();
    this.wake?.();
  }

  // Try now: the network is back, or somebody has signed in.
  hurry() {
    this.pause = FIRST_PAUSE;
    this.wake?.();
  }

  async run() {
    while (!this.closed) {
      const ended = await this.connect();
      if (this.closed) return;
      this.become(ended);
      await this.rest();
    }
  }

  become(state, resumed = false) {
    this.state = state;
    this.tell({ type: "state", state, resumed });
  }

  rest() {
    const length = this.state === "unauthorised" ? LONGEST_PAUSE * 6 : this.pause;
    this.pause = Math.min(this.pause * 2, LONGEST_PAUSE);
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, length);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async connect() {
    this.abort = new AbortController();
    const headers = { Accept: "text/event-stream" };
    if (this.lastId) headers["Last-Event-ID"] = this.lastId;
    try {
      const reply = await fetch(`/api/events?user=${encodeURIComponent(this.user)}`, {
        headers,
        cache: "no-store",
        signal: this.abort.signal,
      });
      if (reply.status === 401) return "unauthorised";
      if (!reply.ok || !reply.body) return "down";
      this.pause = FIRST_PAUSE;
      this.become("open", Boolean(this.lastId));
      await this.read(reply.body.pipeThrough(new TextDecoderStream()).getReader());
    } catch {
      // broken off, refused, or silent for too long: each ends the same way
    }
    return "down";
  }

  async read(reader) {
    const lines = new Lines((event) => this.take(event));
    for (;;) {
      const timer = setTimeout(() => this.abort.abort(), SILENT);
      const { done, value } = await reader.read().finally(() => clearTimeout(timer));
      if (done) return;
      lines.push(value);
    }
  }

  take({ id, name, text }) {
    if (id !== undefined) this.lastId = id;
    if (text === null) return;
    let content;
    try {
      content = JSON.parse(text);
    } catch {
      return; // a heartbeat with words
    }
    this.tell({ type: "event", name, content });
  }
}

// Server-sent events, cut from a text that comes in pieces.
export class Lines {
  constructor(emit) {
    this.emit = emit;
    this.rest = "";
    this.clear();
  }

  clear() {
    this.id = undefined;
    this.name = "message";
    this.text = [];
  }

  push(piece) {
    const lines = (this.rest + piece).split("\n");
    this.rest = lines.pop();
    for (const line of lines) this.line(line.endsWith("\r") ? line.slice(0, -1) : line);
  }

  line(line) {
    if (line === "") {
      if (this.text.length || this.id !== undefined) {
        this.emit({ id: this.id, name: this.name, text: this.text.length ? this.text.join("\n") : null });
      }
      this.clear();
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "id") this.id = value;
    else if (field === "event") this.name = value;
    else if (field === "data") this.text.push(value);
  }
}
