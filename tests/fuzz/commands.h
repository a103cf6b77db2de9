// Pieces of requests, drawn from choices: names from short lists, so that they meet, and now and
// then something that may not be.
#pragma once

#include "orchestrator/protocol/command.h"
#include "tests/fuzz/choices.h"

namespace permit::fuzz {

inline constexpr const char* workflow_ids[] = {"a", "b", "c", "d", "a",          "b",
                                               "c", "a", "b", "a", "permit:p:0", "bad id"};
inline constexpr const char* permit_ids[] = {"permit:p:0", "permit:p:1", "permit:q:a",
                                             "permit:q:b"};
inline constexpr const char* queues[] = {"x", "x", "x", "x", "permits", "permits", "y", "sticky"};
inline constexpr const char* pools[] = {"p", "p", "p", "p", "p", "p", "p", "q",
                                        "q", "q", "q", "q", "r", "r", "p", "b:d"};
inline constexpr const char* signal_names[] = {"s",     "s", "release", "release",
                                               "renew", "s", "s",       ""};
inline constexpr const char* short_names[] = {"a", "b", "0", "1", "c", "d", "lease", ""};

Duration some_duration(Choices& choices);
std::optional<Payloads> some_payloads(Choices& choices);
std::optional<Failure> some_failure(Choices& choices);
PermitRequest some_permit_request(Choices& choices);
// `run` is one that the caller has heard of, or empty.
Command some_command(Choices& choices, const RunId& run);

}  // namespace permit::fuzz
