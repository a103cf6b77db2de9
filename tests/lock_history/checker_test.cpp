// The checker of lock histories checked: by hand-made histories, by an exhaustive search over small
// random ones, and by damage done to long sound ones.
#include "tests/lock_history/checker.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <sstream>

namespace permit::lock_history {
namespace {

// Short forms, separated by ";". Slots are of a pool of two; leases are 100 unless told.
//   A from to fence run [slot] [lease]    acquired      A? from [slot] [lease]   no answer
//   F from to [slot]                      full
//   R from to run | R? from run | RL from to run        released, no answer, lost
//   N from to run [lease] | N? | NL                     renewed
//   S from to fence run [slot] | S0 from to [slot]      seen held, seen free
class Script {
 public:
  explicit Script(const std::string& text) {
    out_ << "pool p 2\n";
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ';');) line(part);
  }
  History history() const { return read_history(out_.str()); }

 private:
  struct Words {
    std::istringstream stream;
    explicit Words(const std::string& part) : stream(part) {}
    std::string next(const std::string& otherwise = "") {
      std::string word;
      return stream >> word ? word : otherwise;
    }
  };

  void line(const std::string& part) {
    Words words(part);
    const std::string what = words.next();
    const std::string from = words.next();
    const bool unknown = what.ends_with('?');
    const std::string to = unknown ? "" : words.next();
    const std::string number = std::to_string(++count_);
    out_ << "> " << from << " " << number << " ";
    std::string answer = what.ends_with('L') ? "lost" : "ok";
    if (what[0] == 'A') {
      const std::string fence = unknown ? "" : words.next();
      const std::string run = unknown ? "" : words.next();
      const std::string slot = words.next("0");
      out_ << "acquire p:" << slot << " " << words.next("100") << "\n";
      answer += " p:" + (slot == "*" ? "0" : slot) + " " + fence + " " + run;
    } else if (what == "F") {
      out_ << "acquire p:" << words.next("0") << " 100\n";
      answer = "full";
    } else if (what == "S") {
      answer += " " + words.next();
      answer += " " + words.next();
      out_ << "read p:" << words.next("0") << "\n";
    } else if (what == "S0") {
      out_ << "read p:" << words.next("0") << "\n";
      answer = "free";
    } else {
      out_ << (what[0] == 'R' ? "release " : "renew ") << words.next();
      out_ << (what[0] == 'N' ? " " + words.next("100") : "") << "\n";
    }
    if (!unknown) out_ << "< " << to << " " << number << " " << answer << "\n";
  }

  std::ostringstream out_;
  int count_ = 0;
};

struct Case {
  const char* what;
  const char* text;
};

