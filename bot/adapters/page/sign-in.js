// Asked for once where the server has a token.

import * as api from "./api.js";
import { el } from "./dom.js";

let open = null;

// Resolves to true when the server has taken the token. Calls that meet the same 401 wait for the one dialog.
export function signIn() {
  open ??= ask().finally(() => (open = null));
  return open;
}

function ask() {
  return new Promise((resolve) => {
    const token = el("input", { type: "password", required: true, autocomplete: "current-password" });
    const trouble = el("p", { class: "trouble", role: "alert", hidden: true });
    const submit = async (event) => {
      event.preventDefault();
      try {
        await api.presentToken(token.value.trim());
      } catch (problem) {
        trouble.textContent = problem.message;
        trouble.hidden = false;
        token.select();
        return;
      }
      dialog.close();
      resolve(true);
    };
    const dialog = el(
      "dialog",
      {
        class: "small",
        id: "sign-in",
        "aria-labelledby": "sign-in-title",
        oncancel: (event) => event.preventDefault(),
        onclose: () => dialog.remove(),
      },
      el(
        "form",
        { onsubmit: submit },
        el("img", { src: "/static/icon.svg", alt: "", width: "40", height: "40" }),
        el("h2", { id: "sign-in-title" }, "Sign in to Threadlore"),
        el("label", { class: "row-field" }, "Token", token),
        el("p", { class: "quiet" }, "Whoever runs Threadlore has it: it is the setting WEB_TOKEN."),
        trouble,
        el("div", { class: "buttons" }, el("button", { type: "submit", class: "primary" }, "Sign in")),
      ),
    );
    document.body.append(dialog);
    dialog.showModal();
  });
}
