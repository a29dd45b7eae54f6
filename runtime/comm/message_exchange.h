// Collectives whose pieces are known in advance, as messages between members.
#ifndef PARTITA_RUNTIME_COMM_MESSAGE_EXCHANGE_H_
#define PARTITA_RUNTIME_COMM_MESSAGE_EXCHANGE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/operation.h"
#include "runtime/comm/rows.h"

namespace partita::comm {

// Data that this member and another exchange.
struct Peer {
  Box outgoing;              // from this member's input into the peer's output
  Box incoming;              // from the peer's input into this member's output
  int64_t outgoing_at = -1;  // offset in scratch; negative: sent from the input
  // Offset in scratch; negative: received in the output.
  int64_t incoming_at = -1;
};

class MessageCollective : public Collective {
 public:
  // Finds the pieces and their places in scratch.
  MessageCollective(Operation operation, std::vector<int> ranks, int index);

  const std::vector<Peer>& peers() const { return peers_; }
  int64_t scratch_bytes() const { return scratch_bytes_; }

 private:
  std::vector<Peer> peers_;  // by index in the group, this member included
  int64_t scratch_bytes_ = 0;
};

// Runs an all-reduce. `scratch` has the collective's bytes.
// Errors are the channel's.
absl::Status AllReduce(const MessageCollective& collective, const char* input,
                       char* output, char* scratch,
                       const MemberChannel& channel);

// Runs any other collective but transfers and rows.
absl::Status Exchange(const MessageCollective& collective, const char* input,
                      char* output, char* scratch,
                      const MemberChannel& channel);

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_MESSAGE_EXCHANGE_H_
