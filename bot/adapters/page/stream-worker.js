// Shared by the tabs of one browser: one connection for each user, however many tabs look on.

import { Stream } from "./stream.js";

const streams = new Map(); // user → {stream, ports}

self.addEventListener("connect", ({ ports: [port] }) => {
  let watched = null;

  const leave = () => {
    const entry = streams.get(watched);
    watched = null;
    if (!entry) return;
    entry.ports.delete(port);
    if (entry.ports.size) return;
    entry.stream.close();
    streams.delete(entry.stream.user);
  };

  port.addEventListener("message", ({ data: { type, user } }) => {
    if (type === "watch") {
      leave();
      watched = user;
      join(user, port);
    } else if (type === "leave") leave();
    else if (type === "hurry") streams.get(watched)?.stream.hurry();
  });
  port.start();
});

function join(user, port) {
  let entry = streams.get(user);
  if (!entry) {
    const ports = new Set();
    entry = { ports, stream: new Stream(user, (news) => ports.forEach((each) => each.postMessage(news))) };
    streams.set(user, entry);
  }
  entry.ports.add(port);
  if (entry.stream.state) port.postMessage({ type: "state", state: entry.stream.state, resumed: false });
}
