// Reads from all open connections at once.
#include "runtime/comm/reception.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/base/status_macros.h"

namespace partita::comm {
namespace {

using Clock = std::chrono::steady_clock;

// Each caller holds a file descriptor.
constexpr size_t kMostCallers = 256;

}  // namespace

bool Reception::Hear(Caller& caller) const {
  Hello& hello = caller.visitor.hello;
  const absl::StatusOr<size_t> got = caller.visitor.socket.ReadSome(
      reinterpret_cast<char*>(&hello) + caller.heard,
      sizeof(hello) - caller.heard);
  if (!got.ok()) return false;
  caller.heard += *got;
  if (caller.heard < sizeof(hello)) return true;
  hello.name[sizeof(hello.name) - 1] = '\0';
  return hello.magic == kMagic && hello.nonce == nonce_;
}

absl::Status Reception::LetIn() {
  absl::StatusOr<Socket> socket = door_.Accept(Clock::now());
  // The connection is gone again.
  if (absl::IsDeadlineExceeded(socket.status())) return absl::OkStatus();
  if (!socket.ok()) return socket.status();
  if (callers_.size() == kMostCallers) callers_.pop_front();
  callers_.emplace_back();
  callers_.back().visitor.socket = *std::move(socket);
  callers_.back().end = Clock::now() + kGreetingTime;
  return absl::OkStatus();
}

absl::StatusOr<Visitor> Reception::Next(Deadline deadline) {
  for (;;) {
    std::vector<const Socket*> sockets = {&door_};
    for (const Caller& caller : callers_)
      sockets.push_back(&caller.visitor.socket);
    const Deadline soon =
        callers_.empty() ? deadline : std::min(deadline, callers_.front().end);
    const absl::StatusOr<std::vector<bool>> ready =
        Socket::WaitToRead(sockets, soon);
    const Deadline now = Clock::now();
    if (!ready.ok() && !absl::IsDeadlineExceeded(ready.status()))
      return ready.status();
    size_t place = 1;
    for (auto caller = callers_.begin(); caller != callers_.end(); ++place) {
      const bool stays =
          ready.ok() && (*ready)[place] ? Hear(*caller) : now < caller->end;
      if (stays && caller->heard == sizeof(Hello)) {
        Visitor visitor = std::move(caller->visitor);
        callers_.erase(caller);
        return visitor;
      }
      caller = stays ? std::next(caller) : callers_.erase(caller);
    }
    if (ready.ok() && ready->front()) PARTITA_RETURN_IF_ERROR(LetIn());
    if (now >= deadline)
      return absl::DeadlineExceededError("the time was not enough");
  }
}

}  // namespace partita::comm
