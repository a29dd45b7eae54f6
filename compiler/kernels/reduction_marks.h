// Marks of the steps of split reductions (split_reductions.cc).
#ifndef PARTITA_COMPILER_KERNELS_REDUCTION_MARKS_H_
#define PARTITA_COMPILER_KERNELS_REDUCTION_MARKS_H_

namespace partita::kernels {

// Marks the first of the steps of a sum over rows whose other users also reduce
// along the rows (split_reductions.cc): it sums blocks of rows, and is part of
// a kernel that walks these rows.
inline constexpr char kRowSumsAttr[] = "kernel.row_sums";

// Marks the first step of a sum over rows that an elementwise kernel computes
// and writes: the kernel sums its columns on the way.
inline constexpr char kColumnSumsAttr[] = "kernel.column_sums";

// Marks the further steps of a split reduction with the number of steps that
// follow. They take little time each, but a launch each.
inline constexpr char kLateStepAttr[] = "kernel.late_step";

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_REDUCTION_MARKS_H_
