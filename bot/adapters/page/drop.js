// Files dropped anywhere on the page go to the composer that is in sight.

const MOST = 200;

// `target` gives the composer for the element under the pointer, and `title` the words that are shown meanwhile.
export function takeDrops({ target, title }) {
  const veil = document.getElementById("drop");
  const words = document.getElementById("drop-title");
  const hint = document.getElementById("drop-hint");
  const carriesFiles = (event) =>
    event.dataTransfer?.types.includes("Files") && !document.querySelector("dialog[open]");
  let leaving = 0;

  addEventListener("dragover", (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "copy";
    clearTimeout(leaving);
    leaving = setTimeout(() => (veil.hidden = true), 250);
    const composer = target(event.target);
    words.textContent = title(composer);
    hint.textContent = "You can add a question before you send";
    veil.hidden = false;
  });

  addEventListener("drop", async (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    clearTimeout(leaving);
    veil.hidden = true;
    const composer = target(event.target);
    composer.stage(await filesOf(event.dataTransfer));
  });
}

// Folders are walked; a browser without entries gives its flat list.
async function filesOf(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  const flat = [...transfer.files];
  if (!entries.some((entry) => entry.isDirectory)) return flat;
  const found = [];
  for (const entry of entries) await walk(entry, found);
  return found;
}

async function walk(entry, found) {
  if (found.length >= MOST || entry.name.startsWith(".")) return;
  if (entry.isFile) found.push(await new Promise((resolve, reject) => entry.file(resolve, reject)));
  else {
    const reader = entry.createReader();
    for (let batch = await read(reader); batch.length; batch = await read(reader)) {
      for (const child of batch) await walk(child, found);
    }
  }
}

const read = (reader) => new Promise((resolve, reject) => reader.readEntries(resolve, reject));
