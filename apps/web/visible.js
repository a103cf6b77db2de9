// Asking the server again and again, while somebody looks: never while the page is hidden, and
// never twice at a time.

// Calls the async action(signal) now and then every so many milliseconds, until it returns false.
// It handles its own errors. Returns close().
export function while_visible(milliseconds, action) {
  const abort = new AbortController();
  let timer = 0;
  let busy = false;
  let began = -Infinity;

  async function round() {
    clearTimeout(timer);
    timer = 0;
    busy = true;
    began = performance.now();
    let goes_on = false;
    try {
      goes_on = await action(abort.signal) !== false;
    } finally {
      busy = false;
    }
    if (!goes_on) close();
    else schedule();
  }

  function schedule() {
    if (abort.signal.aborted || document.hidden || busy || timer !== 0) return;
    timer = setTimeout(round, Math.max(0, began + milliseconds - performance.now()));
  }

  function look() {
    clearTimeout(timer);
    timer = 0;
    schedule();
  }

  function close() {
    clearTimeout(timer);
    abort.abort();
    document.removeEventListener("visibilitychange", look);
  }

  document.addEventListener("visibilitychange", look);
  schedule();
  return close;
}
