// Where the page is, kept in the address: #/CHANNEL, #/CHANNEL/documents, #/CHANNEL/THREAD, #/CHANNEL/THREAD/MESSAGE

const DOCUMENTS = "documents";

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function parse(hash) {
  const [channel = "", second = "", message = ""] = hash
    .replace(/^#?\/?/, "")
    .split("/")
    .map(decode);
  if (second === DOCUMENTS) return { channel, view: "documents", thread: "", message: "" };
  return { channel, view: "threads", thread: second, message };
}

export function format({ channel, view = "threads", thread = "", message = "" }) {
  const parts = [channel];
  if (view === "documents") parts.push(DOCUMENTS);
  else if (thread) parts.push(thread, ...(message ? [message] : []));
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

export const here = () => parse(location.hash);

export function go(place) {
  location.hash = format(place);
}

// A post's link as the bot gives it: a place of this page, an address of the web, or nothing.
export function linkTarget(link) {
  if (!link) return null;
  let url;
  try {
    url = new URL(link, location.origin);
  } catch {
    return null;
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") return null;
  if (url.origin === location.origin && url.pathname === "/") return { href: url.hash || "#/", inside: true };
  return { href: url.href, inside: false };
}
