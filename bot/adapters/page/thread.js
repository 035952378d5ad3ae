// The open thread: its messages, what is being written, and the composer for what comes next.

import * as api from "./api.js";
import { announce, el, iconButton, name, replaceFocused } from "./dom.js";
import { markdown } from "./markdown.js";
import { avatar, drawFileProgress, messageView, pendingCite } from "./message.js";

const NEAR = 120; // pixels from the end that still count as reading the end
const SETTLE = 250;
const SENT = "sent";
const SENT_FOR = 8000;

export class Thread {
  // `page` gives cite(citations, number), composer(), decided(reply), closeThread(), threadsChanged(), here().
  constructor(page, live) {
    this.page = { ...page, changed: (message) => this.changed(message), decided: (reply) => this.decided(reply) };
    this.live = live;
    this.id = "";
    this.messages = new Map(); // id → {message, written, element}
    this.writing = new Map(); // question → element of the answer that is being written
    this.foreign = new Set(); // questions of other threads
    this.region = document.getElementById("thread");
    this.bar = document.getElementById("thread-bar");
    this.body = document.getElementById("thread-body");
    this.list = el("div", { class: "messages" });
    this.newer = el(
      "button",
      { type: "button", class: "newer", hidden: true, onclick: () => this.toEnd() },
      "New reply ↓",
    );
    this.body.addEventListener("scroll", () => this.atEnd() && (this.newer.hidden = true), { passive: true });
  }

  async show({ channel, thread, message }) {
    const same = this.id === thread;
    this.id = thread;
    this.channel = channel;
    this.region.hidden = !thread;
    if (!thread) return;
    if (!same) this.clear();
    await this.load();
    if (this.id !== thread) return;
    if (message) this.point(message);
    else if (!same) this.toEnd();
  }

  clear() {
    this.messages.clear();
    this.writing.clear();
    this.foreign.clear();
    this.list.replaceChildren(el("p", { class: "quiet loading" }, "Loading…"));
    this.newer.hidden = true;
    this.bar.replaceChildren(
      iconButton("back", "Back to the channel", () => this.page.closeThread(), { class: "icon-button only-narrow" }),
      el("h2", { tabindex: "-1", id: "thread-title" }, "Thread"),
      name(`in ${this.page.titleOf(this.channel)}`, { class: "quiet" }),
      iconButton("close", "Close the thread (Esc)", () => this.page.closeThread(), {
        class: "icon-button push only-wide",
      }),
    );
    this.body.replaceChildren(this.list, this.newer);
  }

  async load() {
    const thread = this.id;
    try {
      const found = await api.thread(thread);
      if (thread === this.id) this.draw(found.messages ?? []);
    } catch (trouble) {
      if (thread === this.id && !this.messages.size) this.draw404(trouble);
    }
  }

  draw404(trouble) {
    this.list.replaceChildren(
      el(
        "div",
        { class: "empty" },
        el("p", {}, trouble.message),
        el("button", { type: "button", onclick: () => this.load() }, "Try again"),
      ),
    );
  }

