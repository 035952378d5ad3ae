// Who this person says they are, and small things this browser keeps for them.

const USER = "threadlore.user";

function read(store, key) {
  try {
    return store.getItem(key);
  } catch {
    return null; // storage is switched off: the page works, it only forgets
  }
}

function write(store, key, value) {
  try {
    if (value) store.setItem(key, value);
    else store.removeItem(key);
  } catch {
    // full, or switched off
  }
}

export const user = () => read(localStorage, USER) || "me";
export const setUser = (value) => write(localStorage, USER, value);
export const direct = () => `@${user()}`;

export const draft = (place) => read(sessionStorage, `threadlore.draft.${place}`) || "";
export const keepDraft = (place, text) => write(sessionStorage, `threadlore.draft.${place}`, text);

const VOTES = "threadlore.votes";

function votes() {
  try {
    return new Map(JSON.parse(read(localStorage, VOTES) || "[]"));
  } catch {
    return new Map();
  }
}

export const vote = (message) => votes().get(`${user()} ${message}`) ?? 0;

export function keepVote(message, value) {
  const kept = votes();
  kept.set(`${user()} ${message}`, value);
  write(localStorage, VOTES, JSON.stringify([...kept].slice(-500)));
}
