// Connects processes that know only a common address.
//
// Rank 0 listens at the address. Every other rank connects to it and sends its
// rank and the port at which it listens. Once all have arrived, rank 0 sends
// everyone the list, and each pair connects. If some do not arrive in time,
// rank 0 names them to all others.
#ifndef PARTITA_RUNTIME_COMM_RENDEZVOUS_H_
#define PARTITA_RUNTIME_COMM_RENDEZVOUS_H_

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/comm/socket.h"

namespace partita::comm {

struct Meeting {
  // "tcp://HOST:PORT", where rank 0 listens, or "file:///PATH", a file visible
  // to all ranks, to which rank 0 writes its listening address.
  std::string address;
  int rank = 0;
  int size = 1;
  std::chrono::milliseconds timeout{60000};
};

struct Met {
  std::vector<Socket> sockets;     // by rank; the local rank's is not open
  std::vector<std::string> names;  // "node07, process 4711"
};

// InvalidArgument if the address is malformed, if two processes claim the same
// rank, or if they disagree on the number of ranks. DeadlineExceeded, naming
// the missing ranks, if some do not arrive within the timeout.
absl::StatusOr<Met> Meet(const Meeting& meeting);

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_RENDEZVOUS_H_
