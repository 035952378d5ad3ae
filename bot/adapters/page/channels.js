// The list of channels, who one is, and the dialog that makes or changes a channel.

import * as api from "./api.js";
import { arrowKeys, el, icon, iconButton, name, rove } from "./dom.js";
import { direct, setUser, user } from "./identity.js";
import { format } from "./place.js";

export const FIRST = "general";

export class Channels {
  // `page` gives here(), go(place), and userChanged().
  constructor(page) {
    this.page = page;
    this.known = new Map();
    this.unread = new Set();
    this.element = document.getElementById("channels");
    this.identity = document.getElementById("whoami");
    arrowKeys(this.element, "a");
    this.drawIdentity();
  }

  async load() {
    try {
      const { channels = [] } = await api.channels();
      this.known = new Map(channels.map((channel) => [channel.channel, channel]));
      this.trouble = "";
    } catch (trouble) {
      this.trouble = trouble.message;
    }
    this.draw();
  }

  titleOf(channel) {
    if (channel === direct()) return "Just me";
    return channel.startsWith("@") ? channel : `# ${channel}`;
  }

  draw() {
    const current = this.page.here().channel;
    const focused = this.element.contains(document.activeElement) ? document.activeElement.dataset.channel : null;
    const names = new Set([FIRST, ...this.known.keys(), ...(current ? [current] : [])]);
    const shared = [...names]
      .filter((channel) => !channel.startsWith("@"))
      .sort((one, other) => one.localeCompare(other));
    this.element.replaceChildren(
      el(
        "div",
        { class: "section-head" },
        el("h2", {}, "Channels"),
        iconButton("plus", "New channel", () => this.edit()),
      ),
      el(
        "ul",
        {},
        shared.map((channel) => this.row(channel, current)),
      ),
      el("div", { class: "section-head" }, el("h2", {}, "Direct")),
      el("ul", {}, this.row(direct(), current)),
      this.trouble ? el("p", { class: "trouble" }, this.trouble) : "",
    );
    const links = [...this.element.querySelectorAll("a")];
    rove(
      links,
      links.find((link) => link.dataset.channel === (focused ?? current)),
    );
    if (focused) links.find((link) => link.dataset.channel === focused)?.focus();
  }

  row(channel, current) {
    const known = this.known.get(channel);
    const closed = known?.visibility === "private";
    const mine = channel === direct();
    const unread = this.unread.has(channel) && channel !== current;
    return el(
      "li",
      {},
      el(
        "a",
        {
          href: format({ channel }),
          class: `channel-row${unread ? " is-unread" : ""}`,
          "data-channel": channel,
          "aria-current": channel === current ? "page" : null,
        },
        icon(mine ? "person" : closed ? "lock" : "hash"),
        name(mine ? "Just me" : channel),
        closed && !mine ? el("span", { class: "unseen" }, "(private)") : "",
        unread ? el("span", { class: "unread" }, el("span", { class: "unseen" }, "new replies")) : "",
      ),
    );
  }

  heard(channel) {
    if (!channel || channel === this.page.here().channel) return;
    this.unread.add(channel);
    this.draw();
  }

  seen(channel) {
    this.unread.delete(channel);
    this.draw();
  }

  drawIdentity() {
    this.identity.replaceChildren(
      el("span", { class: "quiet" }, "You are"),
      el(
        "button",
        {
          type: "button",
          class: "plain who",
          "aria-label": `You are ${user()}. Change your name`,
          onclick: () => this.rename(),
        },
        name(user()),
      ),
    );
  }

  rename() {
    const input = el("input", {
      value: user(),
      "aria-label": "Your name",
      maxlength: "60",
      required: true,
      autocomplete: "nickname",
    });
    const done = () => {
      this.drawIdentity();
      this.identity.querySelector("button").focus();
    };
    const form = el(
      "form",
      {
        class: "rename",
        onsubmit: (event) => {
          event.preventDefault();
          const chosen = input.value.trim().replace(/^@/, "");
          const changed = chosen && chosen !== user();
          if (changed) setUser(chosen);
          done();
          if (changed) this.page.userChanged();
        },
        onkeydown: (event) => event.key === "Escape" && (event.stopPropagation(), done()),
      },
      input,
      el("button", { type: "submit", class: "primary" }, "Save"),
      el("p", { class: "quiet" }, "Taken at your word: the page is for people who trust each other."),
    );
    this.identity.replaceChildren(form);
    input.select();
    input.focus();
  }

  // A new channel, or what is known of one.
  edit(channel = "") {
    const known = this.known.get(channel) ?? { visibility: "public", members: [], knowledge: true };
    const closed = known.visibility === "private";
    const title = el("input", {
      value: channel,
      required: true,
      maxlength: "60",
      readonly: Boolean(channel),
      autocomplete: "off",
      spellcheck: "false",
    });
    const members = el("input", {
      value: (closed && known.members?.length ? known.members : [user()]).join(", "),
      autocomplete: "off",
      spellcheck: "false",
    });
    const visible = (value, label, hint) =>
      el(
        "label",
        { class: "choice-row" },
        el("input", {
          type: "radio",
          name: "visibility",
          value,
          checked: (value === "private") === closed,
          onchange: () => sync(),
        }),
        el("span", {}, label, el("span", { class: "quiet" }, hint)),
      );
    const memberField = el("label", { class: "row-field" }, "Members, with commas", members);
    const knowledge = el("input", { type: "checkbox", checked: known.knowledge !== false });
    const trouble = el("p", { class: "trouble", role: "alert", hidden: true });
    const form = el(
      "form",
      { method: "dialog", onsubmit: (event) => save(event) },
      el("h2", { id: "channel-dialog-title" }, channel ? `Settings of ${this.titleOf(channel)}` : "New channel"),
      el("label", { class: "row-field" }, "Name", title),
      el(
        "fieldset",
        {},
        el("legend", {}, "Who reads it"),
        visible("public", "Everyone", "its documents serve every channel"),
        visible("private", "Members only", "its documents serve its members’ questions in it"),
      ),
      memberField,
      el(
        "label",
        { class: "choice-row" },
        knowledge,
        el(
          "span",
          {},
          "Learn the files posted here",
          el("span", { class: "quiet" }, "off: no new files are taken, what is known stays"),
        ),
      ),
      trouble,
      el(
        "div",
        { class: "buttons" },
        el("button", { type: "submit", class: "primary" }, channel ? "Save" : "Create"),
        el("button", { type: "button", onclick: () => dialog.close() }, "Cancel"),
      ),
    );
    const dialog = el(
      "dialog",
      { class: "small", "aria-labelledby": "channel-dialog-title", onclose: () => dialog.remove() },
      form,
    );
    const isPrivate = () => form.elements.visibility.value === "private";
    const sync = () => (memberField.hidden = !isPrivate());
    const save = async (event) => {
      event.preventDefault();
      const chosen = title.value.trim().replace(/^#\s*/, "");
      const people = members.value
        .split(",")
        .map((person) => person.trim())
        .filter(Boolean);
      const body = {
        visibility: isPrivate() ? "private" : "public",
        members: isPrivate() ? people : [],
        knowledge: knowledge.checked,
      };
      try {
        await api.changeChannel(chosen, body);
      } catch (problem) {
        trouble.textContent = problem.message;
        trouble.hidden = false;
        return;
      }
      dialog.close();
      await this.load();
      this.page.go({ channel: chosen });
      this.page.channelChanged();
    };
    document.body.append(dialog);
    sync();
    dialog.showModal();
    (channel ? members : title).focus();
  }
}
