// The open channel: its threads, newest activity last, and the composer that begins a new one.

import * as api from "./api.js";
import { arrowKeys, count, el, icon, iconButton, name, rove, time } from "./dom.js";
import { direct, user } from "./identity.js";
import { avatar } from "./message.js";
import { format } from "./place.js";

export class Channel {
  // `page` gives composer(), documents (a view), settings(channel), known(channel), titleOf(channel), back().
  constructor(page) {
    this.page = page;
    this.channel = "";
    this.view = "threads";
    this.selected = "";
    this.unread = new Set();
    this.awaited = ""; // the thread whose row gets the focus as soon as it is there
    this.threads = [];
    this.bar = document.getElementById("channel-bar");
    this.body = document.getElementById("channel-body");
    this.list = el("ul", { class: "thread-list", "aria-label": "Threads" });
    arrowKeys(this.list, "a");
  }

  async show({ channel, view, thread }) {
    const moved = this.channel !== channel || this.view !== view;
    Object.assign(this, { channel, view, selected: thread });
    this.unread.delete(thread);
    this.drawBar();
    if (view === "documents") {
      if (moved) this.body.replaceChildren(this.page.documents.element);
      return this.page.documents.show(channel);
    }
    if (!moved) return this.select();
    this.body.replaceChildren(el("p", { class: "quiet loading" }, "Loading…"));
    return this.load(true);
  }

  drawBar() {
    const known = this.page.known(this.channel);
    const tab = (view, label) =>
      el(
        "a",
        {
          href: format({ channel: this.channel, view }),
          class: "tab",
          "aria-current": this.view === view ? "page" : null,
        },
        label,
      );
    const manages = !this.channel.startsWith("@") && known?.manages !== false;
    this.bar.replaceChildren(
      iconButton("back", "Channels", () => this.page.back(), { class: "icon-button only-narrow" }),
      el("h1", { id: "channel-title", tabindex: "-1" }, name(this.page.titleOf(this.channel))),
      known?.knowledge === false
        ? el("span", { class: "badge yields", title: "Files posted here aren’t learnt" }, "no knowledge")
        : "",
      el(
        "nav",
        { class: "tabs push", "aria-label": "Views of the channel" },
        tab("threads", "Threads"),
        tab("documents", "Documents"),
      ),
      manages ? iconButton("gear", "Channel settings", () => this.page.settings(this.channel)) : "",
    );
  }

  async load(fresh = false) {
    if (this.view !== "threads" || !this.channel) return;
    const channel = this.channel;
    try {
      const { threads = [] } = await api.threads(channel);
      if (channel !== this.channel || this.view !== "threads") return;
      this.threads = threads.sort((one, other) => (one.last ?? 0) - (other.last ?? 0));
      await this.draw(fresh);
    } catch (trouble) {
      if (channel === this.channel && this.view === "threads" && (fresh || !this.threads.length))
        this.drawTrouble(trouble);
    }
  }

  drawTrouble(trouble) {
    this.body.replaceChildren(
      el(
        "div",
        { class: "empty", role: "alert" },
        el("p", {}, trouble.message),
        el("button", { type: "button", onclick: () => this.load(true) }, "Try again"),
      ),
    );
  }

  async draw(fresh) {
    if (!this.threads.length) return this.drawWelcome();
    const follow = fresh || this.atEnd();
    const focused = this.list.contains(document.activeElement) ? document.activeElement.dataset.thread : null;
    this.list.replaceChildren(...this.threads.map((thread) => this.row(thread)));
    if (!this.list.isConnected) this.body.replaceChildren(this.list);
    this.select();
    if (focused) this.link(focused)?.focus();
    else if (this.awaited && document.activeElement === document.body) this.focus(this.awaited);
    if (follow) this.body.scrollTop = this.body.scrollHeight;
    return undefined;
  }

  /** Focus a thread's row, or wait for it where the list doesn't have it yet. */
  focus(thread) {
    const link = this.link(thread);
    this.awaited = link ? "" : thread;
    link?.focus();
  }

  link(thread) {
    return this.list.querySelector(`a[data-thread="${CSS.escape(thread)}"]`);
  }

  atEnd() {
    return this.body.scrollHeight - this.body.scrollTop - this.body.clientHeight < 80;
  }

  row(thread) {
    const replies = Math.max((thread.messages ?? 1) - 1, 0);
    const unread = this.unread.has(thread.thread);
    return el(
      "li",
      {},
      el(
        "a",
        {
          href: format({ channel: this.channel, thread: thread.thread }),
          class: `thread-row${unread ? " is-unread" : ""}`,
          "data-thread": thread.thread,
        },
        avatar(false, thread.user || "?"),
        el(
          "span",
          { class: "thread-words" },
          el(
            "span",
            { class: "thread-meta" },
            name(thread.user === user() ? "You" : thread.user, { class: "author" }),
            time(thread.last, { class: "quiet" }),
          ),
          name(thread.text || "Files", { class: "thread-text" }),
          el(
            "span",
            { class: "quiet" },
            replies ? count(replies, "reply", "replies") : "no reply yet",
            unread ? el("span", { class: "unread" }, "new") : "",
          ),
        ),
      ),
    );
  }

  select() {
    const links = [...this.list.querySelectorAll("a")];
    for (const link of links) {
      const current = link.dataset.thread === this.selected;
      link.setAttribute("aria-current", String(current));
      if (current) link.classList.remove("is-unread");
    }
    rove(links, links.find((link) => link.dataset.thread === this.selected) ?? links.at(-1));
  }

  async drawWelcome() {
    const channel = this.channel;
    const { documents = [] } = await api.documents(channel).catch(() => ({}));
    if (channel !== this.channel || this.view !== "threads") return;
    const read = documents.filter((document) => document.verdict !== "refused").slice(-2);
    const examples = [...read.map((document) => `What is in ${document.name}?`), "What can you do?"];
    const alone = channel === direct();
    this.body.replaceChildren(
      el(
        "div",
        { class: "empty welcome" },
        el("img", { src: "/static/icon.svg", alt: "", width: "56", height: "56" }),
        el("h2", {}, alone ? "Ask your files, on your own." : "Ask your team’s files."),
        el(
          "ol",
          { class: "steps" },
          el(
            "li",
            {},
            el("strong", {}, "Drop a file"),
            " anywhere on this page: a handbook, a contract, a spreadsheet.",
          ),
          el(
            "li",
            {},
            el("strong", {}, "Ask a question"),
            " below. Every statement of the answer links to the place where it stands.",
          ),
        ),
        el(
          "div",
          { class: "buttons" },
          el(
            "button",
            { type: "button", class: "primary", onclick: () => this.page.add() },
            icon("attach"),
            "Add files",
          ),
          examples.map((text) =>
            el(
              "button",
              { type: "button", class: "option", onclick: () => this.page.composer().fill(text) },
              name(text),
            ),
          ),
        ),
        alone ? el("p", { class: "quiet" }, "Only you see this channel and what you post to it.") : null,
      ),
    );
  }

  // A reply came in a thread that isn't open.
  heard(thread) {
    if (thread && thread !== this.selected) this.unread.add(thread);
  }

  soon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(
      () => (this.view === "documents" ? this.page.documents.show(this.channel) : this.load()),
      300,
    );
  }
}
