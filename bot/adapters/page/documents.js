// The documents that serve a channel.

import * as api from "./api.js";
import { count, el, name, time } from "./dom.js";
import { size } from "./composer.js";
import { format } from "./place.js";

const VERDICTS = { indexed: "ready", superseded: "ready", unchanged: "ready", refused: "not taken" };

export class Documents {
  // `page` gives add(), titleOf(channel), and expect(message, take): the reply to a message, when it comes.
  constructor(page) {
    this.page = page;
    this.element = el("div", { class: "documents" });
    this.said = el("div", { class: "said", role: "status" });
    this.slots = new Map(); // document id → the place below its row, which outlives a redrawing of the list
  }

  async show(channel) {
    if (this.channel !== channel) {
      this.channel = channel;
      this.said.replaceChildren();
      this.slots.clear();
      this.element.replaceChildren(el("p", { class: "quiet loading" }, "Loading…"));
    }
    try {
      const { documents = [] } = await api.documents(channel);
      if (this.channel === channel) this.draw(documents);
    } catch (trouble) {
      if (this.channel === channel)
        this.element.replaceChildren(el("p", { class: "trouble", role: "alert" }, trouble.message));
    }
  }

  draw(documents) {
    const focused = document.activeElement;
    this.element.replaceChildren(this.said, ...(documents.length ? this.lists(documents) : [this.empty()]));
    if (this.element.contains(focused)) focused.focus(); // a node that moves loses it
  }

  lists(documents) {
    const passages = documents.reduce((sum, document) => sum + (document.passages || 0), 0);
    return [
      el("p", { class: "quiet summary" }, `${count(documents.length, "document")}, ${count(passages, "passage")}`),
      this.list(documents.filter((document) => !this.foreign(document))),
      this.borrowed(documents.filter((document) => this.foreign(document))),
    ];
  }

  empty() {
    return el(
      "div",
      { class: "empty" },
      el("h3", {}, "No documents yet"),
      el(
        "p",
        {},
        "Drop files anywhere on this page, or choose some. What they say can then be asked for, with the place where it stands.",
      ),
      el("button", { type: "button", class: "primary", onclick: () => this.page.add() }, "Add files"),
    );
  }

  foreign(document) {
    return Boolean(document.channel) && document.channel !== this.channel;
  }

  list(documents) {
    return documents.length
      ? el(
          "ul",
          { class: "document-list" },
          documents.map((document) => this.row(document)),
        )
      : "";
  }

  borrowed(documents) {
    if (!documents.length) return "";
    return el("section", {}, el("h3", { class: "group" }, "From other channels"), this.list(documents));
  }

  row(document) {
    const facts = [
      document.version > 1 ? `version ${document.version}` : "",
      document.pages ? count(document.pages, "page") : "",
      document.passages ? count(document.passages, "passage") : "",
      document.size ? size(document.size) : "",
      this.foreign(document) ? `in ${this.page.titleOf(document.channel)}` : "",
    ].filter(Boolean);
    const refused = document.verdict === "refused";
    const slot = refused ? null : this.slot(document.document);
    const forget = el(
      "button",
      { type: "button", class: "plain danger-text", onclick: () => this.ask(document, slot) },
      "Forget",
    );
    return el(
      "li",
      { class: `document verdict-${document.verdict}` },
      el(
        "div",
        { class: "document-line" },
        name(document.name, { class: "document-name" }),
        el("span", { class: "badge" }, VERDICTS[document.verdict] ?? document.verdict),
      ),
      refused && document.reason ? el("p", { class: "reason" }, document.reason) : null,
      el("p", { class: "quiet facts" }, facts.join(" · ")),
      el(
        "p",
        { class: "quiet facts" },
        this.posted(document),
        refused ? null : el("span", { class: "document-actions" }, forget),
      ),
      slot,
    );
  }

  posted(document) {
    const at = time(document.posted_at);
    const words = ["posted", document.posted_by ? [" by ", name(document.posted_by)] : "", at ? [", ", at] : ""].flat();
    if (!document.thread) return el("span", {}, words);
    return el("a", { href: format({ channel: document.channel || this.channel, thread: document.thread }) }, words);
  }

  slot(id) {
    if (!this.slots.has(id)) this.slots.set(id, el("div", { class: "slot" }));
    return this.slots.get(id);
  }

  ask(document, slot) {
    const yes = el("button", { type: "button", class: "danger", onclick: () => this.forget(document, slot) }, "Forget");
    const no = el(
      "button",
      {
        type: "button",
        onclick: () => {
          slot.replaceChildren();
          slot.closest(".document").querySelector(".danger-text").focus();
        },
      },
      "Keep",
    );
    const question = `Forget ${document.name}? It answers nothing from then on.`;
    slot.replaceChildren(
      el(
        "div",
        { class: "confirm", role: "group", "aria-label": question },
        el("p", {}, "Forget ", name(document.name), "? It answers nothing from then on."),
        el("div", { class: "buttons" }, yes, no),
      ),
    );
    yes.focus();
  }

  async forget(document, slot) {
    slot.replaceChildren(el("p", { class: "quiet" }, "Asking Threadlore to forget it…"));
    const channel = document.channel || this.channel;
    try {
      const { message, thread } = await api.send({ channel, text: `forget ${document.name}` }, [], api.freshKey());
      this.page.expect(message, (reply) => {
        slot.replaceChildren();
        const link = el("a", { href: format({ channel, thread }) }, "See the thread");
        this.said.replaceChildren(
          el("p", { class: reply.kind === "error" ? "trouble" : "notice" }, name(reply.text), " ", link),
        );
        this.show(this.channel);
      });
    } catch (trouble) {
      slot.replaceChildren(el("p", { class: "trouble", role: "alert" }, trouble.message));
    }
  }
}
