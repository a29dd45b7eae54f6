// Counts rows, then bytes. With uneven blocks, rows per device never increase:
// full blocks, one short block, then empty ones.
#include "compiler/core/traffic.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace partita::core {
namespace {

// Returns the rows in block number `index`.
int64_t RowsOf(int64_t index, int64_t block, int64_t size) {
  return std::clamp<int64_t>(size - index * block, 0, block);
}

// Returns the elements moved by the busiest device, in units of one row of both
// dimensions.
int64_t MovedAllToAll(const CollectiveWork& work) {
  int64_t most = 0;
  const auto look = [&](int64_t device) {
    if (device < 0 || device >= work.group) return;
    const int64_t divided = RowsOf(device, work.output_rows, work.rows);
    const int64_t gathered =
        RowsOf(device, work.other_rows, work.other_output_rows);
    most = std::max({most, (work.rows - divided) * gathered,
                     divided * (work.other_output_rows - gathered)});
  };
  // The counts are constant between these devices.
  look(0);
  for (const int64_t end :
       {work.rows / std::max<int64_t>(work.output_rows, 1),
        work.other_output_rows / std::max<int64_t>(work.other_rows, 1)})
    for (const int64_t device : {end - 1, end, end + 1}) look(device);
  look(work.group - 1);
  return most;
}

// Returns the rows moved by the busiest device.
int64_t MovedExchange(const CollectiveWork& work) {
  const auto begin_of = [&](int64_t device) {
    return std::clamp<int64_t>(device * work.step + work.offset, 0, work.size);
  };
  const auto end_of = [&](int64_t device) {
    return std::clamp<int64_t>(
        device * work.step + work.offset + work.output_rows, 0, work.size);
  };
  // First and last device whose window may reach rows `begin` to `end`.
  const auto reaching = [&](int64_t begin, int64_t end) {
    if (work.step == 0) return std::pair<int64_t, int64_t>(0, work.group - 1);
    // Windows begin in [low, high]; device 0's begins at `offset`.
    const int64_t low = begin - work.offset - work.output_rows;
    const int64_t high = end - work.offset;
    const int64_t step = std::abs(work.step);
    const int64_t nearest = work.step > 0 ? low : -high,
                  farthest = work.step > 0 ? high : -low;
    return std::pair(
        std::max<int64_t>(0, nearest) / step,
        std::min(work.group - 1, std::max<int64_t>(0, farthest) / step));
  };
  int64_t most = 0;
  for (int64_t device = 0; device < work.group; ++device) {
    const int64_t own_begin = std::min(device * work.rows, work.size);
    const int64_t own_end = std::min(own_begin + work.rows, work.size);
    const auto taken = [&](int64_t by) {
      return std::max<int64_t>(
          0, std::min(end_of(by), own_end) - std::max(begin_of(by), own_begin));
    };
    const int64_t kept = taken(device);
    // Then the devices after it have neither rows nor windows.
    if (work.step >= 0 && own_begin == own_end &&
        begin_of(device) == end_of(device))
      break;
    int64_t sent = -kept;
    const auto [first, last] = reaching(own_begin, own_end);
    for (int64_t by = first; by <= last; ++by) sent += taken(by);
    most = std::max({most, sent, end_of(device) - begin_of(device) - kept});
  }
  return most;
}

}  // namespace

int64_t BytesMoved(const CollectiveWork& work) {
  const int64_t n = work.group, bytes = work.input_bytes;
  if (n <= 1 || bytes == 0) return 0;
  switch (work.kind) {
    case CollectiveKind::kAllReduce:
      return 2 * (bytes - bytes / n);
    case CollectiveKind::kAllGather:
    case CollectiveKind::kBroadcast:
      return bytes * (n - 1);
    case CollectiveKind::kReduceScatter:
      return bytes / work.rows * std::min(work.output_rows, work.rows) *
             (n - 1);
    case CollectiveKind::kAllToAll:
      return bytes / work.rows / work.other_rows * MovedAllToAll(work);
    case CollectiveKind::kExchange:
      return bytes / work.rows * MovedExchange(work);
    case CollectiveKind::kPermute:
      return bytes;
    case CollectiveKind::kSendRows:
    case CollectiveKind::kReturnRows:
      return bytes / work.rows * (work.size - work.size / n);
    case CollectiveKind::kAllSlice:
      return 0;
  }
  return 0;
}

}  // namespace partita::core
