// Where a person writes and attaches. What was typed or attached is kept until the server has taken it.

import { freshKey, send } from "./api.js";
import { count, el, icon, iconButton, name } from "./dom.js";
import { draft, keepDraft } from "./identity.js";

const MOST_FILES = 100;
const GROWS = CSS.supports("field-sizing", "content");

export class Composer {
  // `target` is {channel, thread?}; `sent` gets the server's {message, thread}, and what was posted, from which place.
  constructor({ place, target, label, placeholder, sent }) {
    Object.assign(this, { place, target, sent, files: [], attempt: null, busy: null });
    this.input = el("textarea", {
      rows: 1,
      id: `composer-${target.thread ? "thread" : "channel"}`,
      "aria-label": label,
      placeholder,
      value: draft(place),
      oninput: () => this.typed(),
      onkeydown: (event) => this.key(event),
      onpaste: (event) => this.pasted(event),
    });
    this.picker = el("input", {
      type: "file",
      multiple: true,
      class: "unseen",
      tabindex: "-1",
      "aria-label": "Files to add",
      onchange: () => this.picked(),
    });
    this.staged = el("ul", { class: "staged", "aria-label": "Files to be sent", hidden: true });
    this.progress = el("div", { class: "uploading", hidden: true });
    this.error = el("p", { class: "trouble", role: "alert", hidden: true });
    this.button = el(
      "button",
      { type: "submit", class: "send", "aria-label": "Send", title: "Send (Enter)" },
      icon("send"),
    );
    this.element = el(
      "form",
      { class: "composer", onsubmit: (event) => this.submit(event) },
      this.error,
      el(
        "div",
        { class: "field" },
        this.staged,
        this.progress,
        el(
          "div",
          { class: "line" },
          iconButton("attach", "Add files", () => this.picker.click()),
          this.picker,
          this.input,
          this.button,
        ),
      ),
    );
    this.typed();
  }

  focus() {
    this.input.focus();
  }

  fill(text) {
    this.input.value = text;
    this.typed();
    this.focus();
  }

  typed() {
    keepDraft(this.place, this.input.value);
    if (!GROWS) this.input.rows = Math.min(this.input.value.split("\n").length, 8);
    this.refresh();
  }

  refresh() {
    this.button.disabled = Boolean(this.busy) || !(this.input.value.trim() || this.files.length);
    this.input.readOnly = Boolean(this.busy);
    this.staged.hidden = !this.files.length;
  }

  key(event) {
    if (event.key !== "Enter" || event.shiftKey || event.altKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    this.element.requestSubmit();
  }

  pasted(event) {
    const files = [...event.clipboardData.files];
    if (!files.length || event.clipboardData.types.includes("text/plain")) return;
    event.preventDefault();
    this.stage(files);
  }

  picked() {
    this.stage([...this.picker.files]);
    this.picker.value = "";
  }

  stage(files) {
    if (this.busy) return;
    const known = new Set(this.files.map(fingerprint));
    this.files.push(...files.filter((file) => !known.has(fingerprint(file))));
    this.say(
      this.files.length > MOST_FILES
        ? `One post takes ${MOST_FILES} files. The rest was left out: send it after these.`
        : "",
    );
    this.files.length = Math.min(this.files.length, MOST_FILES);
    this.drawStaged();
    this.focus();
  }

  unstage(file) {
    this.files = this.files.filter((other) => other !== file);
    this.drawStaged();
    this.focus();
  }

  drawStaged() {
    this.staged.replaceChildren(
      ...this.files.map((file) =>
        el(
          "li",
          {},
          icon("file"),
          name(file.name, { class: "file-name" }),
          el("span", { class: "quiet" }, size(file.size)),
          iconButton("close", `Leave out ${file.name}`, () => this.unstage(file)),
        ),
      ),
    );
    this.refresh();
  }

  say(text) {
    this.error.textContent = text;
    this.error.hidden = !text;
  }

  async submit(event) {
    event.preventDefault();
    const text = this.input.value.trim();
    if (this.busy || !(text || this.files.length)) return;
    const files = [...this.files];
    const from = location.hash;
    this.busy = new AbortController();
    this.say("");
    this.refresh();
    if (files.length) this.drawProgress(files);
    try {
      const reply = await send(
        { ...this.target, text },
        files,
        this.keyFor(text, files),
        this.advance,
        this.busy.signal,
      );
      this.clear();
      this.sent(reply, { text, files, from });
    } catch (trouble) {
      if (trouble.status >= 400 && trouble.status < 500) this.attempt = null;
      this.say(trouble.message);
    } finally {
      this.busy = null;
      this.progress.hidden = true;
      this.refresh();
    }
  }

  keyFor(text, files) {
    const content = JSON.stringify([text, files.map(fingerprint)]);
    if (this.attempt?.content !== content) this.attempt = { content, key: freshKey() };
    return this.attempt.key;
  }

  clear() {
    this.attempt = null;
    this.files = [];
    this.input.value = "";
    this.drawStaged();
    this.typed();
  }

  drawProgress(files) {
    const meter = el("progress", { max: "1", "aria-label": "Upload" });
    const words = el("span", {}, `Uploading ${count(files.length, "file")}…`);
    this.advance = (share) => {
      meter.value = share;
      words.textContent =
        share < 1 ? `Uploading ${count(files.length, "file")}, ${Math.floor(share * 100)} %` : "Uploaded; being taken…";
    };
    this.progress.replaceChildren(
      words,
      meter,
      el("button", { type: "button", class: "plain", onclick: () => this.busy?.abort() }, "Stop"),
    );
    this.progress.hidden = false;
    this.staged.hidden = true;
  }

  advance() {}
}

const fingerprint = (file) => `${file.name}/${file.size}/${file.lastModified}`;

export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  const unit = bytes < 1e6 ? "kB" : "MB";
  const amount = bytes / (unit === "kB" ? 1e3 : 1e6);
  return `${amount < 10 ? amount.toFixed(1) : Math.round(amount)} ${unit}`;
}
