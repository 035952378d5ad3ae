// Puts the page together: the place in the address decides what is shown, the event stream what changes.

import { onUnauthorised } from "./api.js";
import { Channel } from "./channel.js";
import { Channels, FIRST } from "./channels.js";
import { CitationPanel } from "./citation.js";
import { Composer } from "./composer.js";
import { Documents } from "./documents.js";
import { takeDrops } from "./drop.js";
import { announce } from "./dom.js";
import { Events } from "./events.js";
import { direct, user } from "./identity.js";
import { Live } from "./live.js";
import { format, go, here } from "./place.js";
import { signIn } from "./sign-in.js";
import { Thread } from "./thread.js";

const DOWN_AFTER = 2500; // a short break is nobody's concern
const TOUCH = matchMedia("(hover: none)");

const live = new Live();
const events = new Events();
const composers = new Map();
const expected = new Map(); // message → who waits for its reply
const REPLIES = 50; // that are kept for who asks for them late: a reply may be here before its message's id
const replies = new Map(); // message → its reply
const threadOf = new Map(); // message → thread, of what this tab posted

const channels = new Channels({
  here,
  go,
  userChanged: () => start(),
  channelChanged: () => channel.drawBar(),
});
const titleOf = (id) => channels.titleOf(id);
const citation = new CitationPanel();
const documents = new Documents({
  titleOf,
  add: () => channelComposer().picker.click(),
  expect: (message, take) => {
    expected.set(message, take);
    if (replies.has(message)) handOver(replies.get(message));
  },
});
const channel = new Channel({
  documents,
  titleOf,
  composer: channelComposer,
  add: () => channelComposer().picker.click(),
  known: (id) => channels.known.get(id),
  settings: (id) => channels.edit(id),
  back: () => showPane("sidebar"),
});
const thread = new Thread(
  {
    titleOf,
    cite: (citations, number) => citation.open(citations, number),
    composer: threadComposer,
    closeThread,
    threadsChanged: () => channel.soon(),
  },
  live,
);

function composerAt(place, options) {
  const key = `${user()} ${place}`;
  if (!composers.has(key)) composers.set(key, new Composer({ place: key, ...options }));
  return composers.get(key);
}

function channelComposer() {
  const id = here().channel || FIRST;
  return composerAt(`channel ${id}`, {
    target: { channel: id },
    label: `Ask in ${titleOf(id)}`,
    placeholder: `Ask in ${titleOf(id)}, or drop files`,
    sent: (reply, post) => posted(id, reply, post),
  });
}

function threadComposer() {
  const { channel: id, thread: open } = here();
  return composerAt(`thread ${open}`, {
    target: { channel: id, thread: open },
    label: "Reply in this thread",
    placeholder: "Reply in this thread",
    sent: (reply, post) => posted(id, reply, post),
  });
}

function posted(id, { message, thread: started }, { text, files, from }) {
  threadOf.set(message, started);
  const own = {
    message,
    author: "user",
    user: user(),
    text,
    kind: "message",
    citations: [],
    options: [],
    files: files.map((file) => ({ name: file.name, verdict: "" })),
  };
  if (started === thread.id) {
    thread.add(own);
    thread.changed();
    return;
  }
  thread.sent(message);
  channel.soon();
  if (location.hash === from) {
    focusNext = !TOUCH.matches;
    go({ channel: id, thread: started });
  }
}

let focusNext = false;

function showPane(pane) {
  document.body.dataset.pane = pane;
}

function closeThread() {
  const place = here();
  go({ channel: place.channel });
  channel.focus(place.thread);
}

