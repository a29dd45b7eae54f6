// Reads frames straight into the memory of expected messages.
#include "runtime/comm/tcp_mesh.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <thread>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace partita::comm {
namespace {

using Clock = std::chrono::steady_clock;

// A relayed failure names its rank itself.
enum Kind : uint32_t { kMessage = 1, kSign, kFailure, kRelayed, kFarewell };
constexpr int64_t kMostText = 64 << 10;
constexpr int64_t kMostBytes = int64_t{1} << 40;
// For an unexpected message; the buffer doubles as the message arrives.
constexpr int64_t kFirstRoom = 1 << 20;

}  // namespace

TcpMesh::TcpMesh(int rank, Met met) : rank_(rank), links_(met.sockets.size()) {
  for (size_t i = 0; i < links_.size(); ++i) {
    links_[i].socket = std::move(met.sockets[i]);
    links_[i].name = std::move(met.names[i]);
  }
}

TcpMesh::~TcpMesh() = default;

std::string TcpMesh::Describe(int rank) const {
  return absl::StrCat("rank ", rank, " (",
                      links_[static_cast<size_t>(rank)].name, ")");
}

TcpMesh::Request* TcpMesh::Keep(Request request) {
  auto kept = std::make_unique<Request>(request);
  Request* const key = kept.get();
  requests_[key] = std::move(kept);
  return key;
}

void TcpMesh::SetFailure(absl::Status failure) {
  if (health_.ok()) health_ = std::move(failure);
}

void TcpMesh::Post(Link& link, Header header, const char* data, std::string own,
                   Request* request) {
  link.outgoing.push_back({header, data, std::move(own), 0, request});
  Outgoing& last = link.outgoing.back();
  if (!last.own.empty()) last.data = last.own.data();
  Flush(link, static_cast<int>(&link - links_.data()));
}

absl::StatusOr<void*> TcpMesh::Send(const void* data, int64_t bytes, int to,
                                    int stream) {
  PARTITA_RETURN_IF_ERROR(health_);
  Request* const request = Keep({});
  Link& link = links_[static_cast<size_t>(to)];
  if (to == rank_) {
    Inbox& inbox = link.inboxes[stream];
    inbox.arrivals.push_back(std::make_unique<Arrival>());
    Arrival& arrival = *inbox.arrivals.back();
    arrival.data.assign(static_cast<const char*>(data),
                        static_cast<size_t>(bytes));
    arrival.bytes = bytes;
    arrival.whole = true;
    Deliver(inbox, rank_);
    request->done = true;
  } else {
    Post(link, {kMessage, stream, bytes}, static_cast<const char*>(data), "",
         request);
  }
  return static_cast<void*>(request);
}

absl::StatusOr<void*> TcpMesh::Receive(void* data, int64_t bytes, int from,
                                       int stream) {
  PARTITA_RETURN_IF_ERROR(health_);
  Request* const request = Keep({static_cast<char*>(data), bytes, false});
  Inbox& inbox = links_[static_cast<size_t>(from)].inboxes[stream];
  inbox.expected.push_back(request);
  Deliver(inbox, from);
  return static_cast<void*>(request);
}

absl::Status TcpMesh::Nonsense(int rank) const {
  return absl::InternalError(
      absl::StrCat("what ", Describe(rank), " sends makes no sense"));
}

absl::Status TcpMesh::WrongSize(int rank, int64_t expected,
                                int64_t found) const {
  return absl::InternalError(absl::StrCat("expected a message of ", expected,
                                          " bytes from ", Describe(rank),
                                          ", found one of ", found));
}

// Matches arrived and arriving messages with expectations, in order.
void TcpMesh::Deliver(Inbox& inbox, int rank) {
  for (const auto& arrival : inbox.arrivals) {
    if (arrival->claimed_by == nullptr && !inbox.expected.empty()) {
      arrival->claimed_by = inbox.expected.front();
      inbox.expected.pop_front();
    }
    Request* const request = arrival->claimed_by;
    if (request == nullptr || request->done) continue;
    if (arrival->bytes != request->bytes)
      return SetFailure(WrongSize(rank, request->bytes, arrival->bytes));
    if (!arrival->whole) continue;
    std::memcpy(request->data, arrival->data.data(), arrival->data.size());
    request->done = true;
  }
  while (!inbox.arrivals.empty() && inbox.arrivals.front()->whole &&
         inbox.arrivals.front()->claimed_by != nullptr)
    inbox.arrivals.pop_front();
}

absl::StatusOr<bool> TcpMesh::Test(void* key) {
  Request* const request = static_cast<Request*>(key);
  if (!request->done) Pump();
  if (request->done) {
    requests_.erase(request);
    return true;
  }
  PARTITA_RETURN_IF_ERROR(health_);
  return false;
}

