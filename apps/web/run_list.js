// The runs that a list query finds: page by page, and what the stream tells of them meanwhile.
import {rpc} from "./api.js";
import {changed_run, run_of} from "./runs.js";

const page_size = 100;
const asked_max = 50;       // run ids in one question; a query has a limit
const ask_every = 1_000;

export class RunList {
  runs = [];          // newest first
  news = [];          // began since, and match; not among the runs yet
  more_news = false;  // and others that were too many to be told
  total = undefined;
  query = "";
  token = "";         // of the next page; "" after the last
  loading = false;
  error = null;       // of the last question
  #told;
  #asking = new AbortController();
  #known = new Set();
  #begun = new Set();  // run ids of which it is not known whether they match
  #timer = 0;
  #asked_at = -Infinity;

  // told(): after anything above has changed.
  constructor(told) {
    this.#told = told;
  }

  // The first page of another query, or of the same anew; what was shown stays until it comes.
  async load(query) {
    this.#asking.abort();
    this.#asking = new AbortController();
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#begun.clear();
    this.query = query;
    const {signal} = this.#asking;
    const page = await this.#ask("ListWorkflowExecutions", {query, pageSize: page_size}, signal);
    if (!page) return;
    this.runs = (page.executions ?? []).map(run_of);
    this.#known = new Set(this.runs.map((run) => run.run));
    Object.assign(this, {news: [], more_news: false, token: page.nextPageToken ?? "", total: undefined});
    this.#told();
    await this.#count(signal);
  }

  async load_more() {
    if (!this.token || this.loading) return;
    const {signal} = this.#asking;
    const page = await this.#ask("ListWorkflowExecutions",
      {query: this.query, pageSize: page_size, nextPageToken: this.token}, signal);
    if (!page) return;
    const more = (page.executions ?? []).map(run_of).filter((run) => !this.#known.has(run.run));
    for (const run of more) this.#known.add(run.run);
    this.runs = [...this.runs, ...more];
    this.token = page.nextPageToken ?? "";
    this.#told();
  }

  // Takes what is new to the top of the list.
  take_news() {
    this.runs = [...this.news, ...this.runs];
    this.news = [];
    this.#told();
  }

  // What the stream has told. Runs that are shown change at once; of new ones the server is asked
  // whether they match, since only it can tell.
  update(changed) {
    if (changed.all) {
      this.#missed();
      return;
    }
    const change = (run) => changed_run(run, changed);
    const runs = this.runs.map(change);
    const news = this.news.map(change);
    const different = [...runs, ...news].some((run, i) => run !== (this.runs[i] ?? this.news[i - runs.length]));
    if (different) Object.assign(this, {runs, news});
    for (const {runId, status} of changed.workflows) {
      if (!this.#known.has(runId) && status === "WORKFLOW_EXECUTION_STATUS_RUNNING") this.#begun.add(runId);
    }
    if (changed.more_workflows) this.more_news = true;
    if (this.#begun.size > 0) this.#ask_soon();
    if (different || changed.more_workflows) this.#told();
  }

  // Nobody knows what has happened: the first page is asked for again, but many pages are left to
  // the reader, whom it would take back to the start.
  #missed() {
    if (this.loading || this.runs.length === 0) return;
    if (this.runs.length <= page_size) {
      this.load(this.query);
    } else {
      this.more_news = true;
      this.#told();
    }
  }

  close() {
    this.#asking.abort();
    clearTimeout(this.#timer);
  }

  async #ask(name, body, signal) {
    this.loading = true;
    this.#told();
    try {
      const answer = await rpc(name, body, {signal});
      if (signal.aborted) return null;
      Object.assign(this, {loading: false, error: null});
      return answer;
    } catch (error) {
      if (signal.aborted) return null;
      Object.assign(this, {loading: false, error});
      this.#told();
      return null;
    }
  }

  async #count(signal) {
    if (!this.token) {
      this.total = this.runs.length;
    } else {
      try {
        this.total = Number((await rpc("CountWorkflowExecutions", {query: this.query}, {signal})).count ?? 0);
      } catch {
        this.total = undefined;  // too many to be counted in time; the list is as good without
      }
    }
    if (!signal.aborted) this.#told();
  }

  #ask_soon() {
    if (this.#timer !== 0) return;
    const wait = Math.max(document.hidden ? 5_000 : 100, this.#asked_at + ask_every - performance.now());
    this.#timer = setTimeout(() => this.#ask_news(), wait);
  }

  async #ask_news() {
    const ids = [...this.#begun].slice(-asked_max);
    if (this.#begun.size > ids.length) this.more_news = true;
    this.#begun.clear();
    const {signal} = this.#asking;
    const query = [this.query, `RunId IN (${ids.map((id) => `'${id}'`).join(", ")})`].filter(Boolean).join(" AND ");
    try {
      const page = await rpc("ListWorkflowExecutions", {query, pageSize: asked_max}, {signal});
      const more = (page.executions ?? []).map(run_of).filter((run) => !this.#known.has(run.run));
      for (const run of more) this.#known.add(run.run);
      this.news = [...more, ...this.news];
      if (this.total !== undefined) this.total += more.length;
      if (more.length > 0 || this.more_news) this.#told();
    } catch {
      // The server is away, or the query is at its limit: a reload brings what is missing.
    }
    this.#asked_at = performance.now();
    if (signal.aborted) return;
    this.#timer = 0;
    if (this.#begun.size > 0) this.#ask_soon();
  }
}
