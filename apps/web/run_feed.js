// All that is known of one run while its page is open: its description, its history, its permits.
// New events come by a long poll; while nobody looks, nothing is asked.
import {api, part, rpc} from "./api.js";
import {read_event} from "./events.js";
import {RunFold} from "./run_fold.js";
import {run_of} from "./runs.js";

const describe_every = 1_000;      // at most so often when something happens
const describe_at_least = 10_000;  // attempts and heartbeats are no events
const retry_after = 3_000;
const poll_max = 30_000;           // the server answers a poll after 20 s
const ledger_max = 100;            // permits asked for

export class RunFeed {
  description = null;
  run = null;            // see run_of()
  events = [];
  fold = new RunFold();
  complete = false;      // the history is here up to now
  permit = null;         // if the run is one: the hold
  error = null;          // why there is no description
  newer = null;          // a later run of the same id
  #execution;
  #told;
  #stop = new AbortController();
  #poll = null;
  #token;
  #described_at = -Infinity;
  #timer = 0;
  #asked = new Set();    // run ids of permits asked for

  // told(what): after "description", "events" or "permits" have changed.
  constructor(execution, told) {
    this.#execution = execution;
    this.#told = told;
    this.#on_visible = () => this.#resume();
    document.addEventListener("visibilitychange", this.#on_visible);
    this.#start();
  }
  #on_visible;

  close() {
    document.removeEventListener("visibilitychange", this.#on_visible);
    this.#stop.abort();
    this.#poll?.abort();
    clearTimeout(this.#timer);
  }

  get execution() {
    return this.#execution;
  }
  is_open() {
    return this.run?.status === "Running";
  }

  // What the stream has told.
  update({workflows, holds, more_workflows}) {
    const {workflowId, runId} = this.#execution;
    for (const news of workflows) {
      if (news.workflowId === workflowId && news.runId > runId && this.run) this.newer = news.runId;
    }
    const mine = workflows.some((news) => news.runId === runId) ||
      holds.some((hold) => hold.holderRunId === runId || hold.runId === runId);
    if (this.run && (mine || (more_workflows && this.is_open()))) this.describe_soon();
  }

  describe_soon(wait = 0) {
    clearTimeout(this.#timer);
    const earliest = this.#described_at + describe_every - performance.now();
    this.#timer = setTimeout(() => this.#describe(), Math.max(50, wait, earliest));
  }

  async #start() {
    await this.#describe();
    if (this.run) await this.#read_history();
  }

  #resume() {
    if (document.hidden) {
      this.#poll?.abort();
    } else if (this.run && this.is_open()) {
      this.describe_soon();
      if (!this.#poll) this.#read_history();
    }
  }

  async #describe() {
    clearTimeout(this.#timer);
    this.#described_at = performance.now();
    const {signal} = this.#stop;
    try {
      const description = await rpc("DescribeWorkflowExecution", {execution: this.#execution}, {signal});
      const info = description.workflowExecutionInfo;
      this.#execution = info.execution;  // from now on this very run
      Object.assign(this, {description, run: run_of(info), error: null});
      if (this.run.fence) await this.#ask_permit(info.execution, (permit) => Object.assign(this, {permit}));
    } catch (error) {
      if (signal.aborted) return;
      if (!this.run || error.status === 404) this.error = error;
    }
    if (signal.aborted) return;
    this.#told("description");
    if (!document.hidden && (this.is_open() || this.error?.status === 0)) this.describe_soon(describe_at_least);
  }

  // Up to now, and on while the run is open.
  async #read_history() {
    const poll = this.#poll = new AbortController();
    while (!this.#stop.signal.aborted && !poll.signal.aborted) {
      try {
        const answer = await rpc("GetWorkflowExecutionHistory", {execution: this.#execution, waitNewEvent: true,
          nextPageToken: this.#token}, {signal: poll.signal, wait: poll_max});
        if (poll.signal.aborted || this.#stop.signal.aborted) break;
        this.#take(answer.history?.events ?? []);
        if (!answer.nextPageToken) {
          this.complete = true;
          this.#told("events");
          this.describe_soon();
          break;
        }
        this.#token = answer.nextPageToken;
      } catch {
        if (poll.signal.aborted || this.#stop.signal.aborted) break;
        await new Promise((done) => setTimeout(done, retry_after));
      }
    }
    if (this.#poll === poll) this.#poll = null;
  }

  #take(raw) {
    const known = this.events.at(-1)?.id ?? 0;
    const news = raw.map(read_event).filter((event) => event.id > known);
    for (const event of news) {
      this.events.push(event);
      this.fold.add(event);
    }
    this.complete ||= this.events.length >= Number(this.description?.workflowExecutionInfo.historyLength ?? 0);
    if (news.length === 0) return;
    this.#told("events");
    if (this.complete) this.describe_soon();
    this.#ask_ledger();
  }

  // How permits ended that the run's end has ended: its history does not say.
  async #ask_ledger() {
    const unclear = this.fold.spans.filter((span) => span.assumed && !this.#asked.has(span.run)).slice(0, ledger_max);
    for (const {id, run} of unclear) {
      this.#asked.add(run);
      await this.#ask_permit({workflowId: id, runId: run}, (permit) => this.fold.permit_ended(run, permit));
    }
    if (unclear.length > 0 && !this.#stop.signal.aborted) this.#told("permits");
  }

  async #ask_permit({workflowId, runId}, take) {
    try {
      take(await api.get(`/permits/${part(workflowId)}`, {parameters: {runId}, signal: this.#stop.signal}));
    } catch {
      // The ledger has forgotten it, or the server is away.
    }
  }
}
