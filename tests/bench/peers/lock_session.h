// One client of a lock service: a connection, on which it takes a lock and gives it back.
#pragma once

namespace permit::bench {

enum class Answer { none, granted, refused, released };

// The constructors of the sessions connect and prepare, and wait for that. From then on nothing
// waits. Whatever is not an answer that is allowed here, throws: a run with errors has no figures.
class LockSession {
 public:
  LockSession() = default;
  virtual ~LockSession() = default;
  LockSession(const LockSession&) = delete;
  LockSession& operator=(const LockSession&) = delete;

  virtual int socket() const = 0;
  // Asks for the lock. Nothing else may be under way.
  virtual void acquire() = 0;
  // Gives back what acquire() got.
  virtual void release() = 0;
  // Reads what has come, and says what came of what was asked, once that is known.
  virtual Answer receive() = 0;
  // Takes leave, so that the service has nothing to clean up while the next one is measured.
  virtual void close() {}
};

}  // namespace permit::bench
