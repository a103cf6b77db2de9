// One browser for all tests of a file, since starting one takes seconds on a busy machine. Each test
// has a context of its own: no storage, no worker and no stream of another's.
import {after, before} from "node:test";
import {open_page as open, start_chromium} from "./harness.mjs";

let browser;
let close;

before(async () => {
  browser = await start_chromium({after: (end) => {
    close = end;
  }});
});
after(() => close());

// As that of harness.mjs.
export async function open_page(t, site, hash, options = {}) {
  const page = await open(t, site, hash, {...options, browser});
  t.after(() => page.context().close());
  return page;
}
