// What the figures were measured on, and with.
#pragma once

#include "tests/bench/report.h"

namespace permit::bench {

// `commit`: of the sources.
void add_machine(const std::string& commit, Report& report);

}  // namespace permit::bench
