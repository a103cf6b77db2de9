// The shared worker: holds the one connection for the event stream of all tabs.
import {SharedStream} from "./stream.js";

const shared = new SharedStream();

self.addEventListener("connect", ({ports: [port]}) => {
  port.onmessage = ({data}) => {
    if (data === "bye") shared.remove(port);
  };
  shared.add(port);
});
