// Detects which ranks are alive when ranks exchange messages only.
//
// A waiting rank asks the ranks that it waits for. A working rank answers at
// once. A rank that waits itself answers only after all the ranks that it waits
// for have given a sign of life; until then it says for whom it waits. So signs
// of life originate at working ranks only, and ranks that wait for each other
// give none. Nobody asks before an eighth of the timeout has passed, and nobody
// answers more often than 16 times per timeout, so ranks that keep up with each
// other send nothing.
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

  // `transport` must outlive this object.
  LifeSigns(Transport& transport, std::chrono::milliseconds timeout);

  // Reports that this rank is working.
  absl::Status Work();

  // Begins a wait: earlier signs of life no longer count.
  absl::Status BeginWait();
  // Call repeatedly while waiting for `ranks` (not empty); nothing has arrived
  // from them since `since`.
  absl::Status Wait(const std::vector<int>& ranks, Clock::time_point since);
  // Returns the `ranks` without a sign of life for `timeout`. Ranks that wait
  // themselves get a little longer, so that the rank that they wait for is
  // found first.
  std::vector<int> Silent(const std::vector<int>& ranks,
                          Clock::time_point since,
                          std::chrono::milliseconds timeout) const;
  // The rank that `rank` ultimately waits for; -1 if it has not said.
  int AwaitedBy(int rank) const { return peer(rank).awaits; }

 private:
  struct Peer {
    Clock::time_point heard;  // last sign of life in this wait
    bool is_asked = false;    // this rank asked and has no answer yet
    bool asks = false;        // the peer asked and this rank has not answered
    bool is_fresh = false;    // heard since the last answer to others
    int awaits = -1;
  };

  Peer& peer(int rank) { return peers_[static_cast<size_t>(rank)]; }
  const Peer& peer(int rank) const { return peers_[static_cast<size_t>(rank)]; }
  // Receives pending signs.
  absl::Status Listen();
  absl::Status Answer();
  // Tells the ranks that asked whom this rank waits for, if that changed.
  absl::Status Excuse(const std::vector<int>& ranks);

  Transport& transport_;
  const Clock::duration ask_after_, grace_, answer_every_, listen_every_;
  Clock::time_point worked_, listened_;
  std::vector<Peer> peers_;
  int excuse_ = -1;  // rank last named to ranks that asked
};

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_LIFE_SIGNS_H_
