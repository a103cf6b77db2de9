// The server's events: reads the stream, and gives each tab its share. One connection serves all
// tabs, since a browser opens only six to one origin: it is held by a shared worker, or, where
// there is none, by the tab itself. See stream_worker.js.
import {url_of} from "./api.js";
import {State} from "./state.js";

const silence_max = 6_000;  // the server pings every 2 s
const retry_first = 500;
const retry_max = 5_000;

// --- Reading ---

// Splits the text of an event stream into messages.
export class MessageParser {
  #rest = "";
  #fields = {data: []};

  // Calls deliver({event, data, id}) for each message that the text completes.
  push(text, deliver) {
    const lines = (this.#rest + text).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop();
    for (const line of lines) {
      if (line === "") this.#deliver(deliver);
      else this.#field(line);
    }
  }

  #field(line) {
    const colon = line.indexOf(":");
    if (colon === 0) return;  // a comment
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") this.#fields.data.push(value);
    else if (name === "event" || name === "id") this.#fields[name] = value;
  }

  #deliver(deliver) {
    const {data, event, id} = this.#fields;
    this.#fields = {data: []};
    if (data.length > 0) deliver({event: event ?? "message", data: data.join("\n"), id});
  }
}

// Keeps one stream open until stop(): reconnects when it ends or falls silent, and asks to go on
// where it was. on_message(event, data) for each message; on_lost() when the connection is gone.
export function read_stream(on_message, on_lost) {
  let last_id;
  let wait = retry_first;
  let stopped = false;
  let connection;
  let retry;

  async function connect() {
    connection = new AbortController();
    const {signal} = connection;
    let watchdog;
    const heard = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => connection.abort(), silence_max);
    };
    try {
      heard();
      const headers = {Accept: "text/event-stream"};
      if (last_id !== undefined) headers["Last-Event-ID"] = last_id;
      const response = await fetch(url_of("/events"), {headers, signal, cache: "no-store"});
      if (response.status === 401) on_message("denied");
      if (!response.ok) throw new Error(`status ${response.status}`);
      const parser = new MessageParser();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const {value, done} = await reader.read();
        if (done) break;
        heard();
        parser.push(value, ({event, data, id}) => {
          wait = retry_first;
          if (id !== undefined) last_id = id;
          if (event === "reset") last_id = undefined;
          on_message(event, JSON.parse(data));
        });
      }
    } catch {
      // The server is away, or we have had enough of its silence.
    }
    clearTimeout(watchdog);
    connection.abort();
    if (stopped) return;
    on_lost();
    retry = setTimeout(connect, wait);
    wait = Math.min(wait * 2, retry_max);
  }

  connect();
  return {
    stop() {
      stopped = true;
      clearTimeout(retry);
      connection.abort();
    },
  };
}

// --- Sharing ---

// The stream for any number of ports that come and go. It is open while there is one.
export class SharedStream {
  #ports = new Set();
  #state = new State();
  #stream = null;
  #lost = false;

  add(port) {
    this.#ports.add(port);
    if (this.#state.loaded) port.postMessage({event: "snapshot", data: this.#state.snapshot()});
    if (this.#lost) port.postMessage({event: "lost"});
    this.#stream ??= read_stream((event, data) => {
      this.#lost = false;
      this.#state.apply(event, data);
      this.#tell({event, data});
    }, () => {
      this.#lost = true;
      this.#tell({event: "lost"});
    });
  }

  remove(port) {
    this.#ports.delete(port);
    if (this.#ports.size > 0) return;
    this.#stream?.stop();
    this.#stream = null;
    this.#state = new State();
  }

  #tell(message) {
    for (const port of this.#ports) port.postMessage(message);
  }
}

// What a tab uses: on_message({event, data}) for every message, from now until the tab goes. It
// comes back if the browser takes the tab out of its back-forward cache.
export function follow(on_message) {
  let leave = join(on_message);
  addEventListener("pagehide", () => leave());
  addEventListener("pageshow", (event) => {
    if (event.persisted) leave = join(on_message);
  });
}

function join(on_message) {
  if (typeof SharedWorker === "undefined") return join_alone(on_message);
  let leave_alone;
  const worker = new SharedWorker(new URL("stream_worker.js", import.meta.url),
    {type: "module", name: "permit"});
  worker.port.onmessage = (message) => on_message(message.data);
  worker.onerror = () => {  // it could not be loaded
    leave_alone ??= join_alone(on_message);
  };
  return () => {
    worker.port.postMessage("bye");
    worker.port.close();
    leave_alone?.();
  };
}

function join_alone(on_message) {
  const shared = new SharedStream();
  const port = {postMessage: (message) => setTimeout(() => on_message(message))};
  shared.add(port);
  return () => shared.remove(port);
}
