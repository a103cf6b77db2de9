// How long the worst interaction takes, also on a machine that is busy with other things.
import {worst_interaction} from "./harness.mjs";

// worst_interaction(); but if that was slow, the time that the page's main thread was at work for the
// worst of them, so that a wait for a processor that others have is not held against the page.
export async function worst(page, action, times = 5) {
  const waited = await worst_interaction(page, action, times);
  if (waited < 100) return waited;
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", {timeDomain: "threadTicks"});
  const work = async () => (await session.send("Performance.getMetrics")).metrics.find(({name}) => name === "TaskDuration").value * 1000;
  let most = 0;
  for (let i = 0; i < times; ++i) {
    const before = await work();
    await page.evaluate(async ([source, turn]) => {
      await (0, eval)(`(${source})`)(turn);
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    }, [action.toString(), i]);
    most = Math.max(most, await work() - before);
  }
  await session.detach();
  console.log(`${waited.toFixed(0)} ms passed; at work for ${most.toFixed(0)} ms`);
  return most;
}
