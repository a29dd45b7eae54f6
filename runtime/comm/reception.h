// Accepts connections of a job's ranks; a silent connection cannot delay the
// others.
#ifndef PARTITA_RUNTIME_COMM_RECEPTION_H_
#define PARTITA_RUNTIME_COMM_RECEPTION_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>

#include "absl/status/statusor.h"
#include "runtime/comm/socket.h"

namespace partita::comm {

constexpr uint32_t kMagic = 0x32545250;  // "PRT2"
// Time limit for the hello of a new connection.
constexpr std::chrono::milliseconds kGreetingTime(5000);

// First message of every connection.
struct Hello {
  uint32_t magic = kMagic;
  int32_t rank = 0, size = 0;
  int32_t port = 0;    // this rank's listening port
  uint64_t nonce = 0;  // from the rendezvous file; 0 if there is none
  char name[96] = "";
};

struct Visitor {
  Socket socket;
  Hello hello;
};

class Reception {
 public:
  // `door` must outlive this object; `nonce` is that of the job.
  Reception(const Socket& door, uint64_t nonce) : door_(door), nonce_(nonce) {}

  // Returns the next connection that identified itself as part of this job.
  // Rejects connections that send anything else, or no complete hello within
  // kGreetingTime.
  absl::StatusOr<Visitor> Next(Deadline deadline);

 private:
  struct Caller {
    Visitor visitor;
    size_t heard = 0;  // bytes of the hello received so far
    Deadline end;
  };
  // Reads from a caller; false: drop it.
  bool Hear(Caller& caller) const;
  absl::Status LetIn();

  const Socket& door_;
  const uint64_t nonce_;
  std::list<Caller> callers_;  // incomplete hellos, oldest first
};

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_RECEPTION_H_
