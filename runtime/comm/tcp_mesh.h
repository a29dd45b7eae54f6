// Exchanges messages over the connections of rendezvous.h.
//
// A connection carries frames: a 16-byte header (kind, stream or number,
// length), then `length` bytes. Data is read and written only inside calls;
// none of them waits, except Fail and Finish. A message that is not expected
// yet is stored, so that no stream blocks another.
#ifndef PARTITA_RUNTIME_COMM_TCP_MESH_H_
#define PARTITA_RUNTIME_COMM_TCP_MESH_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/rendezvous.h"

namespace partita::comm {

// One rank's connections. Used by one thread at a time. Functions with the
// names of Transport's do the same.
class TcpMesh {
 public:
  TcpMesh(int rank, Met met);
  TcpMesh(const TcpMesh&) = delete;
  ~TcpMesh();

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(links_.size()); }
  std::string Describe(int rank) const;

  absl::StatusOr<void*> Send(const void* data, int64_t bytes, int to,
                             int stream);
  absl::StatusOr<void*> Receive(void* data, int64_t bytes, int from,
                                int stream);
  absl::StatusOr<bool> Test(void* request);
  struct Sign {
    int number, rank;
  };
  absl::Status SendSign(int number, int to);
  absl::StatusOr<std::optional<Sign>> NextSign();

  // Fails also if a rank has closed its connection without a farewell.
  absl::Status Health();
  // Tells the others why this rank ends; if another rank is the cause, relays
  // that rank's message. Waits at most 1 s.
  void Fail(const std::string& why);
  // Sends a farewell to all ranks and waits for theirs; discards messages that
  // arrive meanwhile.
  absl::Status Finish(std::chrono::milliseconds timeout);

 private:
  struct Request {
    char* data = nullptr;  // target of a receive
    int64_t bytes = 0;
    bool done = false;
  };
  struct Header {
    uint32_t kind = 0;
    int32_t value = 0;  // a stream, or a sign's number
    int64_t bytes = 0;
  };
  struct Outgoing {
    Header header;
    const char* data = nullptr;
    std::string own;             // owned data, if `data` is not the caller's
    int64_t sent = 0;            // bytes of header and data sent so far
    Request* request = nullptr;  // done once it is sent
  };
  // A message that began to arrive before it was expected.
  struct Arrival {
    int64_t bytes = 0;
    std::string data;  // bytes received so far, and capacity for more
    bool whole = false;
    Request* claimed_by = nullptr;
  };
  struct Inbox {
    std::deque<Request*> expected;
    std::deque<std::unique_ptr<Arrival>> arrivals;
  };
  struct Link {
    Socket socket;
    std::string name;
    std::deque<Outgoing> outgoing;
    std::map<int, Inbox> inboxes;  // by stream
    // The frame being read: the header, then its bytes.
    Header header;
    int64_t got = 0;                 // bytes received of header and body
    Request* request = nullptr;      // target of the body, or
    std::string* growing = nullptr;  // buffer that stores the body, or neither
    std::string text;
    bool parted = false;
  };

  Request* Keep(Request request);
  void Post(Link& link, Header header, const char* data, std::string own,
            Request* request);
  void Pump();
  void Flush(Link& link, int rank);
  void ReadFrom(Link& link, int rank);
  absl::StatusOr<std::pair<char*, int64_t>> Room(Link& link, int rank);
  void BeginFrame(Link& link, int rank);
  void EndFrame(Link& link, int rank);
  void Deliver(Inbox& inbox, int rank);
  absl::Status Nonsense(int rank) const;
  absl::Status WrongSize(int rank, int64_t expected, int64_t found) const;
  void Lost(Link& link, int rank);
  void SetFailure(absl::Status failure);

  const int rank_;
  std::vector<Link> links_;  // by rank; the local rank's is not connected
  std::map<Request*, std::unique_ptr<Request>> requests_;
  std::deque<Sign> signs_;
  absl::Status health_;
  bool told_ = false;     // the others know why this rank ends
  bool parting_ = false;  // in Finish
};

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_TCP_MESH_H_
