// The rendezvous protocol: messages are structures of fixed size.
#include "runtime/comm/rendezvous.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <random>
#include <sstream>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/reception.h"

namespace partita::comm {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Rank 0's reply to a hello.
struct Welcome {
  uint32_t magic = kMagic;
};
// Followed by one seat per rank, or by `bytes` of error text.
struct Verdict {
  uint32_t magic = kMagic;
  int32_t size = 0;
  uint32_t is_ok = 0;
  uint32_t bytes = 0;
};
constexpr uint32_t kMostText = 64 << 10;
struct Seat {
  char address[64] = "";  // as seen by rank 0
  int32_t port = 0;
  char name[96] = "";
};

struct Place {
  std::string host;
  int port = 0;
  uint64_t nonce = 0;
};

// Rank 0's listening address, given directly or by a file. Empty if the file
// does not exist yet.
struct Address {
  std::string file;  // empty: the place is known
  Place place;

  std::optional<Place> Find() const {
    if (file.empty()) return place;
    std::ifstream in(file);
    Place found;
    if (!(in >> found.host >> found.port >> found.nonce)) return std::nullopt;
    return found;
  }
};

absl::StatusOr<Address> ParseAddress(const std::string& text) {
  Address address;
  const std::string tcp = "tcp://", file = "file://";
  if (text.rfind(file, 0) == 0 && text.size() > file.size()) {
    address.file = text.substr(file.size());
    return address;
  }
  const size_t colon = text.rfind(':');
  if (text.rfind(tcp, 0) == 0 && colon > tcp.size() &&
      absl::SimpleAtoi(text.substr(colon + 1), &address.place.port) &&
      address.place.port > 0 && address.place.port < 65536) {
    address.place.host = text.substr(tcp.size(), colon - tcp.size());
    return address;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("expected tcp://HOST:PORT or file:///PATH as the address "
                   "where processes meet, found '",
                   text, "'"));
}

std::string Seconds(milliseconds time) {
  return absl::StrCat(static_cast<double>(time.count()) / 1000, " s");
}

Hello MakeHello(const Meeting& meeting, int port, uint64_t nonce) {
  Hello hello;
  hello.rank = meeting.rank;
  hello.size = meeting.size;
  hello.port = port;
  hello.nonce = nonce;
  const std::string name = absl::StrCat(HostName(), ", process ", getpid());
  std::strncpy(hello.name, name.c_str(), sizeof(hello.name) - 1);
  return hello;
}

// Collects the connections of all ranks, on rank 0.
class Host {
 public:
  Host(const Meeting& meeting, uint64_t nonce)
      : meeting_(meeting),
        nonce_(nonce),
        seats_(static_cast<size_t>(meeting.size)) {
    met_.sockets.resize(seats_.size());
    met_.names.resize(seats_.size());
    met_.names[0] = MakeHello(meeting, 0, 0).name;
    std::strncpy(seats_[0].name, met_.names[0].c_str(),
                 sizeof(seats_[0].name) - 1);
  }

  absl::StatusOr<Met> Collect(const Socket& door, Deadline deadline) {
    absl::Status status;
    Reception reception(door, nonce_);
    for (int left = meeting_.size - 1; left > 0 && status.ok();) {
      absl::StatusOr<Visitor> guest = reception.Next(deadline);
      if (!guest.ok()) {
        status = absl::IsDeadlineExceeded(guest.status()) ? Missing()
                                                          : guest.status();
        break;
      }
      // A rank that waited too long has gone, and connects again.
      const Welcome welcome;
      if (guest->socket.IsOver() ||
          !guest->socket.Write(&welcome, sizeof(welcome), Clock::now()).ok())
        continue;
      status = Check(guest->hello);
      // The rejected rank gets the error, as do the ranks accepted before.
      if (!status.ok()) rejected_ = std::move(guest->socket);
      if (!status.ok()) break;
      if (Take(*std::move(guest))) --left;
    }
    const absl::Status told = Tell(status);
    if (!status.ok()) return status;
    PARTITA_RETURN_IF_ERROR(told);
    return std::move(met_);
  }

 private:
  absl::Status Check(const Hello& hello) const {
    if (hello.size != meeting_.size || hello.rank <= 0 ||
        hello.rank >= meeting_.size)
      return absl::InvalidArgumentError(absl::StrCat(
          "rank 0 (", met_.names[0], ") was started as one of ", meeting_.size,
          " processes, found rank ", hello.rank, " of ", hello.size, " (",
          hello.name, ") at ", meeting_.address,
          "; start all with the same WORLD_SIZE, and each job with an address "
          "of its own"));
    const size_t rank = static_cast<size_t>(hello.rank);
    // A rank that has gone may connect again.
    if (met_.sockets[rank].is_open() && !met_.sockets[rank].IsOver())
      return absl::InvalidArgumentError(
          absl::StrCat("two processes say that they are rank ", hello.rank,
                       ": ", met_.names[rank], " and ", hello.name,
                       "; give each a RANK of its own"));
    return absl::OkStatus();
  }

