// The page's one clock: whatever counts on the page is told the server's time once a second.
// Nothing is done for elements that are gone or while nobody looks.

const watched = new Map();  // element -> {action, missed: ticks for which it was not on the page}
const missed_max = 2;       // it may be given to the clock a little before it is put there
let now = () => Date.now();
let timer = 0;

function tick() {
  timer = 0;
  if (document.hidden) return;
  const time = now();
  for (const [element, entry] of watched) {
    if (element.isConnected) {
      entry.missed = 0;
      entry.action(time, element);
    } else if (++entry.missed > missed_max) {
      watched.delete(element);
    }
  }
  schedule();
}

function schedule() {
  if (timer === 0 && !document.hidden) timer = setTimeout(tick, 1000);
}

// `server_now` says what time it is on the server.
export function start_clock(server_now) {
  now = server_now;
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) tick();
  });
  schedule();
}

// Calls action(now, element) at once and each second, as long as the element is on the page. One
// action per element: the last one given.
export function each_second(element, action) {
  watched.set(element, {action, missed: 0});
  action(now(), element);
  return element;
}

// Everything again, now: when the server's clock has been corrected.
export function tick_now() {
  clearTimeout(timer);
  tick();
}