const Case illegal[] = {
    {"two holders at once", "A 0 1 1 a; A 5 6 2 b"},
    {"two holders, the answers cross", "A 0 9 1 a; A 1 8 2 b; R 20 21 a; R 22 23 b"},
    {"granted before the release was asked for", "A 0 1 1 a; A 2 9 2 b; R 10 11 a"},
    {"a fence that falls", "A 0 1 5 a; R 2 3 a; A 4 5 4 b"},
    {"a fence given twice", "A 0 1 5 a; R 2 3 a; A 4 5 5 b"},
    {"a run given twice", "A 0 1 1 a; R 2 3 a; A 4 5 2 a"},
    {"a run given twice, on two slots", "A 0 1 1 a; A 4 5 2 a 1"},
    {"released twice", "A 0 1 1 a; R 2 3 a; R 4 5 a"},
    {"released before it was granted", "A 5 6 1 a; R 2 3 a"},
    {"released after it must have ended", "A 0 1 1 a; A 150 151 2 b; R 160 161 a"},
    {"a release of nobody's", "A 0 1 1 a; R 2 3 b"},
    {"a renewal of nobody's", "N 2 3 b"},
    {"renewed before it was granted", "A 5 6 1 a; N 2 3 a"},
    {"renewed after the release", "A 0 1 1 a; R 2 3 a; N 4 5 a"},
    {"renewed after somebody else had it", "A 0 1 1 a; A 101 102 2 b; N 110 111 a"},
    {"expired too early", "A 0 1 1 a; A 98 99 2 b"},
    {"expired too early, by the clock of the grant", "A 10 20 1 a; A 100 109 2 b"},
    {"a renewal did not move the deadline", "A 0 1 1 a; N 50 51 a; A 120 121 2 b"},
    {"the second renewal did not", "A 0 1 1 a; N 50 51 a; N 90 91 a; A 160 161 2 b"},
    {"revived", "A 0 1 1 a; N 130 131 a"},
    {"revived after a renewal", "A 0 1 1 a; N 50 51 a; N 152 153 a"},
    {"lost too early", "A 0 1 1 a; RL 50 51 a"},
    {"a renewal refused too early", "A 0 1 1 a; NL 50 51 a"},
    {"lost, though renewed", "A 0 1 1 a; N 90 91 a; NL 150 151 a"},
    {"seen free while held", "A 0 1 1 a; S0 5 6; R 10 11 a"},
    {"seen free, before the deadline", "A 0 1 1 a; S0 98 99"},
    {"seen held after the release", "A 0 1 1 a; R 2 3 a; S 4 5 1 a"},
    {"seen held before the grant", "A 5 6 1 a; S 2 3 1 a"},
    {"seen held after the next grant", "A 0 1 1 a; R 2 3 a; A 4 5 2 b; S 6 7 1 a; R 8 9 b"},
    {"seen with another fence", "A 0 1 1 a; S 2 3 2 a"},
    {"seen on another slot", "A 0 1 1 a; S 2 3 1 a 1"},
    {"seen held, and nobody had asked", "S 2 3 1 a"},
    {"seen held before anybody asked", "A? 5; S 2 3 1 a"},
    {"one request explains two holds", "A? 0; S 2 3 1 a; S 200 201 2 b"},
    {"a hidden hold beside a known one", "A? 0; S 2 3 1 a; A 4 5 2 b"},
    {"a hidden hold expired too early", "A? 10; S 11 12 1 a; A 105 109 2 b"},
    {"refused, though nobody held it", "F 2 3; A 4 5 1 a"},
    {"refused, though nobody ever held it", "F 2 3"},
    {"refused between a release and a grant", "A 0 1 1 a; R 2 3 a; F 5 6; A 10 11 2 b"},
    {"free, then held, then free, in one hold", "A 0 1 1 a; S0 2 3; S 4 5 1 a"},
    {"free and taken cannot both be", "A 0 10 1 a; S 2 3 1 a; S0 5 6; R 20 21 a"},
    {"a lost release has freed it too early", "A 0 1 1 a; R? 50 a; A 30 40 2 b"},
};

