// One message as it stands in a thread.

import * as api from "./api.js";
import { el, icon, iconButton, name, time } from "./dom.js";
import { keepVote, user, vote } from "./identity.js";
import { anchor, markdown } from "./markdown.js";

const VERDICTS = {
  indexed: "ready",
  superseded: "new version",
  unchanged: "already known",
  refused: "not taken",
};
const RATED = new Set(["answer"]);
const SHOWN_SOURCES = 6;

// `page` has cite(citations, number), changed(), and composer(): what a message asks of the page around it.
export function messageView(message, page) {
  const bot = message.author === "bot";
  const mine = !bot && message.user === user();
  const element = el(
    "article",
    {
      class: `message ${bot ? "bot" : "person"} kind-${message.kind || "message"}${message.deleted ? " is-deleted" : ""}`,
      "aria-label": bot ? "Threadlore" : message.user,
      tabindex: "-1",
    },
    avatar(bot, message.user),
  );
  const content = el(
    "div",
    { class: "content" },
    head(message, mine, () => element, page),
  );
  element.append(content);
  if (message.deleted)
    content.append(el("p", { class: "quiet" }, bot ? "This reply was removed." : "This message was deleted."));
  else content.append(...body(message, page));
  return element;
}

function body(message, page) {
  const bot = message.author === "bot";
  return [
    message.text ? text(message, page) : null,
    message.files?.length && !bot ? files(message.files) : null,
    message.clarification ? choices(message, page) : null,
    message.citations?.length ? sources(message.citations, page) : null,
    bot && RATED.has(message.kind) ? rating(message) : null,
  ].filter(Boolean);
}

export function avatar(bot, who) {
  if (bot) return el("img", { class: "avatar", src: "/static/icon.svg", alt: "", width: "32", height: "32" });
  const hue = [...who].reduce((sum, character) => sum + character.codePointAt(0), 0) % 6;
  return el(
    "span",
    { class: `avatar hue-${hue}`, "aria-hidden": "true" },
    ([...who.replace(/^@/, "")][0] ?? "?").toUpperCase(),
  );
}

function head(message, mine, element, page) {
  const bot = message.author === "bot";
  const author = bot ? el("span", { class: "author" }, "Threadlore") : name(message.user, { class: "author" });
  const actions = el(
    "span",
    { class: "actions" },
    iconButton("edit", "Edit this message", () => startEdit(message, element(), page), { "data-focus": "edit" }),
    iconButton("trash", "Delete this message", () => startDelete(message, element(), page), { "data-focus": "delete" }),
  );
  return el(
    "header",
    {},
    author,
    mine ? el("span", { class: "quiet" }, "you") : null,
    time(message.sent_at, { class: "quiet" }),
    message.edited && !message.deleted ? el("span", { class: "quiet" }, "edited") : null,
    mine && !message.deleted ? actions : null,
  );
}

function text(message, page) {
  const known = new Map((message.citations ?? []).map((citation) => [citation.number, citation]));
  const cite = (number) =>
    known.has(number) && citeButton(known.get(number), () => page.cite(message.citations, number));
  return el("div", { class: "text", dir: "auto" }, markdown(message.text, cite));
}

function citeButton(citation, onclick) {
  const label = `Source ${citation.number}: ${[citation.name, placeOf(citation)].filter(Boolean).join(", ")}`;
  return el(
    "button",
    { type: "button", class: "cite", "aria-label": label, title: label, onclick },
    String(citation.number),
  );
}

// While the text is still being written its sources aren't known: the mark stands there, and opens nothing yet.
export function pendingCite(number) {
  return el("span", { class: "cite" }, String(number));
}

export function placeOf(citation) {
  return citation.place || (citation.page ? `page ${citation.page}` : "");
}

function files(list) {
  return el("ul", { class: "files", "aria-label": "Files" }, list.map(fileChip));
}

function fileChip(file) {
  return el(
    "li",
    { class: `verdict-${file.verdict || "waiting"}`, title: file.reason || null, "data-file": file.name },
    icon("file"),
    name(file.name, { class: "file-name" }),
    file.verdict ? el("span", { class: "badge" }, VERDICTS[file.verdict] ?? file.verdict) : null,
  );
}

