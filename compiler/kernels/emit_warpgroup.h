// Products of tiles by warpgroups, on tensor cores: wgmma, which sm_90a has.
//
// The four warps of a block multiply 64 rows together; warp w has rows 16 w
// ... of the sums, as fragments (emit_fragments.h). Tiles lie in shared memory
// as wgmma's 128-byte swizzle wants them (Tile::swizzled); a descriptor says
// where. Products are asynchronous: what a product is made of and its sums must
// be left alone until it has been waited for.
//
// What a target must provide, called by all threads of a block. Tiles' part is
// 64 rows or columns, in four steps of 16, with a descriptor each; sums are
// N / 8 vectors, 8 columns after 8 columns. Products up to a commit are a
// group.
//   sums partita_group_start_T(i64 left x 4, i64 right x 4)
//                         left * transposed right, 64 columns
//   sums partita_group_add_T(i64 left x 4, i64 right x 4, sums)
//                         the same, added to what such a product began
//   sums partita_group_add_times_T_N(v4i32 left x 4, i64 right x 4, sums)
//                         left fragments * right, added to N columns
//   void partita_group_commit()
//   sums partita_group_wait_N(i32 pending, sums)
//                         when no more than so many groups are on their way;
//                         `pending` is a constant
//   i64 partita_shared_address(ptr)
//                         anew each time: descriptors that a loop does not
//                         change would be kept in registers, and there are none
//   void partita_fence_tiles()
//                         what this thread has written, and copied and waited
//                         for, is seen by products after a meeting of all
// with bf16 or f16 for T, 64 or 128 for N. Descriptors are PTX's: bits 0-13 the
// address / 16, 16-29 and 32-45 the offsets / 16 below, 62-63 the swizzle's
// kind, of which 1 is that of 128 bytes.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_WARPGROUP_H_
#define PARTITA_COMPILER_KERNELS_EMIT_WARPGROUP_H_

#include "compiler/kernels/emit_fragments.h"

namespace partita::kernels {

inline constexpr char kGroupStart[] = "partita_group_start";
inline constexpr char kGroupAdd[] = "partita_group_add";
inline constexpr char kGroupAddTimes[] = "partita_group_add_times";
inline constexpr char kGroupCommit[] = "partita_group_commit";
inline constexpr char kGroupWait[] = "partita_group_wait";
inline constexpr char kSharedAddress[] = "partita_shared_address";

// Rows of a product, and keys of a tile.
inline constexpr int64_t kGroupRows = 64;

class Warpgroup {
 public:
  // Of tiles of this type, bf16 or f16, in scratch that begins at `base`, in
  // a kernel for teams of kBlock.
  Warpgroup(mlir::ImplicitLocOpBuilder& builder, mlir::Type element,
            mlir::Value base);

  // Rows `row` ... of `left` * transposed `right`, which has 64 rows and is
  // `shift` elements further on.
  Values timesTransposed(const Tile& left, int64_t row, const Tile& right,
                         mlir::Value shift);
  // sums + left * right, which has 64 rows and is `shift` elements further on.
  Values addTimes(llvm::ArrayRef<Fragment> left, const Tile& right,
                  mlir::Value shift, llvm::ArrayRef<mlir::Value> sums);
  // The products since the last commit are a group.
  void commit();
  // The sums when no more than the `pending` latest groups are on their way.
  Values wait(int64_t pending, llvm::ArrayRef<mlir::Value> sums);

 private:
  // Bits 16 and above of a descriptor: offsets of a tile, in bytes.
  uint64_t layout(int64_t leading, int64_t stride) const;
  // The descriptors of four steps, so many bytes apart, of a tile's rows or
  // columns from this byte of scratch on.
  Values steps(mlir::Value shift, int64_t first, int64_t step, uint64_t layout);
  Values call(const std::string& function, size_t sums,
              mlir::ValueRange arguments);
  std::string nameOf(llvm::StringRef function) const;

  mlir::ImplicitLocOpBuilder& builder_;
  mlir::Type element_;
  mlir::Value base_;  // of scratch
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_WARPGROUP_H_
