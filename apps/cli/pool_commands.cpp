// permit pool list | describe | set | drain | undrain | delete
#include <algorithm>

#include "apps/cli/command.h"
#include "apps/cli/duration_text.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/gpu.h"
#include "apps/cli/session.h"
#include "orchestrator/protocol/json.h"

namespace permit::cli {

namespace {

const Flag reason_flag = {"reason", 0, ValueType::text, "TEXT", "why, for the record"};
const Operand pool_operand = {"POOL", Completes::pool};

std::string order_of(const PoolInfo& pool) {
  if (pool.order == PermitOrder::fair) return "fair";
  if (pool.order == PermitOrder::any) return "any";
  return "callers'";
}

int run_pool_list(Session& session) {
  const Output& out = session.out();
  const std::vector<PoolInfo> pools = session.pools().list();
  std::vector<std::string> lines;
  lines.reserve(pools.size());
  for (const PoolInfo& pool : pools) lines.push_back(to_json(pool, PayloadForm::shorthand));
  out.json(to_json(ListPoolsResponse{pools}, PayloadForm::shorthand), lines);
  if (pools.empty()) {
    out.text("There is no pool yet. Make one: permit pool set NAME --capacity N");
    return exit_ok;
  }
  using Align = Table::Align;
  Table table({{"POOL"},
               {"SLOTS", Align::right},
               {"HELD", Align::right},
               {"WAITING", Align::right},
               {"ORDER"},
               {"SET BY"},
               {"DRAINED"}});
  for (const PoolInfo& pool : pools) {
    std::string drained = pool.drained ? "all" : "";
    for (const SlotInfo& slot : pool.slots) {
      if (slot.drained && !pool.drained) drained += (drained.empty() ? "" : ",") + slot.slot.value;
    }
    table.add({{pool.pool.value},
               {std::to_string(pool.capacity)},
               {std::to_string(pool.held)},
               {std::to_string(pool.waiting)},
               {order_of(pool)},
               {pool.configured ? "operator" : "callers"},
               {drained.empty() ? "-" : drained}});
  }
  out.table(table);
  return exit_ok;
}

void say_pool(const Output& out, const PoolInfo& pool) {
  out.text(out.paint(pool.pool.value, Style::bold) + "  " + std::to_string(pool.held) + "/" +
           std::to_string(pool.capacity) + " held, " + std::to_string(pool.waiting) + " waiting" +
           (pool.drained ? ", drained" : ""));
  std::string slots;
  for (const SlotInfo& slot : pool.slots) {
    slots += (slots.empty() ? "" : ", ") + slot.slot.value;
    if (!slot.device.empty()) slots += "=" + printable(slot.device, 60);
    if (slot.drained) slots += " (drained)";
    if (slot.leaving) slots += " (leaving)";
  }
  out.text("Slots     " + (slots.empty() ? "none" : slots));
  out.text("Order     " + order_of(pool) + ", set by " +
           (pool.configured ? "an operator" : "its callers"));
  if (pool.rate) {
    out.text("Rate      " + std::to_string(pool.rate->per_second) + " a second, burst " +
             std::to_string(pool.rate->burst));
  }
  std::string endings;
  for (const OutcomeCount& count : pool.outcomes) {
    endings += ", " + std::to_string(count.holds.value) + " " + word_of(count.outcome);
    if (!count.cause.empty()) endings += "/" + count.cause;
  }
  out.text("Grants    " + std::to_string(pool.grants.value) + " = " + std::to_string(pool.held) +
           " held" + endings);
  for (const PoolChange& change : pool.changes) {
    out.text("Change    " + out.clock(change.at) + "  " + printable(change.what) + ", by " +
             (change.by.empty() ? "nobody named" : printable(change.by, 60)) +
             (change.reason.empty() ? "" : ": " + printable(change.reason)));
  }
}

int print_pool(const Session& session, const PoolInfo& pool) {
  session.out().json(to_json(pool, PayloadForm::shorthand));
  if (session.out().is_text()) say_pool(session.out(), pool);
  return exit_ok;
}

int run_pool_describe(Session& session) {
  return print_pool(session, session.pools().describe(PoolName(session.arguments().operand(0))));
}

// "0=GPU-8932f937"
std::pair<std::string, std::string> device_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw UsageError("--device: \"" + text + "\" is not SLOT=DEVICE, such as 0=GPU-8932f937");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

// A slot for each GPU of this host.
void set_gpus(SetPoolRequest& request) {
  const std::vector<Gpu> gpus = find_gpus();
  request.devices.emplace();
  if (!request.capacity && !request.slots) {
    request.capacity = static_cast<std::int32_t>(gpus.size());
  }
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const std::string slot =
        request.slots && i < request.slots->size() ? request.slots->at(i).value : std::to_string(i);
    (*request.devices)[slot] = gpus[i].uuid;
  }
}

int run_pool_set(Session& session) {
  const Arguments& arguments = session.arguments();
  SetPoolRequest request;
  request.pool = PoolName(arguments.operand(0));
  request.reason = arguments.text_or("reason", "");
  if (const auto capacity = arguments.number("capacity")) {
    request.capacity = static_cast<std::int32_t>(*capacity);
  }
  if (const auto names = arguments.text("slots")) {
    request.slots.emplace();
    std::size_t at = 0;
    while (at <= names->size()) {
      const std::size_t end = std::min(names->find(',', at), names->size());
      request.slots->emplace_back(names->substr(at, end - at));
      at = end + 1;
    }
  }
  if (request.capacity && request.slots) {
    throw UsageError("give --capacity or --slots, not both");
  }
  const std::string order = arguments.text_or("order", "");
  if (order == "fair") request.order = PermitOrder::fair;
  if (order == "any") request.order = PermitOrder::any;
  if (const auto rate = arguments.number("rate")) {
    request.rate = PoolRate{static_cast<double>(*rate),
                            static_cast<double>(arguments.number("burst").value_or(*rate))};
  }
  if (arguments.has("gpus")) set_gpus(request);
  for (const std::string& device : arguments.all("device")) {
    if (!request.devices) request.devices.emplace();
    request.devices->insert_or_assign(device_of(device).first, device_of(device).second);
  }
  return print_pool(session, session.pools().set(std::move(request)));
}

int run_pool_drain(Session& session) {
  const Arguments& arguments = session.arguments();
  return print_pool(session, session.pools().drain(PoolName(arguments.operand(0)),
                                                   SlotName(arguments.text_or("slot", "")),
                                                   arguments.text_or("reason", "")));
}

int run_pool_undrain(Session& session) {
  const Arguments& arguments = session.arguments();
  return print_pool(session, session.pools().undrain(PoolName(arguments.operand(0)),
                                                     SlotName(arguments.text_or("slot", "")),
                                                     arguments.text_or("reason", "")));
}

int run_pool_delete(Session& session) {
  const PoolName pool(session.arguments().operand(0));
  if (!session.arguments().has("yes")) {
    if (!session.is_interactive()) throw UsageError("say --yes to delete pool " + pool.value);
    const std::string answer = session.ask("Delete pool " + pool.value + "? [y/N] ");
    if (answer != "y" && answer != "yes") return exit_failed;
  }
  session.pools().remove(pool);
  session.out().json(R"({"pool":")" + pool.value + R"(","deleted":true})");
  session.out().text("pool " + pool.value + " deleted; its ledger is kept");
  return exit_ok;
}

Command set_command() {
  return {
      "pool set",
      "make a pool, or change it",
      "Takes effect at once. More slots are granted to those who wait; of fewer, the highest "
      "go, and whoever holds one of those finishes. What is not mentioned stays as it is. "
      "Capacity N is slots 0 to N-1.",
      {{"permit pool set gpu-pool --capacity 4", ""},
       {"permit pool set lab --slots rig-a,rig-b --order fair", "slots with names"},
       {"permit pool set gpu-pool --gpus auto", "a slot for each GPU of this host"},
       {"permit pool set vendor --capacity 3 --rate 10", "at most 10 grants a second"}},
      {pool_operand},
      {{"capacity", 0, ValueType::number, "N", "so many slots", Completes::nothing, {}, 0, 100'000},
       {"slots", 0, ValueType::text, "NAMES", "slots with names: a,b,c"},
       {"order",
        0,
        ValueType::choice,
        "",
        "instead of what callers ask for",
        Completes::choices,
        {"fair", "any"}},
       {"rate",
        0,
        ValueType::number,
        "N",
        "at most so many grants a second",
        Completes::nothing,
        {},
        1,
        1'000'000},
       {"burst",
        0,
        ValueType::number,
        "N",
        "and so many at once (as the rate)",
        Completes::nothing,
        {},
        1,
        1'000'000},
       {"gpus",
        0,
        ValueType::choice,
        "",
        "a slot for each GPU of this host",
        Completes::choices,
        {"auto"}},
       {"device",
        0,
        ValueType::text,
        "SLOT=DEVICE",
        "what a slot stands for; may be repeated, and replaces what was known",
        Completes::nothing,
        {},
        0,
        INT64_MAX,
        true},
       reason_flag},
      run_pool_set};
}

}  // namespace

std::vector<Command> pool_commands() {
  const Flag slot = {"slot", 0, ValueType::text, "NAME", "this slot only"};
  return {{"pool list", "all pools", "", {{"permit pool list", ""}}, {}, {}, run_pool_list},
          {"pool describe",
           "one pool: slots, devices, counts, and who changed it",
           "",
           {{"permit pool describe gpu-pool", ""}},
           {pool_operand},
           {},
           run_pool_describe},
          set_command(),
          {"pool drain",
           "grant nothing more of a pool, or of one slot",
           "Whoever holds a slot keeps it; whoever waits goes on waiting.",
           {{"permit pool drain gpu-pool --slot 2 --reason 'new fan'", ""}},
           {pool_operand},
           {slot, reason_flag},
           run_pool_drain},
          {"pool undrain",
           "grant again",
           "",
           {{"permit pool undrain gpu-pool --slot 2", ""}},
           {pool_operand},
           {slot, reason_flag},
           run_pool_undrain},
          {"pool delete",
           "forget a pool that nobody holds or waits for",
           "Its ledger is kept.",
           {{"permit pool delete demo --yes", ""}},
           {pool_operand},
           {},
           run_pool_delete}};
}

}  // namespace permit::cli