// How far each file of a post is, on the file itself. Returns whether the turn's status is about one of them.
export function drawFileProgress(element, turn) {
  let told = false;
  for (const chip of element.querySelectorAll(".files > .verdict-waiting")) {
    const words = turn.files.get(chip.dataset.file);
    if (words === undefined) continue;
    told = told || turn.status === `${chip.dataset.file}: ${words}`;
    drawProgress(chip, words);
  }
  return told;
}

function drawProgress(chip, words) {
  let line = chip.querySelector(".quiet");
  if (!line) {
    line = el("span", { class: "quiet" });
    chip.append(el("progress", { max: "1", "aria-label": "Progress" }), line);
  }
  line.textContent = words;
  const [, done, total] = words.match(/([\d,]+) of ([\d,]+)$/) ?? [];
  const meter = chip.querySelector("progress");
  if (total) meter.value = number(done) / Math.max(number(total), 1);
  else meter.removeAttribute("value");
}

const number = (text) => Number(text.replaceAll(",", ""));

function sources(citations, page) {
  const rows = [...citations]
    .sort((one, other) => one.number - other.number)
    .map((citation) => sourceRow(citation, citations, page));
  const list = el("ol", { class: "source-list" }, rows.slice(0, SHOWN_SOURCES));
  const rest = rows.slice(SHOWN_SOURCES);
  const more = el(
    "button",
    {
      type: "button",
      class: "plain",
      onclick: () => {
        list.append(...rest);
        more.remove();
        rest[0].querySelector("button").focus();
      },
    },
    `${rest.length} more`,
  );
  return el("section", { class: "sources", "aria-label": "Sources" }, list, rest.length ? more : null);
}

function sourceRow(citation, citations, page) {
  const open = el(
    "button",
    { type: "button", class: "source", onclick: () => page.cite(citations, citation.number) },
    el("span", { class: "cite", "aria-hidden": "true" }, String(citation.number)),
    el("span", { class: "where" }, name(citation.name, { class: "file-name" }), place(citation)),
  );
  const post = citation.link
    ? anchor(citation.link, ["post"], {
        class: "post",
        title: "The message that it was posted with",
        "aria-label": `The post of ${citation.name}`,
      })
    : null;
  return el("li", {}, open, post);
}

function place(citation) {
  const words = [citation.version > 1 ? `version ${citation.version}` : "", placeOf(citation)]
    .filter(Boolean)
    .join(", ");
  return words ? name(words, { class: "quiet" }) : null;
}

function rating(message) {
  const buttons = [
    ["up", 1, "A good answer"],
    ["down", -1, "Not a good answer"],
  ].map(([picture, value, label]) => {
    const button = iconButton(picture, label, () => rate(value), { "data-value": value });
    return button;
  });
  const trouble = el("span", { class: "trouble", role: "alert" });
  const draw = (value) =>
    buttons.forEach((button) => button.setAttribute("aria-pressed", String(Number(button.dataset.value) === value)));
  const rate = async (value) => {
    const before = vote(message.message);
    draw(value);
    try {
      await api.feedback(message.message, value, api.freshKey());
      keepVote(message.message, value);
      trouble.textContent = "";
    } catch (problem) {
      draw(before);
      trouble.textContent = problem.message;
    }
  };
  draw(vote(message.message));
  return el("div", { class: "rating", role: "group", "aria-label": "Was this helpful?" }, buttons, trouble);
}

const chosen = new Map(); // what this tab chose, until the thread tells

function choices(message, page) {
  const card = typeof message.clarification === "string" ? { id: message.clarification } : message.clarification;
  const element = el("div", { class: "choices" });
  const label = card.choice?.text ?? chosen.get(card.id);
  if (label) element.append(choice(card.asker ?? user(), label));
  else if (card.state === "expired")
    element.append(el("p", { class: "quiet" }, "Nobody answered in time. Ask again when you like."));
  else if (card.state === "withdrawn")
    element.append(el("p", { class: "quiet" }, "The question behind this was changed or deleted."));
  else if (message.options?.length) element.append(...offer(message, card.id, page, element));
  else return null;
  return element;
}

