// Who is alive, where ranks know each other by messages alone.
//
// A rank that waits asks those it waits for. Who is at work answers; who waits
// itself answers once all that it waits for have given a sign of life, and
// until then says for whom it waits. So life is told only by ranks at work, and
// ranks that wait for each other tell none. Nobody asks before an eighth of the
// timeout has passed, and nobody answers more often than sixteen times in it:
// ranks that keep up with each other send nothing.
#ifndef PARTITA_RUNTIME_COMM_LIFE_SIGNS_H_
#define PARTITA_RUNTIME_COMM_LIFE_SIGNS_H_

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/comm/message.h"

namespace partita::comm {

class LifeSigns {
 public:
  using Clock = std::chrono::steady_clock;

  // `transport` outlives it.
  LifeSigns(Transport& transport, std::chrono::milliseconds timeout);

  // This rank is at work.
  absl::Status Work();

  // A wait has begun: what was heard before does not count.
  absl::Status BeginWait();
  // Called again and again in a wait for `ranks`, not empty, in which nothing
  // has arrived since `since`.
  absl::Status Wait(const std::vector<int>& ranks, Clock::time_point since);
  // Of `ranks`, those without a sign of life for `timeout`; a little longer
  // for ranks that wait themselves, so that whoever they wait for is found out
  // first.
  std::vector<int> Silent(const std::vector<int>& ranks,
                          Clock::time_point since,
                          std::chrono::milliseconds timeout) const;
  // Whom a rank said to wait for, in the end; -1 if it did not say so.
  int AwaitedBy(int rank) const { return peer(rank).awaits; }

 private:
  struct Peer {
    Clock::time_point heard;  // in this wait
    bool is_asked = false;    // and has not answered
    bool asks = false;        // and has no answer yet
    bool is_fresh = false;    // heard since others were last told
    int awaits = -1;
  };

  Peer& peer(int rank) { return peers_[static_cast<size_t>(rank)]; }
  const Peer& peer(int rank) const { return peers_[static_cast<size_t>(rank)]; }
  // Takes in what has come.
  absl::Status Listen();
  absl::Status Answer();
  // Tells who asks for whom this rank waits, where that is news.
  absl::Status Excuse(const std::vector<int>& ranks);

  Transport& transport_;
  const Clock::duration ask_after_, grace_, answer_every_, listen_every_;
  Clock::time_point worked_, listened_;
  std::vector<Peer> peers_;
  int excuse_ = -1;  // what those who ask were told last
};

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_LIFE_SIGNS_H_
