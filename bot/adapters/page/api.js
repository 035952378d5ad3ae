// The HTTP interface. Every call returns the JSON of the reply or throws a Trouble whose text says what to do.

import { user } from "./identity.js";

export class Trouble extends Error {
  constructor(text, status = 0) {
    super(text);
    this.status = status;
  }
}

const OFFLINE = "Threadlore can’t be reached. Nothing is lost: try again in a moment.";
const path = (...parts) => `/api/${parts.map(encodeURIComponent).join("/")}`;

let signIn = async () => false;

// `ask` shows the sign-in and resolves to true once it worked.
export function onUnauthorised(ask) {
  signIn = ask;
}

function trouble(status, text) {
  try {
    const { error } = JSON.parse(text);
    if (typeof error === "string" && error) return new Trouble(error, status);
  } catch {
    // not one of ours: a proxy's page, say
  }
  if (status === 413)
    return new Trouble("That is too large to be taken. Split the file, or post a smaller one.", status);
  return new Trouble(`That didn’t work (status ${status}). Try again in a moment.`, status);
}

async function call(method, address, { body, query = {}, key } = {}) {
  const url = new URL(address, location.origin);
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== "") url.searchParams.set(name, value);
  const headers = {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers["Idempotency-Key"] = key;
  let reply;
  try {
    reply = await fetch(url, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
    });
  } catch {
    throw new Trouble(OFFLINE);
  }
  const text = await reply.text().catch(() => "");
  if (reply.status === 401 && (await signIn())) return call(method, address, { body, query, key });
  if (!reply.ok) throw trouble(reply.status, text);
  if (!text) return {};
  try {
    return JSON.parse(text);
  } catch {
    throw new Trouble("What answered isn’t Threadlore. Check the address.", reply.status);
  }
}

const get = (address, query = {}) => call("GET", address, { query: { user: user(), ...query } });

export const channels = () => get(path("channels"));
export const threads = (channel) => get(path("threads"), { channel });
export const thread = (id) => get(path("threads", id));
export const documents = (channel) => get(path("documents"), { channel, scope: "yes" });
export const section = (document, number, version) => get(path("documents", document, "sections", number), { version });

export const changeChannel = (channel, body) =>
  call("PUT", path("channels", channel), { body, query: { user: user() } });
export const edit = (message, text) =>
  call("PATCH", path("messages", message), { body: { user: user(), text }, query: { user: user() } });
export const remove = (message) => call("DELETE", path("messages", message), { query: { user: user() } });
export const decide = (clarification, choice, key) =>
  call("POST", path("clarifications", clarification), { body: { user: user(), ...choice }, key });
export const feedback = (message, value, key) =>
  call("POST", path("feedback"), { body: { message, user: user(), value }, key });

export async function presentToken(token) {
  const reply = await fetch(path("sign-in"), {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ token }),
  }).catch(() => null);
  if (!reply) throw new Trouble(OFFLINE);
  if (reply.status === 401 || reply.status === 403)
    throw new Trouble("That isn’t the token. Ask whoever runs Threadlore for WEB_TOKEN.", reply.status);
  if (!reply.ok) throw trouble(reply.status, await reply.text());
}

// `post` is {channel, text, thread?}; `files` are sent as multipart, with progress from 0 to 1.
export function send(post, files, key, progress, cancelled) {
  const body = { user: user(), ...post };
  if (!files.length) return call("POST", path("messages"), { body, key });
  return upload(body, files, key, progress, cancelled);
}

async function upload(fields, files, key, progress, cancelled) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  for (const file of files) form.append("files", file, file.name);
  const { status, text } = await uploadOnce(form, key, progress, cancelled);
  if (status === 401 && (await signIn())) return upload(fields, files, key, progress, cancelled);
  if (status < 200 || status > 299) throw trouble(status, text);
  return JSON.parse(text);
}

function uploadOnce(form, key, progress, cancelled) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", path("messages"));
    request.setRequestHeader("Idempotency-Key", key);
    request.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) progress(event.loaded / event.total);
    });
    request.addEventListener("load", () => resolve({ status: request.status, text: request.responseText }));
    request.addEventListener("abort", () =>
      reject(new Trouble("Stopped. The files are still here; send them when you like.")),
    );
    request.addEventListener("error", () => {
      reject(
        new Trouble(
          "The upload broke off. The files are still here: send them again. " +
            "One that changed or moved on your disk since has to be chosen anew.",
        ),
      );
    });
    cancelled.addEventListener("abort", () => request.abort(), { once: true });
    request.send(form);
  });
}

// One key per post, kept while the same post is tried again. `randomUUID` exists in secure contexts only.
export function freshKey() {
  if (crypto.randomUUID) return crypto.randomUUID();
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
