// Each pair of members exchanges the boxes given by PieceOf, all pairs at once.
// Large all-reduces take two rounds, so that every member sends and receives
// 2 (n-1)/n of the tensor. Sums are computed in the order of the group, so all
// ranks get the same bits.
#include "runtime/comm/message_exchange.h"

#include <algorithm>
#include <utility>

#include "runtime/base/dtype.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/reduce.h"

namespace partita::comm {
namespace {

constexpr int64_t kLine = 64;
// Below this size, a second round costs more than sending everything to
// everyone.
constexpr int64_t kOneRoundBytes = 32 << 10;

int64_t AlignUp(int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// Pieces of a reduce_scatter are packed in scratch; this member's own piece is
// used in place.
void Combine(const MessageCollective& collective, const char* input,
             char* output, char* scratch) {
  const Operation& op = collective.operation();
  const size_t n = collective.peers().size();
  const size_t own = static_cast<size_t>(collective.index());
  const Box& box = collective.peers()[own].incoming;
  std::vector<const char*> inputs(n);
  int64_t packed = 0;
  ForEachRun(box, [&](int64_t from, int64_t to) {
    for (size_t i = 0; i < n; ++i) {
      inputs[i] = i == own
                      ? input + from
                      : scratch + collective.peers()[i].incoming_at + packed;
    }
    Reduce(op.reduction, op.dtype, inputs, {output + to},
           box.run / base::SizeOf(op.dtype));
    packed += box.run;
  });
}

}  // namespace

MessageCollective::MessageCollective(Operation operation,
                                     std::vector<int> ranks, int index)
    : Collective(std::move(operation), std::move(ranks), index) {
  const Operation& op = this->operation();
  const int n = group_size();
  const bool reduces =
      op.kind == Kind::kAllReduce || op.kind == Kind::kReduceScatter;
  int64_t& bytes = scratch_bytes_;
  const auto reserve = [&bytes](int64_t size) {
    const int64_t at = bytes;
    bytes += AlignUp(size);
    return at;
  };
  for (int i = 0; i < n; ++i) {
    Peer peer;
    peer.outgoing = PieceOf(op, n, i, index);
    peer.incoming = PieceOf(op, n, index, i);
    if (i != index && op.kind != Kind::kAllReduce &&
        op.kind != Kind::kTransfer) {
      if (!peer.outgoing.IsOneRun())
        peer.outgoing_at = reserve(peer.outgoing.Bytes());
      if (reduces || !peer.incoming.IsOneRun())
        peer.incoming_at = reserve(peer.incoming.Bytes());
    }
    peers_.push_back(peer);
  }
  // Space for every member's input, or for every member's version of this
  // member's part.
  if (op.kind == Kind::kAllReduce) {
    const int64_t whole = op.InputBytes();
    const int64_t part = whole <= kOneRoundBytes
                             ? whole
                             : (AlignUp(whole) / kLine + n - 1) / n * kLine;
    for (Peer& peer : peers_) peer.incoming_at = reserve(part);
  }
  if (MovesRows(op.kind)) bytes = op.size * RowBytes(op);
}

absl::Status AllReduce(const MessageCollective& collective, const char* input,
                       char* output, char* scratch,
                       const MemberChannel& channel) {
  const Operation& op = collective.operation();
  const int64_t bytes = op.InputBytes();
  const int64_t element = base::SizeOf(op.dtype);
  const std::vector<Peer>& peers = collective.peers();
  const size_t own = static_cast<size_t>(collective.index());
  const bool one_round = bytes <= kOneRoundBytes;
  const int64_t lines = AlignUp(bytes) / kLine;
  const int64_t n = collective.group_size();
  const auto part_at = [&](size_t i) {
    return std::min(bytes, lines * static_cast<int64_t>(i) / n * kLine);
  };
  const int64_t begin = one_round ? 0 : part_at(own);
  const int64_t end = one_round ? bytes : part_at(own + 1);
  std::vector<const char*> inputs(peers.size());
  for (size_t i = 0; i < peers.size(); ++i) {
    char* place = scratch + peers[i].incoming_at;
    inputs[i] = i == own ? input + begin : place;
    if (i == own) continue;
    PARTITA_RETURN_IF_ERROR(
        channel.receive(place, end - begin, static_cast<int>(i)));
    const int64_t first = one_round ? 0 : part_at(i);
    const int64_t last = one_round ? bytes : part_at(i + 1);
    PARTITA_RETURN_IF_ERROR(
        channel.send(input + first, last - first, static_cast<int>(i)));
  }
  PARTITA_RETURN_IF_ERROR(channel.finish());
  Reduce(op.reduction, op.dtype, inputs, {output + begin},
         (end - begin) / element);
  if (one_round) return absl::OkStatus();
  for (size_t i = 0; i < peers.size(); ++i) {
    if (i == own) continue;
    PARTITA_RETURN_IF_ERROR(channel.receive(
        output + part_at(i), part_at(i + 1) - part_at(i), static_cast<int>(i)));
    PARTITA_RETURN_IF_ERROR(
        channel.send(output + begin, end - begin, static_cast<int>(i)));
  }
  return channel.finish();
}

absl::Status Exchange(const MessageCollective& collective, const char* input,
                      char* output, char* scratch,
                      const MemberChannel& channel) {
  const size_t own = static_cast<size_t>(collective.index());
  const std::vector<Peer>& peers = collective.peers();
  for (size_t i = 0; i < peers.size(); ++i) {
    const Peer& peer = peers[i];
    if (i == own) continue;
    PARTITA_RETURN_IF_ERROR(
        channel.receive(peer.incoming_at < 0 ? output + peer.incoming.to
                                             : scratch + peer.incoming_at,
                        peer.incoming.Bytes(), static_cast<int>(i)));
  }
  for (size_t k = 1; k < peers.size(); ++k) {
    const size_t to = (own + k) % peers.size();
    const Peer& peer = peers[to];
    const char* data = input + peer.outgoing.from;
    if (peer.outgoing_at >= 0) {
      char* place = scratch + peer.outgoing_at;
      PackBox(peer.outgoing, input, place);
      data = place;
    }
    PARTITA_RETURN_IF_ERROR(
        channel.send(data, peer.outgoing.Bytes(), static_cast<int>(to)));
  }
  const bool reduces = collective.operation().kind == Kind::kReduceScatter;
  if (!reduces) CopyBox(peers[own].incoming, input, output);
  PARTITA_RETURN_IF_ERROR(channel.finish());
  if (reduces) {
    Combine(collective, input, output, scratch);
  } else {
    for (size_t i = 0; i < peers.size(); ++i) {
      if (i == own || peers[i].incoming_at < 0) continue;
      UnpackBox(peers[i].incoming, scratch + peers[i].incoming_at, output);
    }
  }
  FillBlanks(collective.operation(), collective.group_size(),
             collective.index(), output);
  return absl::OkStatus();
}

}  // namespace partita::comm
