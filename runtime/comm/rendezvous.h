// How processes that know nothing but an address find each other.
//
// Rank 0 listens at it. The others come to it, each saying who it is and where
// it listens itself; when all are there, rank 0 tells everyone, and each pair
// connects. Who does not come in time is named by rank 0 to all that came.
#ifndef PARTITA_RUNTIME_COMM_RENDEZVOUS_H_
#define PARTITA_RUNTIME_COMM_RENDEZVOUS_H_

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/comm/socket.h"

namespace partita::comm {

struct Meeting {
  // "tcp://HOST:PORT", where rank 0 listens, or "file:///PATH", a file that all
  // ranks see, into which rank 0 writes where it listens.
  std::string address;
  int rank = 0;
  int size = 1;
  std::chrono::milliseconds timeout{60000};
};

struct Met {
  std::vector<Socket> sockets;     // to each rank; to the own one none
  std::vector<std::string> names;  // "node07, process 4711"
};

// InvalidArgument if the address is none, if two processes say that they are
// the same rank, or that there are different numbers of them;
// DeadlineExceeded, naming ranks, if some do not come within the timeout.
absl::StatusOr<Met> Meet(const Meeting& meeting);

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_RENDEZVOUS_H_