const Case legal[] = {
    {"nothing", ""},
    {"one after the other", "A 0 1 1 a; R 2 3 a; A 4 5 2 b; R 6 7 b"},
    {"granted while the release is answered", "A 0 1 1 a; R 2 20 a; A 3 4 2 b"},
    {"both asked, the later one first", "A 0 30 2 b; A 1 5 1 a; R 6 7 a"},
    {"a fence may leap", "A 0 1 1 a; R 2 3 a; A 4 5 1000000 b"},
    {"slots have fences of their own", "A 0 1 5 a 0; A 2 3 4 b 1"},
    {"expired in time", "A 0 1 1 a; A 100 101 2 b"},
    {"expired while the other waited", "A 0 1 1 a; A 2 100 2 b"},
    {"expired, and the release is late", "A 0 1 1 a; A 101 102 2 b; RL 103 104 a"},
    {"a release beside the expiry", "A 0 1 1 a; R 99 110 a; A 100 101 2 b"},
    {"lost at the deadline, and still not free", "A 0 1 1 a; NL 100 101 a; S 200 201 1 a"},
    {"held long after its deadline", "A 0 1 1 a; S 500 501 1 a; R 600 601 a"},
    {"renewed in time", "A 0 1 1 a; N 90 91 a; N 180 181 a; A 280 281 2 b"},
    {"renewed at the last moment", "A 0 10 1 a; N 110 120 a"},
    {"renewals that overlap", "A 0 1 1 a; N 10 90 a; N 20 80 a; A 120 121 2 b"},
    {"revived by a renewal without an answer", "A 0 1 1 a; N? 90 a; N 180 181 a"},
    {"a renewal without an answer has not happened", "A 0 1 1 a; N? 90 a; A 101 102 2 b"},
    {"a release without an answer happened", "A 0 1 1 a; R? 2 a; A 3 4 2 b"},
    {"it happened much later", "A 0 1 1 a 0 1000; R? 2 a; S 90 91 1 a; A 95 99 2 b"},
    {"it did not happen", "A 0 1 1 a; R? 2 a; N 90 91 a; S 120 121 1 a"},
    {"it happened, and the second one is too late", "A 0 1 1 a; R? 2 a; RL 5 6 a; A 7 8 2 b"},
    {"an acquire without an answer", "A? 0; A 1 2 1 a"},
    {"it was seen", "A? 0; S 5 6 1 a; A 101 102 2 b"},
    {"it was seen, and comes late", "A 0 1 1 a; R 2 3 a; A? 1; S 50 51 2 b"},
    {"it was for any slot", "A? 0 *; S 5 6 1 a 1"},
    {"any slot, answered", "A 0 1 1 a *; R 2 3 a"},
    {"two of them were seen", "A? 0; A? 1 *; S 5 6 1 a; S 5 6 2 b 1"},
    {"two on one slot, one after the other", "A? 0; A? 1; S 5 6 1 a; S 150 151 2 b"},
    {"seen free before, between and after",
     "S0 0 1; A 2 3 1 a; R 4 5 a; S0 6 7; A 8 9 2 b; R 10 11 b; S0 12 13"},
    {"seen free while the grant is answered", "A 0 10 1 a; S0 5 6; R 20 21 a"},
    {"seen held while the release is answered", "A 0 1 1 a; R 2 10 a; S 5 6 1 a"},
    {"seen held, then free, in one release", "A 0 1 1 a; R 2 10 a; S 5 6 1 a; S0 7 8"},
    {"seen free after the deadline", "A 0 1 1 a; S0 100 101; A 300 301 2 b"},
    {"refused while held", "A 0 1 1 a; F 2 3; R 4 5 a"},
    {"refused before the answer of the grant", "A 0 10 1 a; F 2 3"},
    {"refused while it is released", "A 0 1 1 a; R 2 10 a; F 5 6"},
    {"refused after the deadline, not ended yet", "A 0 1 1 a; F 500 501; A 502 503 2 b"},
    {"refused for one without an answer", "A? 0; F 2 3"},
    {"refused for one who asked for any", "A? 0 *; F 2 3 1"},
    {"refused twice in two holds", "A 0 1 1 a; R 2 30 a; F 4 5; A 6 40 2 b; F 28 29; R 50 51 b"},
    {"a lease without end", "A 0 1 1 a 0 9000000000000000000; S 1000 1001 1 a"},
};

TEST_CASE("lock histories that cannot be are refused, odd ones that can are not") {
  REQUIRE(std::size(illegal) >= 30);
  REQUIRE(std::size(legal) >= 30);
  for (const Case& one : illegal) {
    CAPTURE(one.what);
    CHECK(!check(Script(one.text).history()).violations.empty());
  }
  for (const Case& one : legal) {
    CAPTURE(one.what);
    const Report report = check(Script(one.text).history());
    for (const std::string& violation : report.violations) INFO(violation);
    CHECK_MESSAGE(report.violations.empty(), report.violations.at(0));
  }
}

TEST_CASE("more holders than slots are seen, on whichever slots") {
  const auto pool = [](int capacity) {
    const std::string limit = "pool p " + std::to_string(capacity) + "\n";
    return limit +
           "> 0 1 acquire p:0 100\n< 1 1 ok p:0 1 a\n> 2 2 acquire p:1 100\n< 3 2 ok p:1 2 b\n";
  };
  CHECK(check(read_history(pool(2))).violations.empty());
  CHECK(check(read_history(pool(1))).violations.size() == 1);
}

