// The thread that brings commits into the tables and the write-ahead log of SQLite into its file,
// so that the engine thread does not wait for either. One job at a time; while there is one, the
// database of the writer is this thread's.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace permit::store {

class Settler {
 public:
  using Job = std::function<void()>;
  // What came of a job, on the engine thread: nothing, or what it threw.
  using Done = std::function<void(std::exception_ptr)>;
  using Post = std::function<void(std::function<void()>)>;

  explicit Settler(Post post);
  ~Settler();  // after the job at hand; its Done is not called any more
  Settler(const Settler&) = delete;
  Settler& operator=(const Settler&) = delete;

  bool is_busy() const { return is_busy_; }
  void start(Job job, Done done);
  // Waits for the job at hand and calls its Done here.
  void wait();

 private:
  void thread_main();
  void finish();

  const Post post_;
  bool is_busy_ = false;  // these two are the engine thread's
  Done done_;

  std::mutex mutex_;  // guards the next ones
  Job job_;
  bool has_result_ = false;
  std::exception_ptr result_;
  bool stopping_ = false;
  std::condition_variable wake_;
  std::condition_variable ended_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for what was posted
  std::thread thread_;
};

}  // namespace permit::store