async function show() {
  const place = here();
  if (!place.channel) return go({ channel: FIRST });
  document.body.dataset.view = place.view;
  showPane(place.thread ? "thread" : "channel");
  document.title = `${place.channel === direct() ? "Just me" : `#${place.channel}`} · Threadlore`;
  citation.close();
  channels.seen(place.channel);
  const composer = channelComposer();
  document.getElementById("channel-foot").replaceChildren(composer.element);
  document.getElementById("thread-foot").replaceChildren(...(place.thread ? [threadComposer().element] : []));
  document.getElementById("skip").href = `#composer-${place.thread ? "thread" : "channel"}`;
  const opened = Boolean(place.thread) && place.thread !== thread.id;
  await Promise.all([channel.show(place), thread.show(place)]);
  if (opened && place.thread === here().thread) focusThread();
  return undefined;
}

function focusThread() {
  if (focusNext) threadComposer().focus();
  else if (document.activeElement === document.body || document.activeElement.matches(".thread-row")) thread.focus();
  focusNext = false;
}

function start() {
  events.watch(user());
  channels.load().then(() => channel.drawBar());
  channel.channel = "";
  thread.id = "";
  show();
}

// --- what the server tells

events.addEventListener("status", ({ detail: { message, text } }) => {
  if (!message || typeof text !== "string") return;
  live.status(message, text);
  thread.unknown(message);
  thread.drawTurn(message);
});

events.addEventListener("token", ({ detail: { message, text } }) => {
  if (!message || typeof text !== "string") return;
  live.token(message, text);
  thread.unknown(message);
  thread.drawTurn(message);
});

function handOver(reply) {
  const take = expected.get(reply.reply_to);
  if (!take) return;
  expected.delete(reply.reply_to);
  take(reply);
  announce(reply.text);
}

events.addEventListener("reply", ({ detail: message }) => {
  if (!message?.message) return;
  live.end(message.reply_to);
  replies.set(message.reply_to, message);
  if (replies.size > REPLIES) replies.delete(replies.keys().next().value);
  handOver(message);
  const where = message.thread ?? threadOf.get(message.reply_to);
  if (where === thread.id || thread.hears(message)) thread.reply(message);
  else elsewhere(message, where);
});

events.addEventListener("post", ({ detail: message }) => {
  if (!message?.message) return;
  if (message.thread === thread.id) thread.post(message);
  else elsewhere(message, message.user === user() ? "" : message.thread);
});

function elsewhere(message, where) {
  channel.heard(where);
  if (where) channels.heard(message.channel);
  channel.soon();
}

let downTimer = 0;

events.addEventListener("state", ({ detail: { state, resumed } }) => {
  const banner = document.getElementById("offline");
  clearTimeout(downTimer);
  if (state === "open") {
    banner.hidden = true;
    if (resumed) live.missed();
    catchUp();
    return;
  }
  if (state === "unauthorised") {
    signIn().then(() => events.hurry());
    return;
  }
  downTimer = setTimeout(() => {
    banner.textContent = "The connection to Threadlore is down. Trying again… What you write is kept.";
    banner.hidden = false;
  }, DOWN_AFTER);
});

function catchUp() {
  channels.load().then(() => channel.drawBar());
  channel.soon();
  if (thread.id) thread.load();
}

// --- what the person does

addEventListener("hashchange", () => show());

addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.isComposing || event.defaultPrevented || document.querySelector("dialog[open]"))
    return;
  if (here().thread) closeThread();
});

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  (here().thread ? threadComposer() : channelComposer()).focus();
});

takeDrops({
  target: (under) => {
    const narrow = document.body.dataset.pane === "thread" && !document.getElementById("channel").checkVisibility();
    return here().thread && (narrow || under.closest?.("#thread")) ? threadComposer() : channelComposer();
  },
  title: (composer) =>
    composer.target.thread ? "Drop to add to this thread" : `Drop to add to ${titleOf(composer.target.channel)}`,
});

document.addEventListener("visibilitychange", () => document.hidden || catchUp());

onUnauthorised(async () => {
  await signIn();
  events.hurry();
  return true;
});

if (!location.hash || !here().channel) history.replaceState(null, "", format({ channel: FIRST }));
start();