TEST_CASE("a history that is no history is refused") {
  for (const char* text :
       {"x", "> 0", "> 0 1 steal p:0", "> 0 1 acquire p 100", "> 0 1 acquire p:0", "< 0 1 ok",
        "> 0 1 release a\n< 1 1 full", "> 0 1 release a\n> 0 1 release a",
        "> 5 1 release a\n< 4 1 ok", "> 0 1 acquire p:0 100\n< 1 1 ok p:0 x a"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(read_history(text), BadHistory);
  }
}

// --- All orders of a small history ---

// Tries every order, each thing as early as it can be: later moments never make another possible.
// Knows one slot, and no renewals. Slow, simple, and without any of the checker's ideas.
class Search {
 public:
  explicit Search(const std::vector<Operation>& operations) : operations_(operations) {}
  bool possible() { return go({}); }

 private:
  struct State {
    unsigned done = 0;
    Moment now = 0;
    std::uint64_t holder = 0;  // 0: free
    std::int64_t fence = 0;
    Moment deadline = 0;
    std::map<std::uint64_t, Moment> deadlines = {};  // of all that were granted
  };
  static constexpr std::uint64_t hidden = 1;  // a holder whom nobody saw

  bool go(const State& state) {
    Moment limit = never;
    bool all_done = true;
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      if ((state.done >> i & 1U) != 0 || operations_[i].outcome == Outcome::unknown) continue;
      limit = std::min(limit, operations_[i].returned);
      all_done = false;
    }
    if (all_done) return true;
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      if ((state.done >> i & 1U) != 0 || operations_[i].invoked > limit) continue;
      State next = state;
      next.done |= 1U << i;
      next.now = std::max(state.now, operations_[i].invoked);
      if (step(next, operations_[i])) return true;
    }
    return false;
  }

  // As it is, and after the lease has ended.
  bool step(const State& state, const Operation& operation) {
    if (state.now <= operation.returned && apply(state, operation)) return true;
    if (state.holder == 0) return false;
    State expired = state;
    expired.now = std::max(state.now, state.deadline);
    expired.holder = 0;
    return expired.now <= operation.returned && apply(expired, operation);
  }

  bool apply(State state, const Operation& operation) {
    if (operation.kind == Kind::acquire) return acquire(state, operation);
    if (operation.kind == Kind::read) {
      const bool free = operation.outcome == Outcome::free;
      return (free ? state.holder == 0 : state.holder == operation.run) && go(state);
    }
    if (operation.outcome == Outcome::lost) {
      const auto granted = state.deadlines.find(operation.run);
      if (granted == state.deadlines.end()) return false;
      if (state.holder == operation.run) state.now = std::max(state.now, granted->second);
      return state.now <= operation.returned && go(state);
    }
    if (state.holder != operation.run) return false;
    state.holder = 0;
    return go(state);
  }

  bool acquire(State state, const Operation& operation) {
    if (operation.outcome == Outcome::full) return state.holder != 0 && go(state);
    if (state.holder != 0) return false;
    state.deadline = state.now + operation.lease;
    if (operation.outcome == Outcome::ok) {
      if (operation.fence <= state.fence) return false;
      state.fence = operation.fence;
      state.holder = operation.run;
      state.deadlines[operation.run] = state.deadline;
      return go(state);
    }
    state.holder = hidden;
    if (go(state)) return true;
    for (const Operation& read : operations_) {  // or it was somebody who was seen
      const bool seen = read.kind == Kind::read && read.outcome == Outcome::ok;
      if (!seen || read.fence <= state.fence || state.deadlines.contains(read.run)) continue;
      State known = state;
      known.fence = read.fence;
      known.holder = read.run;
      known.deadlines[read.run] = state.deadline;
      if (!is_answered(read.run) && go(known)) return true;
    }
    return false;
  }

  bool is_answered(std::uint64_t run) const {
    for (const Operation& operation : operations_) {
      const bool acquire = operation.kind == Kind::acquire && operation.outcome == Outcome::ok;
      if (acquire && operation.run == run) return true;
    }
    return false;
  }

  const std::vector<Operation>& operations_;
};

