// Who comes to a door and says who it is, without one who says nothing holding
// up the others.
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
// For somebody who connects and says nothing.
constexpr std::chrono::milliseconds kGreetingTime(5000);

// What whoever connects says first.
struct Hello {
  uint32_t magic = kMagic;
  int32_t rank = 0, size = 0;
  int32_t port = 0;    // where this rank listens
  uint64_t nonce = 0;  // of the file; 0 where there is none
  char name[96] = "";
};

struct Visitor {
  Socket socket;
  Hello hello;
};

class Reception {
 public:
  // `door` must outlive it; `nonce` is that of the job.
  Reception(const Socket& door, uint64_t nonce) : door_(door), nonce_(nonce) {}

  // The next of this job who has said so. Strangers are turned away: who says
  // something else, or not all of it within kGreetingTime.
  absl::StatusOr<Visitor> Next(Deadline deadline);

 private:
  struct Caller {
    Visitor visitor;
    size_t heard = 0;  // bytes of the hello
    Deadline end;
  };
  // Listens to one who has something to say; false: it is to go.
  bool Hear(Caller& caller) const;
  absl::Status LetIn();

  const Socket& door_;
  const uint64_t nonce_;
  std::list<Caller> callers_;  // who has not said all yet, longest first
};

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_RECEPTION_H_
