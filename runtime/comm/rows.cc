// Each loop visits the destinations in order, which is the order of rows in
// every message and in the holder's tensor.
#include "runtime/comm/rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <string>

#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"

namespace partita::comm {
namespace {

bool IsMember(int64_t to, size_t n) {
  return to >= 0 && to < static_cast<int64_t>(n);
}

// Destinations per row.
int64_t ChoicesOf(const Operation& op) {
  const int64_t rows = op.input_shape[0];
  return rows == 0 ? 1 : op.size / rows;
}

// Fills rows [begin, end) of the output of kSendRows.
void FillRows(const Operation& op, int64_t begin, int64_t end, char* output) {
  if (begin == end) return;
  const std::string element = FillOf(op);
  const int64_t bytes = RowBytes(op);
  char* at = output + begin * bytes;
  char* const last = output + end * bytes;
  if (element.find_first_not_of(element.front()) == std::string::npos) {
    std::memset(at, element.front(), static_cast<size_t>(last - at));
    return;
  }
  for (; at < last; at += static_cast<std::ptrdiff_t>(element.size()))
    std::memcpy(at, element.data(), element.size());
}

// Row r of `to` becomes row sources[r] of `from`, or 0 if that is negative.
void GatherRows(const Operation& op, const std::vector<int64_t>& sources,
                const char* from, char* to) {
  const int64_t bytes = RowBytes(op);
  for (const int64_t source : sources) {
    if (source < 0)
      std::memset(to, 0, static_cast<size_t>(bytes));
    else
      std::memcpy(to, from + source * bytes, static_cast<size_t>(bytes));
    to += bytes;
  }
}

int64_t SendTo(const Operation& op, const std::vector<RowOperands>& members,
               int index, char* output) {
  const int64_t bytes = RowBytes(op), capacity = RowCapacity(op),
                choices = ChoicesOf(op);
  int64_t rows = 0;
  for (const RowOperands& member : members)
    for (int64_t p = 0; p < op.size; ++p) {
      if (member.to[p] != index) continue;
      if (rows < capacity)
        std::memcpy(output + rows * bytes, member.input + p / choices * bytes,
                    static_cast<size_t>(bytes));
      ++rows;
    }
  FillRows(op, std::min(rows, capacity), capacity, output);
  return rows;
}

void ReturnTo(const Operation& op, const std::vector<RowOperands>& members,
              int index, char* output) {
  const int64_t bytes = RowBytes(op), capacity = RowCapacity(op);
  const size_t n = members.size();
  // Each holder has the rows of earlier members first.
  std::vector<int64_t> next(n);
  for (int earlier = 0; earlier < index; ++earlier) {
    const std::vector<int64_t> counts = CountRows(
        op, static_cast<int>(n), members[static_cast<size_t>(earlier)].to);
    for (size_t i = 0; i < n; ++i) next[i] += counts[i];
  }
  const int64_t* to = members[static_cast<size_t>(index)].to;
  for (int64_t p = 0; p < op.size; ++p) {
    char* place = output + p * bytes;
    if (!IsMember(to[p], n)) {
      std::memset(place, 0, static_cast<size_t>(bytes));
      continue;
    }
    const size_t holder = static_cast<size_t>(to[p]);
    if (next[holder] < capacity)
      std::memcpy(place, members[holder].input + next[holder] * bytes,
                  static_cast<size_t>(bytes));
    ++next[holder];
  }
}

}  // namespace

int64_t RowBytes(const Operation& op) {
  return op.input_shape[1] * base::SizeOf(op.dtype);
}

int64_t RowCapacity(const Operation& op) {
  return op.kind == Kind::kSendRows ? op.output_shape[0] : op.input_shape[0];
}

std::vector<int64_t> CountRows(const Operation& op, int n, const int64_t* to) {
  std::vector<int64_t> counts(static_cast<size_t>(n));
  for (int64_t p = 0; p < op.size; ++p)
    if (IsMember(to[p], counts.size())) ++counts[static_cast<size_t>(to[p])];
  return counts;
}

RowParts PartsOf(const Operation& op, const std::vector<int64_t>& counts) {
  RowParts parts;
  for (const int64_t count : counts) {
    parts.first.push_back(parts.rows * RowBytes(op));
    parts.bytes.push_back(count * RowBytes(op));
    parts.rows += count;
  }
  return parts;
}

std::vector<int64_t> RowSources(const Operation& op, int n, const int64_t* to) {
  const std::vector<int64_t> counts = CountRows(op, n, to);
  std::vector<int64_t> next(counts.size());  // by member
  for (size_t i = 1; i < next.size(); ++i)
    next[i] = next[i - 1] + counts[i - 1];
  const bool sends = op.kind == Kind::kSendRows;
  const int64_t choices = ChoicesOf(op),
                packed =
                    std::accumulate(counts.begin(), counts.end(), int64_t{0});
  std::vector<int64_t> sources(static_cast<size_t>(sends ? packed : op.size),
                               -1);
  for (int64_t p = 0; p < op.size; ++p) {
    if (!IsMember(to[p], next.size())) continue;
    const int64_t place = next[static_cast<size_t>(to[p])]++;
    if (sends)
      sources[static_cast<size_t>(place)] = p / choices;
    else
      sources[static_cast<size_t>(p)] = place;
  }
  return sources;
}

absl::Status CheckCapacity(const Operation& op, int index, int64_t rows) {
  const int64_t capacity = RowCapacity(op);
  if (rows <= capacity) return absl::OkStatus();
  const double share = static_cast<double>(std::max<int64_t>(op.size, 1));
  const double needed =
      std::ceil(static_cast<double>(rows) / share * 100) / 100;
  return absl::ResourceExhaustedError(absl::StrFormat(
      "expected at most %d rows for the experts of device %d of the group, "
      "found %d: %.2f times the even share of %d; give the plan 'experts: "
      "{rows: %.2f}' (--experts rows=%.2f) or more, or leave the bound out",
      capacity, index, rows, static_cast<double>(rows) / share, op.size, needed,
      needed));
}

int64_t CollectRows(const Operation& op,
                    const std::vector<RowOperands>& members, int index,
                    char* output) {
  if (op.kind == Kind::kSendRows) return SendTo(op, members, index, output);
  ReturnTo(op, members, index, output);
  return 0;
}

absl::Status ExchangeRows(const Operation& op, int n, int index,
                          const RowOperands& own, char* output, char* scratch,
                          const MemberChannel& channel) {
  const std::vector<int64_t> outgoing = CountRows(op, n, own.to);
  std::vector<int64_t> incoming = outgoing;
  for (int i = 0; i < n; ++i) {
    if (i == index) continue;
    const size_t at = static_cast<size_t>(i);
    PARTITA_RETURN_IF_ERROR(channel.receive(
        reinterpret_cast<char*>(&incoming[at]), sizeof(int64_t), i));
    PARTITA_RETURN_IF_ERROR(channel.send(
        reinterpret_cast<const char*>(&outgoing[at]), sizeof(int64_t), i));
  }
  PARTITA_RETURN_IF_ERROR(channel.finish());
  const RowParts home = PartsOf(op, outgoing), held = PartsOf(op, incoming);
  PARTITA_RETURN_IF_ERROR(CheckCapacity(op, index, held.rows));
  const bool sends = op.kind == Kind::kSendRows;
  const std::vector<int64_t> sources = RowSources(op, n, own.to);
  if (sends) GatherRows(op, sources, own.input, scratch);
  // The holder's tensor has the rows of each member together, as scratch does
  // at home.
  const char* from = sends ? scratch : own.input;
  char* to = sends ? output : scratch;
  const RowParts& from_parts = sends ? home : held;
  const RowParts& to_parts = sends ? held : home;
  for (int k = 0; k < n; ++k) {
    const int i = (index + k) % n;
    const size_t at = static_cast<size_t>(i);
    if (i == index && to_parts.bytes[at] == 0) continue;
    if (i == index) {
      std::memcpy(to + to_parts.first[at], from + from_parts.first[at],
                  static_cast<size_t>(to_parts.bytes[at]));
      continue;
    }
    PARTITA_RETURN_IF_ERROR(
        channel.receive(to + to_parts.first[at], to_parts.bytes[at], i));
    PARTITA_RETURN_IF_ERROR(
        channel.send(from + from_parts.first[at], from_parts.bytes[at], i));
  }
  PARTITA_RETURN_IF_ERROR(channel.finish());
  if (sends)
    FillRows(op, held.rows, RowCapacity(op), output);
  else
    GatherRows(op, sources, scratch, output);
  return absl::OkStatus();
}

}  // namespace partita::comm