using Dice = std::mt19937;

Moment up_to(Dice& dice, Moment last) {
  return static_cast<Moment>(dice() % static_cast<std::uint32_t>(last + 1));
}

// A few grants in a likely order, with likely and unlikely things around them. No refusal beside an
// acquire without an answer: the checker takes that for the reason without looking closer. And one
// lease for all of those: of several that may have been it, the checker takes the shortest lease.
History small_history(Dice& dice) {
  History history;
  const bool refusals = dice() % 2 == 0;
  history.slots.push_back({"p:0", "p", false});
  const auto add = [&](Kind kind, Outcome outcome, Moment from, std::uint64_t run) {
    Operation operation;
    operation.kind = kind;
    operation.outcome = outcome;
    operation.invoked = from;
    if (outcome != Outcome::unknown) operation.returned = from + up_to(dice, 6);
    operation.run = run;
    operation.lease = outcome == Outcome::unknown ? 8 : 6 + up_to(dice, 6);
    operation.fence = static_cast<std::int64_t>(run);
    operation.number = history.operations.size();
    history.operations.push_back(operation);
  };
  Moment now = 0;
  const std::uint64_t runs = 2 + dice() % 2;
  for (std::uint64_t run = 11; run < 11 + runs; ++run) {
    now += up_to(dice, 5);
    const bool answered = refusals || dice() % 3 != 0;
    add(Kind::acquire, answered ? Outcome::ok : Outcome::unknown, now, answered ? run : 0);
    now += up_to(dice, 5);
    switch (dice() % 6) {
      case 0:
        add(Kind::read, Outcome::ok, now, run);
        break;
      case 1:
        add(Kind::read, Outcome::free, now + up_to(dice, 4), 0);
        break;
      case 2:
        if (refusals) add(Kind::acquire, Outcome::full, now, 0);
        break;
      default:
        break;
    }
    now += up_to(dice, 4);
    if (!answered) continue;
    const Outcome outcomes[] = {Outcome::ok, Outcome::ok, Outcome::unknown, Outcome::lost};
    if (dice() % 4 != 0) add(Kind::release, outcomes[dice() % 4], now, run);
  }
  return history;
}

TEST_CASE("the checker and a search through all orders agree") {
  Dice dice(7);
  int sound = 0;
  constexpr int cases = 20'000;
  for (int i = 0; i < cases; ++i) {
    const History history = small_history(dice);
    const bool possible = Search(history.operations).possible();
    const Report report = check(history);
    if (possible) ++sound;
    CAPTURE(i);
    if (!report.violations.empty()) CAPTURE(report.violations.front());
    REQUIRE(possible == report.violations.empty());
  }
  CHECK(sound > cases / 5);
  CHECK(sound < cases * 4 / 5);
}

// --- Damage ---

constexpr Moment lease = 1'000;

// Slots that change hands, at moments that a true server chose.
struct Story {
  History history;
  std::vector<std::vector<std::size_t>> acquires;  // by slot, in order
  std::map<std::uint64_t, std::size_t> releases;   // by run
};