function choice(who, label) {
  return el(
    "p",
    { class: "chosen" },
    who === user() ? "You chose " : [name(who), " chose "],
    name(label, { class: "choice-label" }),
  );
}

function offer(message, id, page, element) {
  const trouble = el("p", { class: "trouble", role: "alert", hidden: true });
  const key = api.freshKey();
  const buttons = message.options.map((option, index) =>
    el(
      "button",
      { type: "button", class: "option", disabled: option.gone, onclick: () => choose(index) },
      name(option.label),
    ),
  );
  const choose = async (index) => {
    buttons.forEach((button) => (button.disabled = true));
    trouble.hidden = true;
    try {
      const reply = await api.decide(id, { option: index }, `${key}-${index}`);
      chosen.set(id, message.options[index].label);
      element.replaceChildren(choice(user(), message.options[index].label));
      page.decided(reply);
    } catch (problem) {
      trouble.textContent = problem.message;
      trouble.hidden = false;
      if (problem.status === 409) page.changed();
      else buttons.forEach((button, place) => (button.disabled = Boolean(message.options[place].gone)));
      if (problem.status !== 409) buttons[index].focus();
    }
  };
  const said = /\btype it\b/i.test(message.text);
  const type = said
    ? null
    : el("button", { type: "button", class: "plain", onclick: () => page.composer().focus() }, "or just type it");
  return [el("div", { class: "options", role: "group", "aria-label": "Choices" }, buttons, type ?? ""), trouble];
}

function startEdit(message, element, page) {
  const input = el("textarea", {
    rows: Math.min(8, message.text.split("\n").length + 1),
    "aria-label": "Edit your message",
    value: message.text,
  });
  const trouble = el("p", { class: "trouble", role: "alert", hidden: true });
  const finish = (fresh) => {
    element.classList.remove("is-editing");
    element.querySelector(".editor").remove();
    if (fresh) page.changed(message.message);
    element.querySelector('[data-focus="edit"]')?.focus();
  };
  const save = async () => {
    const written = input.value.trim();
    if (!written || written === message.text) return finish(false);
    try {
      await api.edit(message.message, written);
      return finish(true);
    } catch (problem) {
      trouble.textContent = problem.message;
      trouble.hidden = false;
      return undefined;
    }
  };
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      save();
    }
    if (event.key === "Escape") {
      event.stopPropagation();
      finish(false);
    }
  });
  if (element.classList.contains("is-editing")) return;
  element.classList.add("is-editing");
  element
    .querySelector(".content")
    .append(
      el(
        "div",
        { class: "editor" },
        input,
        trouble,
        el(
          "div",
          { class: "buttons" },
          el("button", { type: "button", class: "primary", onclick: save }, "Save"),
          el("button", { type: "button", onclick: () => finish(false) }, "Cancel"),
          el("span", { class: "quiet" }, "A changed question is answered anew."),
        ),
      ),
    );
  input.focus();
  input.setSelectionRange(input.value.length, input.value.length);
}

function startDelete(message, element, page) {
  const content = element.querySelector(".content");
  if (content.querySelector(".confirm")) return;
  const trouble = el("span", { class: "trouble", role: "alert" });
  const keep = () => {
    confirm.remove();
    element.querySelector('[data-focus="delete"]')?.focus();
  };
  const remove = async () => {
    try {
      await api.remove(message.message);
      confirm.remove();
      page.changed(message.message);
    } catch (problem) {
      trouble.textContent = problem.message;
    }
  };
  const asked = message.files?.length
    ? "Delete this message? What its files taught is forgotten, too."
    : "Delete this message?";
  const yes = el("button", { type: "button", class: "danger", onclick: remove }, "Delete");
  const confirm = el(
    "div",
    {
      class: "confirm",
      role: "group",
      "aria-label": asked,
      onkeydown: (event) => {
        if (event.key === "Escape") {
          event.stopPropagation();
          keep();
        }
      },
    },
    el("p", {}, asked),
    el("div", { class: "buttons" }, yes, el("button", { type: "button", onclick: keep }, "Keep"), trouble),
  );
  content.append(confirm);
  yes.focus();
}