  // Returns true if that rank was not present yet.
  bool Take(Visitor guest) {
    const Hello& hello = guest.hello;
    const size_t rank = static_cast<size_t>(hello.rank);
    Seat& seat = seats_[rank];
    std::strncpy(seat.address, guest.socket.peer().c_str(),
                 sizeof(seat.address) - 1);
    std::strncpy(seat.name, hello.name, sizeof(seat.name) - 1);
    seat.port = hello.port;
    met_.names[rank] = hello.name;
    const bool is_new = !met_.sockets[rank].is_open();
    met_.sockets[rank] = std::move(guest.socket);
    return is_new;
  }

  absl::Status Missing() const {
    std::vector<int> missing;
    for (int rank = 1; rank < meeting_.size; ++rank)
      if (!met_.sockets[static_cast<size_t>(rank)].is_open())
        missing.push_back(rank);
    return absl::DeadlineExceededError(absl::StrCat(
        missing.size() == 1 ? "rank " : "ranks ", absl::StrJoin(missing, ", "),
        " of ", meeting_.size, " did not come to ", meeting_.address,
        " within ", Seconds(meeting_.timeout),
        "; see whether they were started and what they said last, or give them "
        "more time with --timeout"));
  }

  // Names a rank that has gone in the meantime.
  absl::Status Tell(const absl::Status& status) const {
    const std::string text(status.message());
    const Deadline soon = Clock::now() + kGreetingTime;
    absl::Status told;
    const auto tell = [&](const Socket& guest) {
      const Verdict verdict = {kMagic, meeting_.size, status.ok(),
                               static_cast<uint32_t>(text.size())};
      PARTITA_RETURN_IF_ERROR(guest.Write(&verdict, sizeof(verdict), soon));
      return status.ok() ? guest.Write(seats_.data(),
                                       seats_.size() * sizeof(Seat), soon)
                         : guest.Write(text.data(), text.size(), soon);
    };
    for (size_t rank = 1; rank < met_.sockets.size(); ++rank) {
      if (!met_.sockets[rank].is_open()) continue;
      const absl::Status found = tell(met_.sockets[rank]);
      if (!found.ok())
        told.Update(absl::UnavailableError(
            absl::StrCat("rank ", rank, " (", met_.names[rank],
                         ") has ended: ", std::string(found.message()))));
    }
    if (rejected_.is_open()) tell(rejected_).IgnoreError();
    return told;
  }

