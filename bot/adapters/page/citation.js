// What a citation opens: the section that it points to, with the quote marked.

import * as api from "./api.js";
import { el, iconButton, name } from "./dom.js";
import { anchor, markdown, startsBlock } from "./markdown.js";
import { placeOf } from "./message.js";
import { format } from "./place.js";
import { markQuote } from "./quote.js";

const WRAPPED = 55; // a line this wide was broken by its width, not by its author
const WIDE = /[\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef]/u;

export class CitationPanel {
  constructor() {
    this.heading = el("div", { class: "panel-title" });
    this.body = el("div", { class: "panel-body", tabindex: "0", role: "region", "aria-label": "The cited section" });
    this.foot = el("footer", { class: "panel-foot" });
    this.dialog = el(
      "dialog",
      { class: "panel", id: "citation", "aria-labelledby": "citation-title" },
      el(
        "header",
        { class: "bar" },
        this.heading,
        iconButton("close", "Close (Esc)", () => this.dialog.close(), { class: "icon-button push" }),
      ),
      this.body,
      this.foot,
    );
    this.dialog.addEventListener("click", (event) => event.target === this.dialog && this.dialog.close());
    this.dialog.addEventListener("close", () => this.opener?.isConnected && this.opener.focus());
    this.dialog.addEventListener("keydown", (event) => this.key(event));
    document.body.append(this.dialog);
  }

  open(citations, number) {
    this.citations = [...citations].sort((one, other) => one.number - other.number);
    if (!this.dialog.open) {
      this.opener = document.activeElement;
      this.dialog.showModal();
    }
    this.turnTo(this.citations.findIndex((citation) => citation.number === number));
  }

  close() {
    if (this.dialog.open) this.dialog.close();
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step && this.citations[this.at + step]) this.turnTo(this.at + step);
  }

  turnTo(at) {
    this.at = at;
    const citation = this.citations[at];
    this.heading.replaceChildren(
      el(
        "h2",
        { id: "citation-title" },
        el("span", { class: "cite", "aria-hidden": "true" }, String(citation.number)),
        name(citation.name),
      ),
    );
    this.drawFoot(citation);
    this.load(citation, citation.section, true);
  }

  drawFoot(citation) {
    const step = (by, picture, label) =>
      iconButton(
        picture,
        label,
        () => {
          this.turnTo(this.at + by);
          this.body.focus();
        },
        { disabled: !this.citations[this.at + by] },
      );
    const many = this.citations.length > 1;
    this.foot.replaceChildren(
      many ? step(-1, "back", "Previous source (←)") : "",
      many ? el("span", { class: "quiet" }, `Source ${this.at + 1} of ${this.citations.length}`) : "",
      many ? step(1, "next", "Next source (→)") : "",
      (citation.link && anchor(citation.link, ["Open the post"], { class: "push", onclick: () => this.close() })) || "",
    );
  }

  async load(citation, number, marked) {
    const wanted = (this.wanted = Symbol("load"));
    this.body.setAttribute("aria-busy", "true");
    try {
      const section = await api.section(citation.document, number, citation.version);
      if (wanted === this.wanted) this.draw(citation, section, number, marked);
    } catch (trouble) {
      if (wanted === this.wanted)
        this.body.replaceChildren(el("p", { class: "trouble", role: "alert" }, trouble.message));
    } finally {
      if (wanted === this.wanted) this.body.removeAttribute("aria-busy");
    }
  }

  draw(citation, section, number, marked) {
    const place = marked ? placeOf(citation) || section.place : section.place;
    const where = [section.version ? `version ${section.version}` : "", place].filter(Boolean).join(" · ");
    if (section.deleted) {
      const why = "This document was deleted since. It answers nothing any more, and its text isn’t kept.";
      return this.drawGone(where, "Deleted", why);
    }
    if (section.state === "superseded" && !section.text) {
      const why = `Version ${section.version} was replaced by version ${section.current}; its text is no longer kept.`;
      return this.drawGone(where, "Replaced", why, this.documents(section));
    }
    const text = el("div", { class: "source-text", dir: "auto" }, markdown(unwrap(section.text ?? "")));
    const mark = marked ? this.mark(text, section.text ?? "", citation.quote) : null;
    this.body.replaceChildren(
      el("p", { class: "quiet where" }, name(where)),
      this.around(citation, number - 1, "earlier", "↑ The section before"),
      text,
      this.around(citation, number + 1, "later", "The section after ↓"),
    );
    if (mark) mark.scrollIntoView({ block: "center" });
    else this.body.scrollTop = 0;
    if (marked && citation.quote && !mark) text.before(el("blockquote", { class: "quoted" }, citation.quote));
  }

  drawGone(where, what, why, ...more) {
    this.body.replaceChildren(
      el("p", { class: "quiet" }, name(where)),
      el("div", { class: "gone", role: "alert" }, el("strong", {}, what), el("p", {}, why)),
      ...more,
    );
  }

  documents(section) {
    const href = format({ channel: section.channel, view: "documents" });
    return el("p", {}, el("a", { href, class: "plain", onclick: () => this.close() }, "Documents of its channel"));
  }

  // Rendered Markdown first; where its marks cut through the quote, the text as it stands.
  mark(text, written, quote) {
    if (!quote) return null;
    const found = markQuote(text, quote);
    if (found) return found;
    const plain = el("pre", { class: "as-written" }, written);
    const mark = markQuote(plain, quote);
    if (mark) text.replaceChildren(plain);
    return mark;
  }

  around(citation, number, kind, label) {
    if (number < 1) return "";
    return el(
      "button",
      {
        type: "button",
        class: `plain around ${kind}`,
        onclick: () => this.load(citation, number, number === citation.section),
      },
      label,
    );
  }
}

// A source's paragraphs often come in lines of a fixed width: those are joined, short lines stay as they are.
export function unwrap(text) {
  const lines = text.split("\n");
  let fenced = false;
  return lines
    .map((line, at) => {
      if (/^ {0,3}(```|~~~)/.test(line)) fenced = !fenced;
      return at + 1 < lines.length ? line.trimEnd() + (fenced ? "\n" : glue(lines, at)) : line;
    })
    .join("");
}

function glue(lines, at) {
  const line = lines[at].trimEnd();
  const next = lines[at + 1].trimStart();
  const stays = !next || /^\s*[#|>]/.test(line) || line.includes("|") || startsBlock(lines, at + 1);
  if (stays || width(line) < WRAPPED) return "\n";
  return WIDE.test(line.at(-1)) && WIDE.test(next[0]) ? "" : " ";
}

const width = (line) => [...line].reduce((sum, character) => sum + (WIDE.test(character) ? 2 : 1), 0);