absl::Status TcpMesh::SendSign(int number, int to) {
  PARTITA_RETURN_IF_ERROR(health_);
  if (to == rank_) {
    signs_.push_back({number, to});
  } else {
    Post(links_[static_cast<size_t>(to)], {kSign, number, 0}, nullptr, "",
         nullptr);
  }
  return health_;
}

absl::StatusOr<std::optional<TcpMesh::Sign>> TcpMesh::NextSign() {
  Pump();
  PARTITA_RETURN_IF_ERROR(health_);
  if (signs_.empty()) return std::optional<Sign>();
  const Sign sign = signs_.front();
  signs_.pop_front();
  return std::optional<Sign>(sign);
}

absl::Status TcpMesh::Health() {
  Pump();
  return health_;
}

// Reads and writes all that is possible without waiting.
void TcpMesh::Pump() {
  std::vector<pollfd> polls;
  std::vector<int> ranks;
  for (int rank = 0; rank < size(); ++rank) {
    const Link& link = links_[static_cast<size_t>(rank)];
    if (!link.socket.is_open()) continue;
    const int events = POLLIN | (link.outgoing.empty() ? 0 : POLLOUT);
    polls.push_back({link.socket.fd(), static_cast<short>(events), 0});
    ranks.push_back(rank);
  }
  if (polls.empty() || poll(polls.data(), polls.size(), 0) <= 0) return;
  for (size_t i = 0; i < polls.size(); ++i) {
    Link& link = links_[static_cast<size_t>(ranks[i])];
    if ((polls[i].revents & POLLOUT) != 0) Flush(link, ranks[i]);
    if ((polls[i].revents & ~POLLOUT) != 0 && link.socket.is_open())
      ReadFrom(link, ranks[i]);
  }
}

void TcpMesh::Flush(Link& link, int rank) {
  while (!link.outgoing.empty() && link.socket.is_open()) {
    Outgoing& next = link.outgoing.front();
    constexpr int64_t kHead = sizeof(Header);
    const int64_t head_left = std::max<int64_t>(kHead - next.sent, 0);
    const int64_t body_at = std::max<int64_t>(next.sent - kHead, 0);
    const int64_t whole = kHead + next.header.bytes;
    iovec parts[2] = {
        {reinterpret_cast<char*>(&next.header) + (kHead - head_left),
         static_cast<size_t>(head_left)},
        {const_cast<char*>(next.data) + body_at,
         static_cast<size_t>(next.header.bytes - body_at)}};
    msghdr message = {};
    message.msg_iov = head_left > 0 ? parts : parts + 1;
    message.msg_iovlen = head_left > 0 ? (next.header.bytes > 0 ? 2 : 1) : 1;
    const ssize_t sent = sendmsg(link.socket.fd(), &message, MSG_NOSIGNAL);
    if (sent < 0) {
      // Data that the other end sent before it closed is still to be read.
      if (errno == EPIPE || errno == ECONNRESET) ReadFrom(link, rank);
      return;
    }
    next.sent += sent;
    if (next.sent < whole) continue;
    if (next.request != nullptr) next.request->done = true;
    link.outgoing.pop_front();
  }
}

// Returns the address and size for the next bytes of a frame. Memory grows with
// the bytes received, not with the announced size.
absl::StatusOr<std::pair<char*, int64_t>> TcpMesh::Room(Link& link, int rank) {
  constexpr int64_t kHead = sizeof(Header);
  if (link.got < kHead)
    return std::pair(reinterpret_cast<char*>(&link.header) + link.got,
                     kHead - link.got);
  const int64_t at = link.got - kHead;
  const int64_t left = link.header.bytes - at;
  if (link.request != nullptr) return std::pair(link.request->data + at, left);
  try {
    if (link.growing == nullptr) {
      link.text.resize(static_cast<size_t>(std::min(left, kMostText)));
      return std::pair(link.text.data(),
                       static_cast<int64_t>(link.text.size()));
    }
    std::string& kept = *link.growing;
    if (static_cast<int64_t>(kept.size()) == at)
      kept.resize(static_cast<size_t>(
          std::min(link.header.bytes, std::max(2 * at, kFirstRoom))));
    return std::pair(kept.data() + at, static_cast<int64_t>(kept.size()) - at);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory is left for a message of ", link.header.bytes,
                     " bytes from ", Describe(rank), ", of which ", at,
                     " have come; use fewer devices per machine, or smaller "
                     "microbatches"));
  }
}