  const Meeting& meeting_;
  const uint64_t nonce_;
  std::vector<Seat> seats_;
  Met met_;
  Socket rejected_;
};

absl::StatusOr<Met> MeetAsFirst(const Meeting& meeting, const Address& address,
                                Deadline deadline) {
  absl::StatusOr<Socket> door = Socket::Listen(address.place.port);
  if (!door.ok())
    return absl::UnavailableError(absl::StrCat(
        std::string(door.status().message()), " (", meeting.address,
        "): another program may be there; choose another port"));
  if (address.file.empty()) return Host(meeting, 0).Collect(*door, deadline);
  std::random_device random;
  const uint64_t nonce = (uint64_t{random()} << 32 | random()) | 1;
  // Readers see all of the file or nothing.
  const std::string part = absl::StrCat(address.file, ".", getpid());
  std::ofstream(part) << HostName() << " " << door->port() << " " << nonce
                      << "\n";
  if (std::rename(part.c_str(), address.file.c_str()) != 0)
    return absl::UnavailableError(
        absl::StrCat("cannot write ", address.file,
                     ", where processes are to meet: ", strerror(errno)));
  absl::StatusOr<Met> met = Host(meeting, nonce).Collect(*door, deadline);
  std::remove(address.file.c_str());
  return met;
}

// Rank 0's verdict, and the place where it was found.
struct Answer {
  Socket socket;
  Place place;
  std::vector<Seat> seats;
};

absl::Status NotRankZero(const Place& place) {
  return absl::UnavailableError(absl::StrCat("what answers at ", place.host,
                                             ":", place.port,
                                             " is not rank 0 of this program"));
}

// Tries once; Unavailable if another attempt makes sense.
absl::StatusOr<Answer> AskFirst(const Meeting& meeting, const Address& address,
                                int port, Deadline deadline) {
  const std::optional<Place> place = address.Find();
  if (!place)
    return absl::UnavailableError(
        absl::StrCat("there is no file ", address.file));
  Answer answer;
  answer.place = *place;
  PARTITA_ASSIGN_OR_RETURN(answer.socket,
                           Socket::Connect(place->host, place->port, deadline));
  const Hello hello = MakeHello(meeting, port, place->nonce);
  PARTITA_RETURN_IF_ERROR(answer.socket.Write(&hello, sizeof(hello), deadline));
  // Another program may listen there and never answer: the file may be from a
  // rank 0 that was killed.
  Welcome welcome;
  const absl::Status heard =
      answer.socket.Read(&welcome, sizeof(welcome),
                         std::min(deadline, Clock::now() + kGreetingTime));
  if (absl::IsDeadlineExceeded(heard)) return NotRankZero(*place);
  PARTITA_RETURN_IF_ERROR(heard);
  if (welcome.magic != kMagic) return NotRankZero(*place);
  // Rank 0 may have begun to wait a little later.
  const Deadline later = deadline + kGreetingTime;
  Verdict verdict;
  PARTITA_RETURN_IF_ERROR(answer.socket.Read(&verdict, sizeof(verdict), later));
  if (verdict.magic != kMagic || verdict.bytes > kMostText)
    return NotRankZero(*place);
  if (verdict.is_ok == 0) {
    std::string text(verdict.bytes, '\0');
    PARTITA_RETURN_IF_ERROR(
        answer.socket.Read(text.data(), text.size(), later));
    return absl::FailedPreconditionError(text);
  }
  if (verdict.size != meeting.size) return NotRankZero(*place);
  answer.seats.resize(static_cast<size_t>(meeting.size));
  PARTITA_RETURN_IF_ERROR(answer.socket.Read(
      answer.seats.data(), answer.seats.size() * sizeof(Seat), later));
  return answer;
}

absl::StatusOr<Met> MeetAsGuest(const Meeting& meeting, const Address& address,
                                Deadline deadline) {
  PARTITA_ASSIGN_OR_RETURN(const Socket door, Socket::Listen(0));
  absl::StatusOr<Answer> answer = absl::UnavailableError("");
  while (absl::IsUnavailable(answer.status()) && Clock::now() < deadline) {
    answer = AskFirst(meeting, address, door.port(), deadline);
    if (absl::IsUnavailable(answer.status()))
      std::this_thread::sleep_for(milliseconds(50));
  }
  if (absl::IsFailedPrecondition(answer.status())) return answer.status();
  if (!answer.ok())
    return absl::DeadlineExceededError(absl::StrCat(
        "rank 0 was not found at ", meeting.address, " within ",
        Seconds(meeting.timeout), ": ", std::string(answer.status().message()),
        "; see whether it was started there and what it said last"));
  Met met;
  met.sockets.resize(static_cast<size_t>(meeting.size));
  for (Seat& seat : answer->seats) {
    seat.address[sizeof(seat.address) - 1] = '\0';
    seat.name[sizeof(seat.name) - 1] = '\0';
    met.names.push_back(seat.name);
  }
  met.sockets[0] = std::move(answer->socket);
  const Hello hello = MakeHello(meeting, 0, answer->place.nonce);
  const auto lost = [&](size_t rank, const absl::Status& status) {
    return absl::UnavailableError(
        absl::StrCat("rank ", rank, " (", met.names[rank],
                     ") cannot be reached: ", std::string(status.message())));
  };
  const Deadline end = Clock::now() + meeting.timeout;
  for (size_t rank = 1; rank < static_cast<size_t>(meeting.rank); ++rank) {
    const Seat& seat = answer->seats[rank];
    // Rank 0 sees its own machine as 127.0.0.1; others see it at rank 0's host.
    const std::string host = std::string(seat.address) == "127.0.0.1"
                                 ? answer->place.host
                                 : seat.address;
    absl::StatusOr<Socket> other = Socket::Connect(host, seat.port, end);
    if (!other.ok()) return lost(rank, other.status());
    const absl::Status said = other->Write(&hello, sizeof(hello), end);
    if (!said.ok()) return lost(rank, said);
    met.sockets[rank] = *std::move(other);
  }
  Reception reception(door, hello.nonce);
  for (int left = meeting.size - 1 - meeting.rank; left > 0;) {
    absl::StatusOr<Visitor> other = reception.Next(end);
    if (!other.ok()) {
      size_t rank = static_cast<size_t>(meeting.rank) + 1;
      while (met.sockets[rank].is_open()) ++rank;
      return lost(rank, other.status());
    }
    const int rank = other->hello.rank;
    if (rank <= meeting.rank || rank >= meeting.size ||
        met.sockets[static_cast<size_t>(rank)].is_open())
      continue;
    met.sockets[static_cast<size_t>(rank)] = std::move(other->socket);
    --left;
  }
  return met;
}

}  // namespace

absl::StatusOr<Met> Meet(const Meeting& meeting) {
  PARTITA_ASSIGN_OR_RETURN(const Address address,
                           ParseAddress(meeting.address));
  const Deadline deadline = Clock::now() + meeting.timeout;
  return meeting.rank == 0 ? MeetAsFirst(meeting, address, deadline)
                           : MeetAsGuest(meeting, address, deadline);
}

}  // namespace partita::comm
