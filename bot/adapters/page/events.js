// What the page hears from the server: one connection, through a worker that the tabs share. Where a browser has no
// such worker, a tab holds its own connection while it is looked at.

import { Stream } from "./stream.js";

export class Events extends EventTarget {
  constructor() {
    super();
    this.user = null;
    this.state = "";
    this.source = globalThis.SharedWorker
      ? new Shared(
          (news) => this.hear(news),
          () => this.alone(),
        )
      : this.own();
    addEventListener("pagehide", () => this.source.leave());
    addEventListener("pageshow", (event) => event.persisted && this.source.watch(this.user));
    addEventListener("online", () => this.hurry());
  }

  own() {
    return new Own((news) => this.hear(news));
  }

  // The worker can't be loaded.
  alone() {
    this.source = this.own();
    this.source.watch(this.user);
  }

  watch(user) {
    this.user = user;
    this.source.watch(user);
  }

  hurry() {
    this.source.hurry();
  }

  // Dispatches "status", "token", "reply" … with the event's content as detail, and "state".
  hear(news) {
    if (news.type === "event") {
      this.dispatchEvent(new CustomEvent(news.name, { detail: news.content }));
      return;
    }
    this.state = news.state;
    this.dispatchEvent(new CustomEvent("state", { detail: news }));
  }
}

class Shared {
  constructor(hear, failed) {
    const worker = new SharedWorker("/static/stream-worker.js", { type: "module", name: "threadlore" });
    worker.addEventListener("error", failed, { once: true });
    this.port = worker.port;
    this.port.addEventListener("message", ({ data: news }) => hear(news));
    this.port.start();
  }

  watch(user) {
    this.port.postMessage({ type: "watch", user });
  }

  leave() {
    this.port.postMessage({ type: "leave" });
  }

  hurry() {
    this.port.postMessage({ type: "hurry" });
  }
}

class Own {
  constructor(hear) {
    this.hear = hear;
    this.user = null;
    this.stream = null;
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.leave();
      else this.watch(this.user);
    });
  }

  watch(user) {
    if (this.stream?.user === user && !this.stream.closed) return;
    this.leave();
    this.user = user;
    if (user && !document.hidden) this.stream = new Stream(user, this.hear);
  }

  leave() {
    this.stream?.close();
    this.stream = null;
  }

  hurry() {
    this.stream?.hurry();
  }
}
