// Sends copies, and keeps them until they have arrived.
#include "runtime/comm/outbox.h"

#include <chrono>
#include <cstring>
#include <utility>

#include "runtime/base/status_macros.h"

namespace partita::comm {

Outbox::~Outbox() {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(100);
  while (!sent_.empty()) {
    const absl::StatusOr<bool> done = HasArrived(*sent_.front());
    if (done.ok() && !*done && Clock::now() < end) continue;
    if (!done.value_or(false)) {
      [[maybe_unused]] const Letter* read_later = sent_.front().release();
    }
    sent_.pop_front();
  }
}

absl::StatusOr<bool> Outbox::HasArrived(Letter& letter) {
  for (Transport::Request* request : {&letter.head, &letter.body}) {
    if (*request == nullptr) continue;
    PARTITA_ASSIGN_OR_RETURN(const bool done, transport_.Test(*request));
    if (!done) return false;
    *request = nullptr;
  }
  return true;
}

absl::Status Outbox::Send(const char* data, int64_t bytes, uint64_t fingerprint,
                          int to) {
  while (!sent_.empty()) {
    PARTITA_ASSIGN_OR_RETURN(const bool arrived, HasArrived(*sent_.front()));
    if (!arrived) break;
    pool_.Give(std::move(sent_.front()->buffer));
    sent_.pop_front();
  }
  sent_.push_back(std::make_unique<Letter>());
  Letter& letter = *sent_.back();
  letter.fingerprint = fingerprint;
  letter.buffer = pool_.Take(bytes);
  std::memcpy(letter.buffer.data.get(), data, static_cast<size_t>(bytes));
  PARTITA_ASSIGN_OR_RETURN(
      letter.head,
      transport_.Send(&letter.fingerprint, sizeof letter.fingerprint, to,
                      Transport::Stream::kTransfers));
  if (bytes == 0) return absl::OkStatus();
  PARTITA_ASSIGN_OR_RETURN(letter.body,
                           transport_.Send(letter.buffer.data.get(), bytes, to,
                                           Transport::Stream::kTransfers));
  return absl::OkStatus();
}

}  // namespace partita::comm
