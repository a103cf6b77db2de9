// A list's query: refused with its reason, or SQL that SQLite takes, in which nothing but our own
// words stands: every value that the caller wrote is bound.
#include "orchestrator/store/list_filter.h"

#include <algorithm>
#include <array>

#include "orchestrator/http/url.h"
#include "orchestrator/protocol/error.h"
#include "orchestrator/store/reader.h"
#include "orchestrator/store/store.h"
#include "tests/fuzz/targets.h"

namespace permit::fuzz {

namespace {

store::Store& empty_store() {
  static store::Store store([] {
    store::Database::Options options;
    options.mode = store::Database::Mode::in_memory;
    return options;
  }());
  return store;
}

// The words of ours that a condition is made of; the caller's could only be beside them.
void check_words(std::string_view where) {
  constexpr std::array words = {"workflow_id",
                                "run_id",
                                "workflow_type",
                                "status",
                                "start_time",
                                "close_time",
                                "parent_workflow_id",
                                "parent_run_id",
                                "task_queue",
                                "iif(fence is null, null, coalesce(outcome, 0))",
                                "AND",
                                "IN",
                                "(",
                                ")",
                                "?",
                                "<>",
                                "<=",
                                ">=",
                                "<",
                                ">",
                                "=",
                                ",",
                                " "};
  while (!where.empty()) {
    std::size_t longest = 0;
    for (const std::string_view word : words) {
      if (where.starts_with(word)) longest = std::max(longest, word.size());
    }
    promise(longest > 0, "a condition has none of the caller's words");
    where.remove_prefix(longest);
  }
}

void check_prepared(const std::string& sql) {
  const store::Statement statement(empty_store().database(), sql);
}

}  // namespace

void list_filter(std::string_view input) {
  store::ListFilter filter;
  try {
    filter = store::parse_list_filter(input);
  } catch (const Error& error) {
    promise(error.reason() == "FILTER_INVALID" || error.reason() == "FILTER_UNSUPPORTED",
            "there are two reasons not to take a query");
    promise(!error.message().empty(), "a refusal says why");
    return;
  }
  check_words(filter.where);
  const auto marks = std::count(filter.where.begin(), filter.where.end(), '?');
  promise(static_cast<std::size_t>(marks) == filter.values.size(), "every value is bound");
  for (const auto& value : filter.values) {
    const auto* text = std::get_if<std::string>(&value);
    promise(text == nullptr || text->find('\0') == std::string::npos, "no text has a NUL in it");
  }
  check_prepared(store::list_runs_sql(filter, store::Access::index));
  check_prepared(store::list_runs_sql(filter, store::Access::in_order));
  check_prepared(store::count_runs_sql(filter));
  store::Reader reader(empty_store().database());
  promise(reader.count_runs("default", filter) == 0, "there is nothing to be found");
  promise(reader.list_runs("default", filter).executions.empty(), "there is nothing to be found");
}

}  // namespace permit::fuzz
