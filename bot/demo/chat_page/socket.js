// The websocket of Mattermost: signs in, hands events on, comes back after a cut.

const FIRST_WAIT = 500;
const LONGEST_WAIT = 5000;

export class Socket {
  #token;
  #onEvent;
  #onState;
  #socket = null;
  #wait = FIRST_WAIT;
  #timer = 0;
  #closed = false;

  /** `onState(isOpen, again)`: `again` when it was open before, and something may have been missed. */
  constructor(token, onEvent, onState) {
    this.#token = token;
    this.#onEvent = onEvent;
    this.#onState = onState;
    this.#open(false);
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#socket?.close();
  }

  #open(again) {
    const socket = new WebSocket(`${location.origin.replace("http", "ws")}/api/v4/websocket`);
    this.#socket = socket;
    socket.onopen = () => {
      const challenge = { seq: 1, action: "authentication_challenge", data: { token: this.#token } };
      socket.send(JSON.stringify(challenge));
    };
    socket.onmessage = (message) => {
      const event = JSON.parse(message.data);
      if (event.event === "hello") {
        this.#wait = FIRST_WAIT;
        this.#onState(true, again);
      } else if (event.event && !this.#closed) {
        this.#onEvent(event.event, event.data);
      }
    };
    socket.onclose = () => {
      if (this.#closed) return;
      this.#onState(false, again);
      this.#timer = setTimeout(() => this.#open(true), this.#wait);
      this.#wait = Math.min(this.#wait * 2, LONGEST_WAIT);
    };
  }
}
