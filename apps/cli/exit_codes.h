// The one table of exit codes, for all commands. `permit help exit-codes` shows it.
#pragma once

namespace permit::cli {

enum ExitCode : int {
  exit_ok = 0,              // done; of `run`: the command's own 0
  exit_failed = 1,          // the operation failed, or the server said no
  exit_usage = 2,           // wrong usage or configuration; nothing was done
  exit_not_found = 3,       // no such permit, workflow, pool, …
  exit_not_allowed = 4,     // not authenticated, or not allowed
  exit_conflict = 5,        // held or started already, or changed since it was shown
  exit_no_input = 66,       // a database cannot be read (sysexits: NOINPUT)
  exit_unreachable = 69,    // no server answers (sysexits: UNAVAILABLE)
  exit_no_slot = 75,        // no slot within --wait (sysexits: TEMPFAIL)
  exit_unsafe = 78,         // a server may not start as it is set up (sysexits: CONFIG)
  exit_time_out = 124,      // the permit ended and the command was stopped; or --command-timeout
  exit_broken = 125,        // `run`: permit itself failed
  exit_not_runnable = 126,  // `run`: the command cannot be executed
  exit_no_command = 127,    // `run`: there is no such command
  exit_signal = 128,        // plus the signal's number
};

}  // namespace permit::cli
