// Holds transfers that a rank has sent and that are still in flight.
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

// Sends in the transfer stream without waiting for the receiver: first the
// transfer's fingerprint, then a copy of the tensor. Used by one thread.
class Outbox {
 public:
  // `transport` must outlive this object.
  explicit Outbox(Transport& transport) : transport_(transport) {}
  // Waits up to 0.1 s for sends in flight. The memory of sends that remain is
  // never freed.
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // `data` may change as soon as this returns.
  absl::Status Send(const char* data, int64_t bytes, uint64_t fingerprint,
                    int to);

 private:
  // Finished requests are null.
  struct Letter {
    uint64_t fingerprint = 0;
    Buffer buffer;
    Transport::Request head = nullptr, body = nullptr;
  };
  absl::StatusOr<bool> HasArrived(Letter& letter);

  Transport& transport_;
  std::deque<std::unique_ptr<Letter>> sent_;  // in the order of sending
  BufferPool pool_;  // memory of letters that have arrived
};

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_OUTBOX_H_