Story sound_story(Dice& dice, std::uint32_t slots, int holds) {
  Story story;
  std::int64_t fence = 0;
  const auto add = [&](Kind kind, Moment at, std::uint32_t slot, std::uint64_t run) -> Operation& {
    Operation operation;
    operation.kind = kind;
    operation.outcome = Outcome::ok;
    operation.invoked = at - up_to(dice, 40);
    operation.returned = at + up_to(dice, 40);
    operation.slot = slot;
    operation.run = run;
    operation.lease = lease;
    operation.number = story.history.operations.size();
    story.history.operations.push_back(operation);
    return story.history.operations.back();
  };
  std::vector<Moment> free_at(slots, 100);
  for (std::uint32_t slot = 0; slot < slots; ++slot) {
    const std::string name = "p:" + std::to_string(slot);
    story.history.slots.push_back({name, "p", false});
  }
  story.acquires.resize(slots);
  story.history.capacities["p"] = slots;
  for (int i = 0; i < holds; ++i) {
    const auto slot = static_cast<std::uint32_t>(dice() % slots);
    const auto run = static_cast<std::uint64_t>(i) + 1;
    Moment now = free_at[slot] + 1 + up_to(dice, 100);
    story.acquires[slot].push_back(story.history.operations.size());
    Operation& acquire = add(Kind::acquire, now, slot, run);
    acquire.fence = ++fence;
    Moment deadline = now + lease;
    for (int renewals = static_cast<int>(dice() % 3); renewals > 0; --renewals) {
      now += 1 + up_to(dice, 500);
      if (now >= deadline) break;
      add(Kind::renew, now, slot, run);
      deadline = now + lease;
    }
    now += 1 + up_to(dice, 50);
    if (dice() % 2 == 0) add(Kind::read, now, slot, run).fence = fence;
    if (dice() % 4 == 0) {
      now = std::max(now, deadline + up_to(dice, 100));  // it expires
    } else {
      now += 1 + up_to(dice, 300);
      story.releases[run] = story.history.operations.size();
      add(Kind::release, now, slot, run);
    }
    free_at[slot] = now;
  }
  return story;
}

enum class Damage { swap_fences, drop_release, shift_answer };

// Two holds of one slot, one after the other; both by number of their acquire.
std::pair<std::size_t, std::size_t> neighbours(const Story& story, Dice& dice) {
  for (;;) {
    const auto& acquires = story.acquires[dice() % story.acquires.size()];
    if (acquires.size() < 2) continue;
    const std::size_t first = dice() % (acquires.size() - 1);
    return {acquires[first], acquires[first + 1]};
  }
}

// False if nobody could see it: what is left could have been.
bool damage(Story& story, Damage kind, Dice& dice) {
  auto& operations = story.history.operations;
  const auto [first, second] = neighbours(story, dice);
  Operation& earlier = operations[first];
  Operation& later = operations[second];
  const auto release = story.releases.find(earlier.run);
  const bool renewed = operations[first + 1].kind == Kind::renew;
  switch (kind) {
    case Damage::swap_fences:
      std::swap(earlier.fence, later.fence);
      for (Operation& operation : operations) {  // as everybody saw them
        if (operation.kind != Kind::read) continue;
        if (operation.run == earlier.run) operation.fence = earlier.fence;
        if (operation.run == later.run) operation.fence = later.fence;
      }
      return earlier.returned < later.invoked;
    case Damage::drop_release: {
      if (release == story.releases.end()) return false;
      const bool seen = later.returned < earlier.invoked + lease;
      operations.erase(operations.begin() + static_cast<std::ptrdiff_t>(release->second));
      return seen;
    }
    case Damage::shift_answer:
      if (release == story.releases.end()) return false;
      later.returned = operations[release->second].invoked - 1;
      later.invoked = std::min(later.invoked, later.returned);
      return !renewed && later.returned < earlier.invoked + lease;
  }
  return false;
}

TEST_CASE("damage to a sound history is seen") {
  Dice dice(11);
  for (const Damage kind : {Damage::swap_fences, Damage::drop_release, Damage::shift_answer}) {
    int visible = 0;
    int found = 0;
    for (int i = 0; i < 800; ++i) {
      Story story = sound_story(dice, 4, 60);
      REQUIRE(check(story.history).violations.empty());
      if (!damage(story, kind, dice)) continue;
      ++visible;
      if (!check(story.history).violations.empty()) ++found;
    }
    CAPTURE(static_cast<int>(kind));
    CHECK(visible >= 100);
    CHECK(found >= visible * 99 / 100);
  }
}

}  // namespace
}  // namespace permit::lock_history
