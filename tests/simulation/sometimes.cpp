#include "tests/simulation/sometimes.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>

namespace permit::simulation {

namespace {

// Seeds of both levels count, or of level 2 only.
enum class In { both, bytes };

struct Situation {
  std::string_view name;
  In in = In::both;
};

constexpr Situation situations[] = {
    {"a caller believes a pool to be larger or smaller than it is"},
    {"a child closes with a parent out of time"},
    {"a child closes with a parent that continues as new"},
    {"a child is not started, since its id is taken"},
    {"a client's call is sent again"},
    {"a close is refused, since there is news that it has not seen"},
    {"a closed run is deleted by retention"},
    {"a completion is answered with the next task"},
    {"a completion with a bad command is refused"},
    {"a crash while somebody waits in line"},
    {"a crash with requests that have no answer"},
    {"a fence refuses a stale write"},
    {"a force-release of a hold that has gone hits nobody"},
    {"a grandchild closes"},
    {"a grandchild is closed with its parent"},
    {"a grant comes while a worker has the task"},
    {"a heartbeat after the attempt's time is refused"},
    {"a heartbeat hears of a cancellation"},
    {"a holder asks again with the same request id"},
    {"a holder hangs up while it waits in line"},
    {"a holder is told its place in line"},
    {"a holder that does not wait is refused"},
    {"a later attempt gets the details of an earlier one's heartbeat"},
    {"a lease is renewed"},
    {"a lease's timer fires"},
    {"a parked poll loses its connection"},
    {"a paused worker wakes up with its task"},
    {"a permit closes at once"},
    {"a permit is ended by its backstop"},
    {"a permit is released in time"},
    {"a permit that was released is closed by something else"},
    {"a permit that was started by its id closes"},
    {"a permit's lease runs out"},
    {"a release after the lease's timer is only recorded"},
    {"a release by a client comes too late"},
    {"a release by a holder comes too late"},
    {"a release that names no run is refused"},
    {"a renewal comes too late"},
    {"a request arrives late"},
    {"a request for a permit asks for too much"},
    {"a request for a permit finds no slot"},
    {"a request for a permit finds the pool drained"},
    {"a request for a permit is withdrawn or removed"},
    {"a request id is refused with another payload"},
    {"a run closes that holds a permit"},
    {"a run closes that stands in a line"},
    {"a run closes with activities under way"},
    {"a run closes with timers that have not fired"},
    {"a run continues as new"},
    {"a run ends as canceled"},
    {"a run is closed over the task that a worker has"},
    {"a run is out of time"},
    {"a run is replaced"},
    {"a run of the SDK goes on where it is in memory"},
    {"a run of the SDK is replayed from its history"},
    {"a run would wait for itself"},
    {"a server starts with another capacity"},
    {"a signal before its handler is handed over"},
    {"a signal is sent again with the same request id"},
    {"a signal waits until a worker's task is done"},
    {"a stale task token is refused"},
    {"a sticky queue is given up"},
    {"a task is lost on its way to a worker, or with it"},
    {"a timer fires while a worker has the task"},
    {"a token that is nobody's is refused"},
    {"a wait in line runs out of time"},
    {"a worker fetches a history that it has lost"},
    {"a worker of the SDK dies with runs in memory"},
    {"a worker says that it cannot do its task"},
    {"a worker's time for a task is over"},
    {"a workflow task is handed out again"},
    {"a workflow's release comes too late"},
    {"a workflow's wait in line runs out of time"},
    {"an activity ends as canceled"},
    {"an activity finds no worker in time"},
    {"an activity takes too long"},
    {"an activity's end after its time is refused"},
    {"an activity's heartbeats stop"},
    {"an operator takes somebody out of the line"},
    {"capacity is lowered below what is held"},
    {"everything stands still for long"},
    {"several slots are granted at once"},
    {"started with a wall clock behind what is stored"},
    {"the server is down for long"},
    {"the wall clock jumps back"},
    {"the wall clock jumps forward"},
    {"two holders would write to one slot"},
    {"a connection cut in the middle of a request", In::bytes},
    {"a damaged file is refused", In::bytes},
    {"a lost file is refused, since its log is there", In::bytes},
    {"a request arrives in pieces", In::bytes},
    {"a server that lost its file writes no more", In::bytes},
    {"a sync that takes long", In::bytes},
    {"power lost in a recovery of a recovery", In::bytes},
    {"power lost in the middle of a write", In::bytes},
    {"power lost just after a sync", In::bytes},
    {"power lost just before a sync", In::bytes},
    {"power lost while the server recovers", In::bytes},
    {"power lost with writes out of order", In::bytes},
    {"power lost with writes that were not synced", In::bytes},
    {"requests pipelined on one connection", In::bytes},
    {"the store fails, and the server stops", In::bytes},
    {"there is space on the disk again", In::bytes},
};
static_assert(std::size(situations) >= 60 && std::size(situations) <= sometimes_max);

std::map<std::string_view, std::size_t> places() {
  std::map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < std::size(situations); ++i) places[situations[i].name] = i;
  return places;
}

}  // namespace

SometimesCounts& sometimes_counts() {
  static SometimesCounts counts;
  return counts;
}

void sometimes(std::string_view name) {
  static const std::map<std::string_view, std::size_t> known = places();
  const auto place = known.find(name);
  if (place == known.end()) {
    throw std::logic_error("no situation is called: " + std::string(name));
  }
  ++sometimes_counts().of[place->second];
}

bool report_sometimes(const SeedsRun& seeds, bool whole_table) {
  constexpr std::int64_t per_ten_thousand = 100;
  // Below that chance decides; a disk slows a seed down, so that less happens in it.
  constexpr std::int64_t seeds_min = 2'000;
  constexpr std::int64_t seeds_min_of_bytes = 300;
  bool enough = true;
  std::int64_t rarest = INT64_MAX;
  for (std::size_t i = 0; i < std::size(situations); ++i) {
    const Situation& situation = situations[i];
    const std::int64_t of_seeds =
        situation.in == In::bytes ? seeds.of_level_2 : seeds.of_level_1 + seeds.of_level_2;
    const std::int64_t met = sometimes_counts().of[i];
    const std::int64_t least = of_seeds * per_ten_thousand / 10'000;
    // A count of a few varies a lot, and is half by chance now and then.
    const std::int64_t bound = least >= 30 ? least : least / 3;
    const bool is_enough = of_seeds >= (situation.in == In::bytes ? seeds_min_of_bytes : seeds_min);
    const bool too_few = is_enough && (met == 0 || met < bound);
    if (of_seeds > 0) rarest = std::min(rarest, met);
    enough = enough && !too_few;
    if (!whole_table && !too_few) continue;
    std::cout << "  " << met << " x " << situation.name << " (at least " << least
              << (situation.in == In::bytes ? ", level 2" : "") << ")"
              << (too_few ? "  TOO FEW" : "") << "\n";
  }
  std::cout << std::size(situations) << " situations, the rarest met " << rarest << " times\n";
  return enough;
}

}  // namespace permit::simulation