void TcpMesh::ReadFrom(Link& link, int rank) {
  constexpr int64_t kHead = sizeof(Header);
  while (health_.ok()) {
    const bool in_head = link.got < kHead;
    const auto room = Room(link, rank);
    if (!room.ok()) return SetFailure(room.status());
    const ssize_t got = recv(link.socket.fd(), room->first,
                             static_cast<size_t>(room->second), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return Lost(link, rank);
    link.got += got;
    if (in_head && link.got == kHead) BeginFrame(link, rank);
    if (health_.ok() && link.got >= kHead &&
        link.got == kHead + link.header.bytes)
      EndFrame(link, rank);
  }
}

void TcpMesh::BeginFrame(Link& link, int rank) {
  const Header& header = link.header;
  link.request = nullptr;
  link.growing = nullptr;
  const bool is_message = header.kind == kMessage;
  if (header.bytes < 0 || header.bytes > (is_message ? kMostBytes : kMostText))
    return SetFailure(Nonsense(rank));
  if (!is_message) {
    link.text.clear();
    link.growing = &link.text;
    return;
  }
  if (parting_) return;
  Inbox& inbox = link.inboxes[header.value];
  if (!inbox.expected.empty()) {
    Request* const request = inbox.expected.front();
    if (request->bytes != header.bytes)
      return SetFailure(WrongSize(rank, request->bytes, header.bytes));
    link.request = request;
    inbox.expected.pop_front();
    return;
  }
  inbox.arrivals.push_back(std::make_unique<Arrival>());
  inbox.arrivals.back()->bytes = header.bytes;
  link.growing = &inbox.arrivals.back()->data;
}

void TcpMesh::EndFrame(Link& link, int rank) {
  link.got = 0;
  switch (link.header.kind) {
    case kMessage:
      if (link.request != nullptr) {
        link.request->done = true;
      } else if (!parting_) {
        Inbox& inbox = link.inboxes[link.header.value];
        inbox.arrivals.back()->whole = true;
        Deliver(inbox, rank);
      }
      return;
    case kSign:
      signs_.push_back({link.header.value, rank});
      return;
    case kFailure:
      return SetFailure(
          absl::AbortedError(absl::StrCat(Describe(rank), ": ", link.text)));
    case kRelayed:
      return SetFailure(absl::AbortedError(link.text));
    case kFarewell:
      link.parted = true;
      return;
    default:
      return SetFailure(Nonsense(rank));
  }
}

void TcpMesh::Lost(Link& link, int rank) {
  link.socket = Socket();
  if (link.parted) return;
  SetFailure(absl::UnavailableError(
      absl::StrCat(Describe(rank),
                   " has ended: its connection was closed; what it said "
                   "last tells why")));
}

void TcpMesh::Fail(const std::string& why) {
  if (told_) return;
  told_ = true;
  // The cause may reach other ranks later than the end of this rank.
  const uint32_t kind = health_.ok() ? kFailure : kRelayed;
  const std::string text = (health_.ok() ? why : std::string(health_.message()))
                               .substr(0, static_cast<size_t>(kMostText));
  for (Link& link : links_)
    if (link.socket.is_open())
      Post(link, {kind, 0, static_cast<int64_t>(text.size())}, nullptr, text,
           nullptr);
  const Clock::time_point end = Clock::now() + std::chrono::seconds(1);
  const auto is_sent = [](const Link& link) {
    return link.outgoing.empty() || !link.socket.is_open();
  };
  while (!std::all_of(links_.begin(), links_.end(), is_sent) &&
         Clock::now() < end) {
    for (Link& link : links_)
      Flush(link, static_cast<int>(&link - links_.data()));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

absl::Status TcpMesh::Finish(std::chrono::milliseconds timeout) {
  PARTITA_RETURN_IF_ERROR(health_);
  const Clock::time_point end = Clock::now() + timeout;
  for (Link& link : links_)
    if (link.socket.is_open())
      Post(link, {kFarewell, 0, 0}, nullptr, "", nullptr);
  parting_ = true;
  std::string missing;
  do {
    Pump();
    PARTITA_RETURN_IF_ERROR(health_);
    missing.clear();
    for (int rank = 0; rank < size(); ++rank) {
      const Link& link = links_[static_cast<size_t>(rank)];
      const bool is_done =
          link.parted && (link.outgoing.empty() || !link.socket.is_open());
      if (rank != rank_ && !is_done)
        absl::StrAppend(&missing, missing.empty() ? "" : ", ", Describe(rank));
    }
    if (missing.empty()) return absl::OkStatus();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } while (Clock::now() < end);
  return absl::UnavailableError(absl::StrCat(
      missing, " did not come to the end within ", timeout.count(), " ms"));
}

}  // namespace partita::comm
