// Products of tiles by warpgroups, on tensor cores: wgmma, which sm_90a has.
//
// The four warps of a block multiply 64 rows together. Warp w holds rows 16 w
// ... of the sums, as fragments (emit_fragments.h). Tiles lie in shared memory
// in wgmma's 128-byte swizzle (Tile::swizzled); a descriptor gives their place.
// Products are asynchronous: a product's operands and sums must not be accessed
// until it has been waited for.
//
// A target must provide these functions, called by all threads of a block. The
// operand from a tile is 64 rows or columns, in four steps of 16, with a
// descriptor each. Sums are N / 8 vectors of 8 columns. The products up to a
// commit form a group.
//   sums partita_group_start_T(i64 left x 4, i64 right x 4)
//                         left * transposed right, 64 columns
//   sums partita_group_add_T(i64 left x 4, i64 right x 4, sums)
//                         the same, added to the sums of such a product
//   sums partita_group_add_times_T_N(v4i32 left x 4, i64 right x 4, sums)
//                         left fragments * right, added to N columns
//   sums partita_group_add_tiles_T_N(i64 left x 4, i64 right x 4,
//                                    i32 left_down, i32 right_down, sums)
//                         left * right, added to N columns. Constants tell
//                         for each operand if products go down the rows of its
//                         tile (1) or along them (0).
//   void partita_group_commit()
//   sums partita_group_wait_N(i32 pending, sums)
//                         the sums, once at most `pending` groups are in
//                         flight; `pending` is a constant
//   i64 partita_shared_address(ptr)
//                         computed anew in each call: loop-invariant
//                         descriptors would take registers that are not
//                         available
//   void partita_fence_tiles()
//                         makes this thread's writes, and the copies that it
//                         has waited for, visible to products that start after
//                         all threads have met
// T is bf16 or f16, and N is 64 or 128. Descriptors are PTX's: bits 0-13 hold
// the address / 16, bits 16-29 and 32-45 the offsets / 16 below, and bits 62-63
// the kind of swizzle, where 1 means 128 bytes.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_WARPGROUP_H_
#define PARTITA_COMPILER_KERNELS_EMIT_WARPGROUP_H_

#include "compiler/kernels/emit_fragments.h"

namespace partita::kernels {

inline constexpr char kGroupStart[] = "partita_group_start";
inline constexpr char kGroupAdd[] = "partita_group_add";
inline constexpr char kGroupAddTimes[] = "partita_group_add_times";
inline constexpr char kGroupAddTiles[] = "partita_group_add_tiles";
inline constexpr char kGroupCommit[] = "partita_group_commit";
inline constexpr char kGroupWait[] = "partita_group_wait";
inline constexpr char kSharedAddress[] = "partita_shared_address";

// Rows of a product, and keys of a tile.
inline constexpr int64_t kGroupRows = 64;

class Warpgroup {
 public:
  // For tiles of bf16 or f16 in scratch that begins at `base`, in a kernel for
  // teams of kBlock.
  Warpgroup(mlir::ImplicitLocOpBuilder& builder, mlir::Type element,
            mlir::Value base);

  // Rows `row` ... of `left` * transposed `right`. `right` has 64 rows and is
  // `shift` elements further on.
  Values timesTransposed(const Tile& left, int64_t row, const Tile& right,
                         mlir::Value shift);
  // sums + left * right. `right` has 64 rows and is `shift` elements further
  // on.
  Values addTimes(llvm::ArrayRef<Fragment> left, const Tile& right,
                  mlir::Value shift, llvm::ArrayRef<mlir::Value> sums);
  // sums + 64 rows of the product, from row 64 `band` on, of two tiles which
  // are `shift` elements further on. Products go down the rows of a tile, of
  // which there are 64, or along its 64 columns; the right tile has 64 or 128
  // of the others.
  struct Side {
    const Tile& tile;
    bool down;
  };
  Values addTiles(const Side& left, int64_t band, const Side& right,
                  mlir::Value shift, llvm::ArrayRef<mlir::Value> sums);
  // Closes a group: the products since the last commit.
  void commit();
  // Waits until at most the `pending` latest groups are in flight; returns the
  // sums.
  Values wait(int64_t pending, llvm::ArrayRef<mlir::Value> sums);

 private:
  // Bits 16 and above of a descriptor. The tile's offsets are in bytes.
  uint64_t layout(int64_t leading, int64_t stride) const;
  // The descriptors of four steps, `step` bytes apart, of a tile's rows or
  // columns from byte `first` of scratch on.
  Values steps(mlir::Value shift, int64_t first, int64_t step, uint64_t layout);
  Values call(const std::string& function, size_t sums,
              mlir::ValueRange arguments);
  std::string nameOf(llvm::StringRef function) const;

  mlir::ImplicitLocOpBuilder& builder_;
  mlir::Type element_;
  mlir::Value base_;  // start of scratch
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_WARPGROUP_H_
