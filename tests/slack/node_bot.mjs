// A bot on npm's @slack/bolt: node node_bot.mjs PACKAGES SETTINGS, where the settings are JSON.
// It says "ready" and the port that it listens on, if it listens on one.

import { createRequire } from "node:module";

const [packages, settings] = process.argv.slice(2);
const { App, LogLevel } = createRequire(`${packages}/`)("@slack/bolt");
const { apiUrl, botToken, appToken, signingSecret } = JSON.parse(settings);

const app = new App({
  token: botToken,
  signingSecret,
  appToken,
  socketMode: Boolean(appToken),
  clientOptions: { slackApiUrl: apiUrl },
  logLevel: LogLevel.WARN,
});

const button = (action_id, text) => ({ type: "button", action_id, text: { type: "plain_text", text }, value: text });
const card = [
  { type: "section", text: { type: "mrkdwn", text: "Shall I learn the files?" } },
  { type: "actions", elements: [button("learn_yes", "Yes"), button("learn_no", "No")] },
];

const answers = {
  async post({ event, say }) {
    await say({ text: `Hello <@${event.user}>`, thread_ts: event.ts });
  },
  async ask({ event, say }) {
    await say({ text: "Shall I?", blocks: card, thread_ts: event.ts });
  },
  async stream({ event, client, context }) {
    const stream = client.chatStream({
      channel: event.channel,
      thread_ts: event.ts,
      recipient_team_id: context.teamId,
      recipient_user_id: event.user,
      buffer_size: 1,
    });
    await stream.append({ markdown_text: "Four " });
    await stream.append({ markdown_text: "weeks" });
    await stream.stop({ markdown_text: ".", blocks: card });
  },
  async count({ event, client, say }) {
    let messages = 0;
    for await (const page of client.paginate("conversations.history", { channel: event.channel, limit: 2 })) {
      messages += page.messages.length;
    }
    await say({ text: `${messages} messages`, thread_ts: event.ts });
  },
  async fail({ event, client, say }) {
    try {
      await client.chat.postMessage({ channel: event.channel, text: "x", blocks: [{ type: "poem" }] });
    } catch (error) {
      const [message] = error.data.response_metadata.messages;
      await say({ text: `${error.data.error}: ${message}`, thread_ts: event.ts });
    }
  },
};

app.event("app_mention", async (args) => {
  await answers[args.event.text.split(" ").at(-1)](args);
});

app.message(async ({ message, client, say }) => {
  if (message.subtype !== "file_share") return;
  const [file] = message.files;
  const response = await fetch(file.url_private_download, { headers: { Authorization: `Bearer ${botToken}` } });
  const text = await response.text();
  await client.reactions.add({ channel: message.channel, timestamp: message.ts, name: "eyes" });
  await client.filesUploadV2({
    channel_id: message.channel,
    thread_ts: message.ts,
    initial_comment: `${file.name} has ${text.length} characters`,
    filename: "copy.txt",
    content: text.toUpperCase(),
  });
  await say({ text: "done", thread_ts: message.ts });
});

app.action("learn_yes", async ({ ack, respond, action, body }) => {
  await ack();
  await respond({ replace_original: true, text: `${body.user.name} chose ${action.value}` });
});

app.command("/ask", async ({ ack, command }) => {
  await ack(`You asked: ${command.text}`);
});

app.shortcut("help", async ({ ack, shortcut, client }) => {
  await ack();
  await client.views.open({
    trigger_id: shortcut.trigger_id,
    view: {
      type: "modal",
      callback_id: "note",
      title: { type: "plain_text", text: "A note" },
      submit: { type: "plain_text", text: "Keep" },
      blocks: [
        {
          type: "input",
          block_id: "words",
          label: { type: "plain_text", text: "What?" },
          element: { type: "plain_text_input", action_id: "text" },
        },
      ],
    },
  });
});

app.view("note", async ({ ack, view, body, client }) => {
  const { value } = view.state.values.words.text;
  if (!value) return await ack({ response_action: "errors", errors: { words: "Say something." } });
  await ack();
  await client.chat.postMessage({ channel: body.user.id, text: `Kept: ${value}` });
});

app.event("app_home_opened", async ({ event, client }) => {
  await client.views.publish({ user_id: event.user, view: { type: "home", blocks: card } });
});

const server = await app.start(0);
console.log("ready", appToken ? 0 : server.address().port);
process.on("SIGTERM", () => app.stop().finally(() => process.exit(0)));
