// Sockets never block: waits poll.
#include "runtime/comm/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace partita::comm {
namespace {

absl::Status ErrorOf(const std::string& doing, int error = errno) {
  return absl::UnavailableError(absl::StrCat(doing, ": ", strerror(error)));
}

// Polls once even after the deadline.
absl::Status WaitForAny(std::vector<pollfd>& wanted, Deadline deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    const int found =
        poll(wanted.data(), wanted.size(),
             static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1 << 30)));
    if (found > 0) return absl::OkStatus();
    if (found < 0 && errno != EINTR) return ErrorOf("waiting for a socket");
    if (left.count() <= 0)
      return absl::DeadlineExceededError("the time was not enough");
  }
}

absl::Status WaitFor(int fd, short events, Deadline deadline) {
  std::vector<pollfd> wanted = {{fd, events, 0}};
  return WaitForAny(wanted, deadline);
}

int OpenSocket() {
  return socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

// True if both ends of the connection are the same: nobody listens at the port,
// and the system picked that port for this connection.
bool IsItsOwnPeer(int fd) {
  sockaddr_in own = {}, other = {};
  socklen_t own_bytes = sizeof(own), other_bytes = sizeof(other);
  return getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_bytes) == 0 &&
         getpeername(fd, reinterpret_cast<sockaddr*>(&other), &other_bytes) ==
             0 &&
         own.sin_port == other.sin_port &&
         own.sin_addr.s_addr == other.sin_addr.s_addr;
}

}  // namespace

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<Socket> Socket::Listen(int port) {
  Socket made(OpenSocket());
  const int yes = 1;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (made.fd_ < 0 ||
      setsockopt(made.fd_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
      bind(made.fd_, reinterpret_cast<const sockaddr*>(&address),
           sizeof(address)) != 0 ||
      listen(made.fd_, SOMAXCONN) != 0)
    return ErrorOf(absl::StrCat("listening at port ", port));
  return made;
}

absl::StatusOr<Socket> Socket::Accept(Deadline deadline) const {
  for (;;) {
    PARTITA_RETURN_IF_ERROR(WaitFor(fd_, POLLIN, deadline));
    Socket made(accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (made.fd_ >= 0) {
      const int yes = 1;
      setsockopt(made.fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
      return made;
    }
    // The connection may be gone again.
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
      return ErrorOf("accepting a connection");
  }
}

absl::StatusOr<Socket> Socket::Connect(const std::string& host, int port,
                                       Deadline deadline) {
  const std::string where = absl::StrCat(host, ":", port);
  addrinfo hints = {};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  // A machine may not be able to resolve its own name.
  const std::string name = host == HostName() ? "127.0.0.1" : host;
  const int error =
      getaddrinfo(name.c_str(), absl::StrCat(port).c_str(), &hints, &found);
  if (error != 0)
    return absl::UnavailableError(
        absl::StrCat("looking up ", host, ": ", gai_strerror(error)));
  sockaddr_in address = {};
  std::memcpy(&address, found->ai_addr, sizeof(address));
  freeaddrinfo(found);
  Socket made(OpenSocket());
  if (made.fd_ < 0) return ErrorOf("connecting to " + where);
  if (connect(made.fd_, reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) != 0) {
    if (errno != EINPROGRESS) return ErrorOf("connecting to " + where);
    PARTITA_RETURN_IF_ERROR(WaitFor(made.fd_, POLLOUT, deadline));
    int failed = 0;
    socklen_t bytes = sizeof(failed);
    getsockopt(made.fd_, SOL_SOCKET, SO_ERROR, &failed, &bytes);
    if (failed != 0) return ErrorOf("connecting to " + where, failed);
  }
  if (IsItsOwnPeer(made.fd_)) {
    // Resets instead of closing: otherwise the intended listener would find the
    // port taken for a minute.
    const linger at_once = {1, 0};
    setsockopt(made.fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    return absl::UnavailableError(
        absl::StrCat("connecting to ", where, ": nobody listens there"));
  }
  const int yes = 1;
  setsockopt(made.fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  return made;
}

absl::Status Socket::Write(const void* data, size_t bytes,
                           Deadline deadline) const {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(fd_, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR)
      return ErrorOf("sending");
    if (sent < 0) {
      PARTITA_RETURN_IF_ERROR(WaitFor(fd_, POLLOUT, deadline));
      continue;
    }
    at += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return absl::OkStatus();
}

absl::Status Socket::Read(void* data, size_t bytes, Deadline deadline) const {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = recv(fd_, at, bytes, 0);
    if (got == 0) return absl::UnavailableError("the connection was closed");
    if (got < 0 && errno != EAGAIN && errno != EINTR)
      return ErrorOf("receiving");
    if (got < 0) {
      PARTITA_RETURN_IF_ERROR(WaitFor(fd_, POLLIN, deadline));
      continue;
    }
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> Socket::ReadSome(void* data, size_t bytes) const {
  const ssize_t got = recv(fd_, data, bytes, 0);
  if (got == 0 && bytes > 0)
    return absl::UnavailableError("the connection was closed");
  if (got < 0 && errno != EAGAIN && errno != EINTR) return ErrorOf("receiving");
  return static_cast<size_t>(std::max<ssize_t>(got, 0));
}

bool Socket::IsOver() const {
  char next;
  const ssize_t got = recv(fd_, &next, 1, MSG_PEEK);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

absl::StatusOr<std::vector<bool>> Socket::WaitToRead(
    const std::vector<const Socket*>& sockets, Deadline deadline) {
  std::vector<pollfd> wanted;
  for (const Socket* socket : sockets)
    wanted.push_back({socket->fd_, POLLIN, 0});
  PARTITA_RETURN_IF_ERROR(WaitForAny(wanted, deadline));
  std::vector<bool> ready;
  for (const pollfd& one : wanted) ready.push_back(one.revents != 0);
  return ready;
}

int Socket::port() const {
  sockaddr_in address = {};
  socklen_t bytes = sizeof(address);
  getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &bytes);
  return ntohs(address.sin_port);
}

std::string Socket::peer() const {
  sockaddr_in address = {};
  socklen_t bytes = sizeof(address);
  getpeername(fd_, reinterpret_cast<sockaddr*>(&address), &bytes);
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &address.sin_addr, text, sizeof(text));
  return text;
}

}  // namespace partita::comm
