// The figures as tables of Markdown, and as the part of docs/performance.md that a run writes.
#pragma once

#include <string>

#include "tests/bench/report.h"

namespace permit::bench {

// Of holders from outside: a row for each system, a column for each number of clients.
std::string outside_tables(const Report& report);

// Replaces what stands between the two marks in performance.md, and the plots beside it.
void write_docs(const Report& report, const std::string& directory);

}  // namespace permit::bench
