// A counting sort.
#include "runtime/cpu/row_groups.h"

#include <algorithm>

#include "runtime/cpu/memory.h"

namespace partita::cpu {

int64_t RowGroups::scratch_bytes() const {
  constexpr int64_t kSize = sizeof(int64_t);
  return AlignUp(rows_ * kSize) + AlignUp((groups_ + 1) * kSize);
}

void RowGroups::Sort(base::DType dtype, const void* ids, char* scratch) {
  order_ = reinterpret_cast<int64_t*>(scratch);
  ends_ = reinterpret_cast<int64_t*>(
      scratch + AlignUp(rows_ * static_cast<int64_t>(sizeof(int64_t))));
  if (dtype == base::DType::kI32)
    Sort(static_cast<const int32_t*>(ids));
  else
    Sort(static_cast<const int64_t*>(ids));
}

template <typename Id>
void RowGroups::Sort(const Id* ids) {
  const auto group_of = [&](int64_t row) {
    const int64_t id = ids[row];
    return id >= 0 && id < groups_ ? id : groups_;
  };
  std::fill_n(ends_, groups_ + 1, 0);
  for (int64_t row = 0; row < rows_; ++row) ++ends_[group_of(row)];
  int64_t begin = 0;
  for (int64_t group = 0; group <= groups_; ++group) {
    const int64_t count = ends_[group];
    ends_[group] = begin;
    begin += count;
  }
  // Now each entry is its group's begin, and ends as its end.
  for (int64_t row = 0; row < rows_; ++row)
    order_[ends_[group_of(row)]++] = row;
}

}  // namespace partita::cpu
