// A sign is a number: a question, an answer, or the rank that is waited for.
#include "runtime/comm/life_signs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/base/status_macros.h"

namespace partita::comm {
namespace {

constexpr int kAsk = 0;
constexpr int kAlive = 1;
constexpr int kWaits = 2;  // plus the rank that is waited for

}  // namespace

LifeSigns::LifeSigns(Transport& transport, std::chrono::milliseconds timeout)
    : transport_(transport),
      ask_after_(Clock::duration(timeout) / 8),
      grace_(Clock::duration(timeout) / 8),
      answer_every_(Clock::duration(timeout) / 16),
      listen_every_(std::min<Clock::duration>(Clock::duration(timeout) / 64,
                                              std::chrono::milliseconds(5))),
      peers_(static_cast<size_t>(transport.size())) {}

absl::Status LifeSigns::Listen() {
  while (true) {
    PARTITA_ASSIGN_OR_RETURN(const std::optional<Transport::Sign> sign,
                             transport_.NextSign());
    if (!sign) return absl::OkStatus();
    Peer& from = peer(sign->rank);
    if (sign->number == kAsk) {
      from.asks = true;
      excuse_ = -1;
    } else if (sign->number == kAlive) {
      from.heard = Clock::now();
      from.is_asked = false;
      from.is_fresh = true;
      from.awaits = -1;
    } else {
      from.awaits = std::min(sign->number - kWaits, transport_.size() - 1);
    }
  }
}

absl::Status LifeSigns::Answer() {
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (!peers_[i].asks) continue;
    peers_[i].asks = false;
    PARTITA_RETURN_IF_ERROR(transport_.SendSign(kAlive, static_cast<int>(i)));
  }
  return absl::OkStatus();
}

absl::Status LifeSigns::Work() {
  const Clock::time_point now = Clock::now();
  if (now - worked_ < answer_every_) return absl::OkStatus();
  worked_ = now;
  PARTITA_RETURN_IF_ERROR(Listen());
  return Answer();
}

absl::Status LifeSigns::BeginWait() {
  PARTITA_RETURN_IF_ERROR(Listen());
  for (Peer& peer : peers_) {
    peer.heard = Clock::time_point();
    peer.is_fresh = false;
    peer.awaits = -1;
  }
  excuse_ = -1;
  return absl::OkStatus();
}

absl::Status LifeSigns::Excuse(const std::vector<int>& ranks) {
  // The rank silent for longest; among equals, one that has not said it waits.
  const int silent =
      *std::min_element(ranks.begin(), ranks.end(), [&](int a, int b) {
        return std::make_pair(peer(a).heard, peer(a).awaits) <
               std::make_pair(peer(b).heard, peer(b).awaits);
      });
  const int excuse = AwaitedBy(silent) < 0 ? silent : AwaitedBy(silent);
  if (excuse == excuse_) return absl::OkStatus();
  excuse_ = excuse;
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (!peers_[i].asks) continue;
    PARTITA_RETURN_IF_ERROR(
        transport_.SendSign(kWaits + excuse, static_cast<int>(i)));
  }
  return absl::OkStatus();
}

absl::Status LifeSigns::Wait(const std::vector<int>& ranks,
                             Clock::time_point since) {
  const Clock::time_point now = Clock::now();
  if (now - listened_ < listen_every_) return absl::OkStatus();
  listened_ = now;
  PARTITA_RETURN_IF_ERROR(Listen());
  bool all_fresh = true;
  for (const int rank : ranks) all_fresh = all_fresh && peer(rank).is_fresh;
  if (all_fresh) {
    PARTITA_RETURN_IF_ERROR(Answer());
    for (const int rank : ranks) peer(rank).is_fresh = false;
  } else {
    PARTITA_RETURN_IF_ERROR(Excuse(ranks));
  }
  if (now - since < ask_after_) return absl::OkStatus();
  for (const int rank : ranks) {
    if (peer(rank).is_asked) continue;
    peer(rank).is_asked = true;
    PARTITA_RETURN_IF_ERROR(transport_.SendSign(kAsk, rank));
  }
  return absl::OkStatus();
}

std::vector<int> LifeSigns::Silent(const std::vector<int>& ranks,
                                   Clock::time_point since,
                                   std::chrono::milliseconds timeout) const {
  const Clock::time_point now = Clock::now();
  std::vector<int> silent;
  for (const int rank : ranks) {
    const Clock::duration time = now - std::max(since, peer(rank).heard);
    if (time > timeout + (AwaitedBy(rank) < 0 ? Clock::duration(0) : grace_))
      silent.push_back(rank);
  }
  return silent;
}

}  // namespace partita::comm
