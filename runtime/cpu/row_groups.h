// Sorts rows by their indices.
#ifndef PARTITA_RUNTIME_CPU_ROW_GROUPS_H_
#define PARTITA_RUNTIME_CPU_ROW_GROUPS_H_

#include <cstdint>

#include "runtime/base/dtype.h"

namespace partita::cpu {

// The rows of each group, in the order of the rows. Lives in scratch memory.
class RowGroups {
 public:
  RowGroups(int64_t rows, int64_t groups) : rows_(rows), groups_(groups) {}

  int64_t scratch_bytes() const;

  // Sorts the rows by `ids` (i32 or i64), one per row. Rows whose id is outside
  // [0, groups) belong to group `groups`. `scratch` has scratch_bytes() and is
  // in use until the next call.
  void Sort(base::DType dtype, const void* ids, char* scratch);

  int64_t groups() const { return groups_; }
  int64_t Count(int64_t group) const { return ends_[group] - Begin(group); }
  // The group's first rows are RowsOf(group)[0], [1] ...
  const int64_t* RowsOf(int64_t group) const { return order_ + Begin(group); }

 private:
  int64_t Begin(int64_t group) const {
    return group == 0 ? 0 : ends_[group - 1];
  }
  template <typename Id>
  void Sort(const Id* ids);

  int64_t rows_, groups_;
  int64_t* order_ = nullptr;  // rows by group
  int64_t* ends_ = nullptr;   // per group, the position behind its last row
};

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_ROW_GROUPS_H_
