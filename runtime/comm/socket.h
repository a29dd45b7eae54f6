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

// An open socket, closed at the end. Its waits end with DeadlineExceeded at the
// deadline; what the network refuses is Unavailable, with the system's words.
class Socket {
 public:
  Socket() = default;
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket();

  // Listens at all addresses of this machine; port 0: any that is free.
  static absl::StatusOr<Socket> Listen(int port);
  absl::StatusOr<Socket> Accept(Deadline deadline) const;
  // One attempt. Unavailable too where a connection found nobody but itself.
  static absl::StatusOr<Socket> Connect(const std::string& host, int port,
                                        Deadline deadline);

  absl::Status Write(const void* data, size_t bytes, Deadline deadline) const;
  absl::Status Read(void* data, size_t bytes, Deadline deadline) const;
  // What has come, at most `bytes` and perhaps nothing; never waits.
  absl::StatusOr<size_t> ReadSome(void* data, size_t bytes) const;
  // The other end has closed it, and all that it said has been read.
  bool IsOver() const;
  // Until at least one has something to read, or to accept, or has ended:
  // which. Looks once even after the deadline.
  static absl::StatusOr<std::vector<bool>> WaitToRead(
      const std::vector<const Socket*>& sockets, Deadline deadline);

  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  // Of this end, and the address of the other.
  int port() const;
  std::string peer() const;

 private:
  explicit Socket(int fd) : fd_(fd) {}

  int fd_ = -1;
};

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_SOCKET_H_
