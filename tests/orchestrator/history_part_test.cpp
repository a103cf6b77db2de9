#include "orchestrator/service/history_part.h"

#include <doctest/doctest.h>

#include "orchestrator/protocol/error.h"
#include "orchestrator/store/store.h"
#include "tests/store/rows.h"
#include "tests/support/crash_vfs.h"

namespace permit::service {
namespace {

constexpr std::int64_t events = 7;

std::string event_text(std::int64_t id) { return R"({"eventId":")" + std::to_string(id) + "\"}"; }

std::string text_of(std::int64_t from, std::int64_t to) {
  std::string text = "[";
  for (std::int64_t id = from; id < to; ++id) text += (id == from ? "" : ",") + event_text(id);
  return text + "]";
}

// A run whose first events are in the tables; each commit adds one or two.
class SomeHistory {
 public:
  SomeHistory() : store_(store::test_rows::on(vfs_), with_log()) {
    store::test_rows::Rows rows;
    store::RunRow run = rows.run("train");
    store_.begin();
    store_.insert_run(run);
    store_.append_history(run.number, 1, event_text(1) + "," + event_text(2));
    store_.commit(store::test_rows::noon);
    add(3, 1);
    store_.settle();
    add(4, 2);
    add(6, 1);
    add(7, 1);
  }

  HistoryPart part(std::int64_t from, std::int64_t to) {
    HistoryPart part;
    part.run = number;
    part.from_event_id = from;
    part.to_event_id = to;
    part.pending = store_.pending_history(number, from, to);
    return part;
  }
  store::Store& store() { return store_; }

  const RunNumber number{1};

 private:
  static store::Opening with_log() {
    store::Opening opening;
    opening.logs = true;
    return opening;
  }
  void add(std::int64_t first, std::int64_t count) {
    const std::string text = text_of(first, first + count);
    store_.begin();
    store_.append_history(number, first, text.substr(1, text.size() - 2));
    store_.commit(store::test_rows::noon);
  }

  test::CrashVfs vfs_;
  store::Store store_;
};

TEST_CASE("a part of a history is the same before and after it is settled") {
  SomeHistory history;
  std::vector<HistoryPart> parts;
  for (std::int64_t from = 1; from <= events; ++from) {
    for (std::int64_t to = from; to <= events + 1; ++to) parts.push_back(history.part(from, to));
  }
  const auto check = [&] {
    for (const HistoryPart& part : parts) {
      CHECK(history_text(history.store().history_table(), part) ==
            text_of(part.from_event_id, part.to_event_id));
    }
  };
  CHECK(!parts.back().pending.empty());
  check();
  history.store().settle();
  check();
  CHECK(history.part(1, events + 1).pending.empty());
}

TEST_CASE("a part of what there is no more is refused, and not cut short") {
  SomeHistory history;
  store::HistoryTable& table = history.store().history_table();
  const auto reason_of = [&](const HistoryPart& part) -> std::string {
    try {
      return history_text(table, part);
    } catch (const Error& error) {
      return error.reason();
    }
  };
  CHECK(reason_of(history.part(2, events + 2)) == "WORKFLOW_NOT_FOUND");
  HistoryPart settled = history.part(1, 4);
  CHECK(settled.pending.empty());
  history.store().database().execute("DELETE FROM history");
  CHECK(reason_of(settled) == "WORKFLOW_NOT_FOUND");
  CHECK(reason_of(history.part(4, 6)) == text_of(4, 6));  // which is not in the tables yet
  CHECK(reason_of(history.part(3, 6)) == "WORKFLOW_NOT_FOUND");
}

TEST_CASE("an answer of a history has its events in the form that was asked for, and its token") {
  SomeHistory history;
  HistoryPart part = history.part(2, 4);
  part.next_page_token = Bytes{"1.4"};
  store::HistoryTable& table = history.store().history_table();
  CHECK(history_json(table, part, PayloadForm::long_form) ==
        R"({"history":{"events":[{"eventId":"2"},{"eventId":"3"}]},"nextPageToken":"MS40"})");
}

}  // namespace
}  // namespace permit::service
