// Every page with the real server behind it: a lab with trainings at work, and what has become of
// others. Each page is looked at in light, in dark and on a phone; scripts/screenshots keeps what it
// sees for docs/.
import assert from "node:assert/strict";
import {spawn} from "node:child_process";
import path from "node:path";
import test from "node:test";
import {axe_problems, eventually, fits_width, looks, open_page, permit, real_server, screenshot} from "./harness.mjs";

// gpu_training is built beside the server.
const training = path.join(path.dirname(permit), "gpu_training");

function run(t, site, ...words) {
  const child = spawn(training, [...words, "--address", site.origin], {stdio: "ignore"});
  t.after(() => child.kill("SIGKILL"));
  return new Promise((done) => child.once("exit", done));
}

async function rpc(site, name, message) {
  const response = await fetch(`${site.origin}/temporal.api.workflowservice.v1.WorkflowService/${name}`, {method: "POST",
    headers: {"Content-Type": "application/json"}, body: JSON.stringify({namespace: "default", ...message})});
  assert.equal(response.status, 200, `${name}: ${await response.clone().text()}`);
  return response.json();
}

async function hold(site, pool, holder, more = {}) {
  const answer = await site.api("POST", `/pools/${pool}/acquire`,
    {requestId: `tour-${pool}-${holder}`, holder, lease: "3000s", ...more});
  return {...answer, id: answer.slots?.[0].id, fence: answer.fence};
}

// Five trainings for four GPUs, a rig that is looked after, a migration that has lost its lease.
async function lab(t) {
  const site = await real_server(t);
  const {api} = site;
  await api("PUT", "/pools/gpu-pool", {capacity: 4, devices: {0: "GPU-6f1c02aa", 1: "GPU-91d0b7c4", 2: "GPU-0e55a2f3",
    3: "GPU-c7713d28"}, identity: "ana", reason: "four cards in host a"});
  await api("PUT", "/pools/lab-rig", {slots: ["rig-a", "rig-b", "rig-c"], order: "fair", identity: "li", reason: "bench 7"});
  await api("PUT", "/pools/shard-migrate", {capacity: 1, rate: {perSecond: 1, burst: 10}});
  run(t, site, "worker", "--name", "worker-1@gpu-host-a", "--at-once", "2");
  run(t, site, "worker", "--name", "worker-2@gpu-host-b", "--at-once", "2");
  const begun = [["train-llama-14", "llama"], ["train-vit-04", "vit"], ["train-gan-41", "gan"], ["train-bert-77", "bert"]];
  await run(t, site, "start", "--id", "train-asr-05", "--model", "asr", "--epochs", "2", "--time-scale", "1000");
  await eventually(async () => (await api("GET", "/workflows/train-asr-05")).workflowExecutionInfo.status ===
    "WORKFLOW_EXECUTION_STATUS_COMPLETED", "the first training's end", 30_000);
  for (const [id, model] of begun) await run(t, site, "start", "--id", id, "--model", model, "--epochs", "400", "--time-scale", "100");
  await eventually(async () => (await api("GET", "/pools/gpu-pool")).held === 4, "four trainings at work", 30_000);
  for (const [i, id] of ["train-llama-15", "eval-weekly"].entries()) {
    await run(t, site, "start", "--id", id, "--time-scale", "100");
    await eventually(async () => (await api("GET", "/pools/gpu-pool")).waiting === i + 1, `${id} in line`);
  }

  const released = await hold(site, "lab-rig", "hil-test-98");
  await api("POST", `/permits/${released.id}/release`, {token: released.token});
  const taken = await hold(site, "lab-rig", "hil-test-99", {only: ["rig-c"]});
  await api("POST", `/permits/${taken.id}/force-release`, {fence: taken.fence, reason: "rig moves to bench 9", identity: "li"});
  await hold(site, "lab-rig", "python burn_in.py (ana@bench-7:4121)", {only: ["rig-a"], reason: "burn-in after the new fan",
    labels: {user: "ana", host: "bench-7", pid: "4121"}});
  await api("POST", "/pools/lab-rig/drain", {slot: "rig-b", identity: "li", reason: "replacing the fan"});
  await hold(site, "shard-migrate", "migrate-eu-1", {lease: "0.4s"});
  await eventually(async () => (await api("GET", "/permits?pool=shard-migrate&state=closed")).permits?.length === 1, "the end of a lease");
  await hold(site, "shard-migrate", "migrate-eu-2");
  await api("POST", "/workflows/migrate-eu-3", {workflowType: {name: "Migration"}, taskQueue: {name: "migrations"}});
  const {taskToken} = await rpc(site, "PollWorkflowTaskQueue", {taskQueue: {name: "migrations"}});
  await rpc(site, "RespondWorkflowTaskCompleted", {taskToken, commands: [{
    commandType: "COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION",
    startChildWorkflowExecutionCommandAttributes: {permit: {pool: "shard-migrate", lease: "600s", order: "fair"}}}]});
  await api("POST", "/workflows/report-nightly", {workflowType: {name: "Report"}, taskQueue: {name: "reports"}});
  await api("POST", "/workflows/train-gan-41/terminate", {reason: "not that model", identity: "ana"});
  await eventually(async () => (await api("GET", "/pools/gpu-pool")).waiting === 1, "the next in line");
  return site;
}

test("every page shows a lab at work: in light, in dark and on a phone, for everybody", {timeout: 280_000}, async (t) => {
  const site = await lab(t);
  const {execution} = (await site.api("GET", "/workflows/train-llama-14")).workflowExecutionInfo;
  const pages = [
    ["pools", "#/pools", "gpu-pool"],
    ["timeline", "#/timeline?range=1m", "lab-rig"],
    ["waiters", "#/waiters", "migrate-eu-2"],
    ["workflows", "#/workflows", "train-bert-77"],
    ["workflow", `#/workflows/${execution.workflowId}/${execution.runId}`, "GpuTraining"],
    ["queues", "#/queues", "worker-2@gpu-host-b"],
    ["metrics", "#/metrics", "permit_acquires_total"],
    ["about", "#/about", "lease_expired"],
  ];
  for (const look of looks) {
    let page;
    for (const [name, hash, text] of pages) {
      if (page) await page.evaluate((where) => (location.hash = where), hash);
      else page = await open_page(t, site, hash, look);
      await page.locator(`.page-${name}`).getByText(text).first().waitFor();
      await page.locator(".loading").waitFor({state: "detached"});
      await screenshot(page, `${name}-${look.name}`);
      assert.deepEqual(await axe_problems(page), [], `${name} in ${look.name}`);
      assert.ok(await fits_width(page), `${name} is wider than ${look.name}`);
    }
    await page.check();
    await page.close();
  }
});
