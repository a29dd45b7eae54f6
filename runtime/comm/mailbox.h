// Passes tensors from one thread to another.
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

// Sends are copied: straight to the receiver's memory if the receive is already
// expected, else to memory of the mailbox. Expectations match messages in
// order. One thread sends, one receives.
class Mailbox {
 public:
  // `what` describes the message to a receiver that expects another one.
  void Send(uint64_t fingerprint, const std::string& what, const char* data,
            int64_t bytes);

  // Sends the next unmatched message to `target`. The sender may write to
  // `target` until Await returns a value for it, or Forget is called. Open
  // expectations must have different targets.
  void Expect(uint64_t fingerprint, char* target);

  // Result for an expected message: empty once it is at its target, or a
  // description of the different message that arrived. Nothing if no message
  // arrives within `time`.
  std::optional<std::string> Await(const char* target,
                                   std::chrono::milliseconds time);

  // Cancels all expectations; the caller owns all targets again.
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
    // Matching message, not yet copied to the target.
    std::optional<Letter> letter;
  };

  Expectation* FirstOpen();
  std::list<Expectation>::iterator Find(const char* target);

  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<Letter> letters_;  // empty while an expectation is open
  std::list<Expectation> expected_;
  BufferPool pool_;
};

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_MAILBOX_H_
