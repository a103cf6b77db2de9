// Temporal's list query as an SQL condition on `runs`. What the caller wrote becomes a bound value
// or picks one of our own words; it is never SQL itself.
//
//   query = [ term { AND term } ]
//   term  = field ( = | != | < | <= | > | >= ) value
//         | field IN ( value { , value } )
//         | field STARTS_WITH value            (of fields that hold text)
//   value = '...' or "...": text; a time, '2026-08-01T12:00:00Z'; a status, 'Running'; an outcome,
//           'released', or 'held' of a permit that is open
//
// In a value, '' in single quotes and "" in double quotes are the quote itself; so are \' and \",
// and \\ is a backslash. Keywords are read in any case, fields only as spelled. As in SQL, an
// absent value (the CloseTime of an open run, the Outcome of what is no permit) meets no
// comparison, not even !=.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "orchestrator/protocol/ids.h"

namespace permit::store {

inline constexpr std::size_t list_query_bytes_max = 4096;
inline constexpr std::size_t list_query_terms_max = 50;
inline constexpr std::size_t list_query_in_max = 100;

// What of a filter an index of `runs` can serve; the later, the fewer runs it is likely to find.
enum class Narrowing {
  none,
  close_time,
  open,
  workflow_ids,  // several, or a range
  run_ids,
  parent,
  workflow_id,
  run_id,
};

struct ListFilter {
  using Value = std::variant<std::int64_t, std::string>;

  std::string where;          // our column names, operators and `?`; empty: every run
  std::vector<Value> values;  // of the `?`, in order; no text has a NUL in it

  // Implied by `where`, for a reader that wants to look at fewer rows.
  Narrowing narrowing = Narrowing::none;
  Time started_from{};
  Time started_before = never;
};

// Throws Error: FILTER_INVALID (invalid_argument) with the position and what was expected,
// FILTER_UNSUPPORTED (unimplemented) for what Temporal has and we do not, like OR.
ListFilter parse_list_filter(std::string_view query);

}  // namespace permit::store
