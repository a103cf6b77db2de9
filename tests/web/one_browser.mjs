// open_page() for all tests of a file with one browser, which is a second less for each:
//   const visit = one_browser(after);   // `after` of node:test
import {open_page, start_chromium} from "./harness.mjs";

export function one_browser(after) {
  const browser = start_chromium({after});
  return async (t, site, hash, options) => {
    const page = await open_page(t, site, hash, {...options, browser: await browser});
    t.after(() => page.context().close());
    return page;
  };
}
