// Requests to the server the page came from. An answer that is not a success is thrown as an
// ApiError with the status, the reason for programs and the message for people.

const origin = new URL("../", import.meta.url);  // also right behind a proxy that adds a prefix
export const namespace_path = "api/v1/namespaces/default";

export class ApiError extends Error {
  constructor(status, reason, message) {
    super(message);
    this.status = status;  // 0: no answer came
    this.reason = reason;
  }
}

// Where a path is: "/pools" is in the namespace, "api/v1/server" is not.
export function url_of(path, parameters = {}) {
  const url = new URL(path.startsWith("/") ? namespace_path + path : path, origin);
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null && value !== "") url.searchParams.set(name, value);
  }
  return url;
}

async function error_of(response) {
  let answer = {};
  try {
    answer = await response.json();
  } catch {
    // Not ours: a proxy's, say.
  }
  const reason = answer.details?.find((detail) => detail.reason)?.reason ?? "";
  return new ApiError(response.status, reason,
    answer.message || `the server answered ${response.status} ${response.statusText}`.trim());
}

async function request(method, path, {parameters, body, signal, wait = 20_000} = {}) {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), wait);
  signal?.addEventListener("abort", () => limit.abort());
  try {
    const headers = body === undefined ? {} : {"Content-Type": "application/json"};
    const response = await fetch(url_of(path, parameters), {method, headers,
      body: body === undefined ? undefined : JSON.stringify(body), signal: limit.signal});
    if (response.status === 401) dispatchEvent(new Event("denied"));
    if (!response.ok) throw await error_of(response);
    const text = await response.text();
    return text === "" ? {} : JSON.parse(text);
  } catch (error) {
    if (error instanceof ApiError || signal?.aborted) throw error;
    const only_reads = method === "GET" || /\/(Get|List|Count|Describe|Query)\w+$/.test(path);
    throw new ApiError(0, "UNREACHABLE", only_reads ? "the server does not answer" :
      "the server does not answer: it may or may not have done this. Look before you try again");
  } finally {
    clearTimeout(timer);
  }
}

// api.get("/pools/gpu"), api.get("/permits", {parameters: {pool}, signal}), api.post("/pools/gpu/drain", body)
export const api = {
  get: (path, options) => request("GET", path, options),
  post: (path, body = {}) => request("POST", path, {body}),
  put: (path, body) => request("PUT", path, {body}),
  delete: (path, parameters) => request("DELETE", path, {parameters}),
};

// One of Temporal's calls. Names are in the body, so that any may be as long and as odd as it is
// allowed to be, and payloads come as the very bytes they are.
export function rpc(name, body = {}, options = {}) {
  const path = `temporal.api.workflowservice.v1.WorkflowService/${name}`;
  return request("POST", path, {...options, body: {namespace: "default", ...body}});
}

// A name in a path.
export const part = encodeURIComponent;

// crypto.randomUUID is missing where the page comes by plain http from another host.
export function new_request_id() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return "page-" + Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
