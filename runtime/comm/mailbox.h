// Tensors on their way from one thread to another.
#ifndef PARTITA_RUNTIME_COMM_MAILBOX_H_
#define PARTITA_RUNTIME_COMM_MAILBOX_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <mutex>
#include <optional>
#include <string>

#include "runtime/comm/buffer_pool.h"

namespace partita::comm {

// What is sent is a copy. It goes straight to where the receiver expects it, if
// that is known already, else to memory of the mailbox's. Expectations meet
// messages in order. One thread sends, one receives.
class Mailbox {
 public:
  // `what` describes the message to a receiver that expects another one.
  void Send(uint64_t fingerprint, const std::string& what, const char* data,
            int64_t bytes);

  // The next message that is not expected yet goes to `target`, which the
  // sender may write to until Await has returned something for it, or Forget.
  // No two open expectations have the same target.
  void Expect(uint64_t fingerprint, char* target);

  // Of an expected message: empty if it lies at its target now, else what came
  // instead of it. Nothing if nothing came within `time`.
  std::optional<std::string> Await(const char* target,
                                   std::chrono::milliseconds time);

  // Nothing is expected any more; all targets are the caller's again.
  void Forget();

 private:
  struct Letter {
    uint64_t fingerprint = 0;
    std::string what;
    Buffer buffer;
    int64_t bytes = 0;
  };
  struct Expectation {
    uint64_t fingerprint = 0;
    char* target = nullptr;
    enum { kOpen, kFilling, kFilled } state = kOpen;
    std::optional<Letter> letter;  // what met it, not yet copied to the target
  };

  Expectation* FirstOpen();
  std::list<Expectation>::iterator Find(const char* target);

  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<Letter> letters_;  // none while an expectation is open
  std::list<Expectation> expected_;
  BufferPool pool_;
};

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_MAILBOX_H_
