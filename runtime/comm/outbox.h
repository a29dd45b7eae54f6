// Transfers that a rank has sent and that are still on their way.
#ifndef PARTITA_RUNTIME_COMM_OUTBOX_H_
#define PARTITA_RUNTIME_COMM_OUTBOX_H_

#include <cstdint>
#include <deque>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/buffer_pool.h"
#include "runtime/comm/message.h"

namespace partita::comm {

// Sends in the stream of transfers without waiting for the receiver: each
// transfer is its fingerprint, then a copy of the tensor. Used by one thread.
class Outbox {
 public:
  // The transport outlives it.
  explicit Outbox(Transport& transport) : transport_(transport) {}
  // Waits a tenth of a second for what is on its way. What is then still being
  // sent is sent from memory that is never freed.
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // `data` may change as soon as this returns.
  absl::Status Send(const char* data, int64_t bytes, uint64_t fingerprint,
                    int to);

 private:
  // Requests that are done are null.
  struct Letter {
    uint64_t fingerprint = 0;
    Buffer buffer;
    Transport::Request head = nullptr, body = nullptr;
  };
  absl::StatusOr<bool> HasArrived(Letter& letter);

  Transport& transport_;
  std::deque<std::unique_ptr<Letter>> sent_;  // in the order of sending
  BufferPool pool_;                           // of letters that have arrived
};

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_OUTBOX_H_
