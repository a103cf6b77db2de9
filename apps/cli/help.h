// Help pages, man pages and shell completion, all made from the tables of command.h.
#pragma once

#include <string>
#include <vector>

namespace permit::cli {

struct Command;
struct Flag;

inline constexpr const char* client_version = "0.1.0";

enum class HelpLength { brief, full };

// Of "" (everything), a noun ("pool"), a command ("pool set"), or the topic "exit-codes". Throws
// UsageError.
std::string help_page(const std::string& name, HelpLength length);

// roff, for permit-<name>.1.
std::string man_page(const Command& command);
std::string man_overview();  // permit.1

}  // namespace permit::cli