  // Soon, and once for a burst of news.
  changed(message) {
    if (message) {
      this.live.end(message);
      this.drop(message);
    }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.id && this.load(), message ? 0 : SETTLE);
    this.page.threadsChanged();
  }

  decided({ message }) {
    this.live.status(message, "thinking…");
    this.changed();
  }

  draw(messages) {
    const follow = this.atEnd();
    const kept = new Set(messages.map((message) => message.message));
    for (const [id, entry] of this.messages) {
      if (kept.has(id)) continue;
      entry.element.remove();
      this.messages.delete(id);
    }
    const opening = !this.messages.size;
    if (opening) this.list.replaceChildren();
    const fresh = messages.filter((message) => message.reply_to && !this.messages.has(message.message));
    let before = null;
    for (const message of messages) {
      before = this.put(message, before);
      if (message.deleted) this.live.end(message.message);
    }
    for (const { reply_to: question } of fresh) if (!opening || !this.live.get(question)?.text) this.settle(question);
    for (const message of messages) this.drawTurn(message.message);
    if (follow) this.toEnd();
  }

  // The element of a message, made anew only where the message has changed, after `before`.
  put(message, before) {
    const written = JSON.stringify(message);
    const entry = this.messages.get(message.message);
    let element = entry?.element;
    if (!entry || (entry.written !== written && !element.classList.contains("is-editing"))) {
      const fresh = messageView(message, this.page);
      fresh.id = `message-${message.message}`;
      if (entry) replaceFocused(element, fresh);
      element = fresh;
      this.messages.set(message.message, { message, written, element });
    }
    this.list.querySelector(":scope > .loading")?.remove();
    const place = before ? before.nextSibling : this.list.firstChild;
    if (place !== element) this.list.insertBefore(element, place);
    return element;
  }

  // What is known to be posted, before the server is asked for the thread.
  add(message) {
    this.put(message, [...this.messages.values()].at(-1)?.element ?? null);
    this.sent(message.message);
    this.drawTurn(message.message);
    this.toEnd();
  }

  // "sent" until the turn says more; what nobody answers, since it is meant for another person, says no more.
  sent(message) {
    this.live.status(message, SENT);
    setTimeout(() => this.live.get(message)?.status === SENT && this.settle(message), SENT_FOR);
  }

  hears({ message, reply_to: question }) {
    return this.messages.has(message) || this.messages.has(question);
  }

  // A status or a token of a question that isn't here: somebody may just have asked it in this thread.
  unknown(question) {
    if (!this.id || this.messages.has(question) || this.foreign.has(question)) return;
    this.foreign.add(question);
    this.changed();
  }

  post(message) {
    const waited = message.files?.some((file) => !file.verdict);
    if (message.deleted || (message.files?.length && !waited && !message.text)) this.settle(message.message);
    const entry = this.messages.get(message.message);
    const follow = this.atEnd();
    this.put(message, entry ? entry.element.previousSibling : ([...this.messages.values()].at(-1)?.element ?? null));
    this.drawTurn(message.message);
    if (follow) this.toEnd();
    this.changed();
  }

  reply(message) {
    const known = this.messages.has(message.message);
    const follow = this.atEnd();
    this.settle(message.reply_to);
    const entry = this.messages.get(message.message);
    const last = entry ? entry.element.previousSibling : [...this.messages.values()].at(-1)?.element;
    this.put(message, last ?? null);
    if (message.author === "bot" && !known) announce(`Threadlore: ${plain(message.text)}`);
    if (follow) this.toEnd();
    else if (!known) this.newer.hidden = false;
    this.changed();
  }

  settle(question) {
    this.live.end(question);
    this.drop(question);
  }

  drop(question) {
    this.writing.get(question)?.remove();
    this.writing.delete(question);
    this.messages.get(question)?.element.querySelector(".doing")?.remove();
  }

  // The quiet line under the question, and the answer as far as it is written.
  drawTurn(question) {
    const turn = this.live.get(question);
    const entry = this.messages.get(question);
    if (!turn || !entry || entry.message.deleted) return;
    const follow = this.atEnd();
    const status = drawFileProgress(entry.element, turn) ? "" : turn.status;
    this.drawStatus(entry.element, turn, status);
    if (turn.text) this.drawText(question, turn.text);
    if (follow) this.toEnd();
  }

  drawStatus(element, turn, status) {
    const content = element.querySelector(".content");
    let line = content.querySelector(".doing");
    if (!status || (turn.text && !turn.broken)) {
      line?.remove();
      return;
    }
    if (!line) {
      line = el("p", { class: "doing" }, el("span", { class: "pulse", "aria-hidden": "true" }), el("span", {}));
      content.append(line);
    }
    if (line.lastChild.textContent !== status) line.lastChild.textContent = status;
  }

  drawText(question, text) {
    let element = this.writing.get(question);
    if (!element) {
      element = el(
        "article",
        { class: "message bot is-writing", "aria-label": "Threadlore is writing", "aria-busy": "true" },
        avatar(true),
        el(
          "div",
          { class: "content" },
          el("header", {}, el("span", { class: "author" }, "Threadlore")),
          el("div", { class: "text", dir: "auto" }),
        ),
      );
      this.writing.set(question, element);
      this.list.append(element);
    }
    element.querySelector(".text").replaceChildren(markdown(text, pendingCite));
  }

  atEnd() {
    return this.body.scrollHeight - this.body.scrollTop - this.body.clientHeight < NEAR;
  }

  toEnd() {
    this.body.scrollTop = this.body.scrollHeight;
    this.newer.hidden = true;
  }

  point(message) {
    const element = this.messages.get(message)?.element;
    if (!element) return this.toEnd();
    element.scrollIntoView({ block: "center" });
    element.classList.add("is-pointed");
    setTimeout(() => element.classList.remove("is-pointed"), 2500);
    return undefined;
  }

  focus() {
    document.getElementById("thread-title")?.focus({ preventScroll: true });
  }
}

const plain = (text) =>
  text
    .replace(/\[\d+\]|[*_`#>|]/g, "")
    .replace(/\s+/g, " ")
    .trim();
