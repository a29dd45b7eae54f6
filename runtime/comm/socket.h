// Connections between processes: TCP over IPv4.
#ifndef PARTITA_RUNTIME_COMM_SOCKET_H_
#define PARTITA_RUNTIME_COMM_SOCKET_H_

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace partita::comm {

using Deadline = std::chrono::steady_clock::time_point;

// The name of this machine.
std::string HostName();

// An open socket, closed by the destructor. Waits end with DeadlineExceeded at
// the deadline. Network errors are Unavailable, with the system's message.
class Socket {
 public:
  Socket() = default;
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket();

  // Listens at all addresses of this machine; port 0: any free port.
  static absl::StatusOr<Socket> Listen(int port);
  absl::StatusOr<Socket> Accept(Deadline deadline) const;
  // Tries once. Unavailable also if the connection reached itself.
  static absl::StatusOr<Socket> Connect(const std::string& host, int port,
                                        Deadline deadline);

  absl::Status Write(const void* data, size_t bytes, Deadline deadline) const;
  absl::Status Read(void* data, size_t bytes, Deadline deadline) const;
  // Reads available bytes, at most `bytes` and possibly 0; never waits.
  absl::StatusOr<size_t> ReadSome(void* data, size_t bytes) const;
  // True if the peer has closed the connection and all its data has been read.
  bool IsOver() const;
  // Waits until at least one socket has data or a connection to accept, or has
  // ended. Returns which. Polls once even after the deadline.
  static absl::StatusOr<std::vector<bool>> WaitToRead(
      const std::vector<const Socket*>& sockets, Deadline deadline);

  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  // Port of this end, and address of the peer.
  int port() const;
  std::string peer() const;

 private:
  explicit Socket(int fd) : fd_(fd) {}

  int fd_ = -1;
};

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_SOCKET_H_
