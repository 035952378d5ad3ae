// Turns that are running: what each is doing, and what it has written so far. Kept for every thread, so that a thread
// that is opened in the middle of an answer shows it.

const MOST = 200;

export class Live {
  constructor() {
    this.turns = new Map(); // question → {status, files, text, broken, restarted}
  }

  get(message) {
    return this.turns.get(message);
  }

  open(message) {
    let turn = this.turns.get(message);
    if (!turn) {
      turn = { status: "", files: new Map(), text: "", broken: false, restarted: false };
      this.turns.set(message, turn);
      if (this.turns.size > MOST) this.turns.delete(this.turns.keys().next().value);
    }
    return turn;
  }

  // Of a post with files each status may begin with the name of one: "handbook.pdf: reading 12 of 84".
  status(message, text) {
    const turn = this.open(message);
    turn.status = text;
    const colon = text.lastIndexOf(": ");
    if (colon > 0) turn.files.set(text.slice(0, colon), text.slice(colon + 2));
    turn.restarted = Boolean(turn.text);
  }

  token(message, text) {
    const turn = this.open(message);
    if (turn.broken) return;
    turn.text = turn.restarted ? text : turn.text + text; // a turn that begins again writes its answer again
    turn.restarted = false;
  }

  // Tokens were missed while the connection was down: what comes now has a hole before it, so it isn't shown.
  missed() {
    for (const turn of this.turns.values()) {
      turn.text = "";
      turn.broken = true;
    }
  }

  end(message) {
    this.turns.delete(message);
  }
}
