// Products of matrices by warps, on tensor cores.
//
// Matrices lie in scratch, as tiles. A warp loads fragments of them, which its
// threads hold together, and multiplies these into sums. As PTX's mma.m16n8k16
// has it, with g = lane / 4 and t = lane % 4 of a thread of a warp:
//
//   left   16 x 16  4 words of two elements: rows g, g + 8, g, g + 8; columns
//                   2t, 2t, 2t + 8, 2t + 8, and the next ones
//   right  16 x 16  4 words, two for each 8 columns: columns g, g, g + 8, g +
//   8;
//                   rows 2t, 2t + 8, 2t, 2t + 8, and the next ones
//   sums   16 x 8   4 floats: rows g, g, g + 8, g + 8; columns 2t, 2t + 1, 2t,
//                   2t + 1
//
// So sums of 16 columns, rounded, are a left fragment. Elements of f32 are
// multiplied by mma.m16n8k8, twice: a fragment has two halves of
//
//   left   16 x 8   4 floats: rows g, g + 8, g, g + 8; columns t, t, t + 4, t +
//   4 right  8 x 16   4 floats: columns g, g, g + 8, g + 8; rows t, t + 4, t, t
//   + 4
//
// Where sums become a left fragment, its columns t and t + 4 stand for 2t and
// 2t + 1, and so do the rows of what `right` loads. What a target must provide
// beside emit_team.h's functions, called by all threads of a warp (the last
// three by any):
//   v4f32 partita_multiply_bf16(v4i32 left, i32 right, i32 right, v4f32 sums)
//   v4f32 partita_multiply_f16(...)       left * right + sums, 8 columns
//   v4f32 partita_multiply_f32(v4f32 left, f32 right, f32 right, v4f32 sums)
//                                         the same of half fragments; products
//                                         are good to 21 bits or more
//   v4i32 partita_load_matrices(ptr base, i64 offset)
//                                         four matrices of 8 rows of 16 bytes,
//                                         which lie at lanes' base + offset
//                                         bytes: matrix i's at those of lanes
//                                         8 i ...; word i is word t of row g
//   v4i32 partita_load_transposed(ptr base, i64 offset)
//                                         the same of matrices of 8 x 8 halves
//                                         of words, transposed
//   void partita_copy(ptr base, i64 offset, i64 source)
//                                         begins to copy 16 bytes from address
//                                         `source` to scratch
//   void partita_wait_for_copies()        ends when this thread's copies have
//   f32 partita_exp2(f32)                 good to a few ulp
#ifndef PARTITA_COMPILER_KERNELS_EMIT_FRAGMENTS_H_
#define PARTITA_COMPILER_KERNELS_EMIT_FRAGMENTS_H_

#include "compiler/kernels/emit_elements.h"

namespace partita::kernels {

inline constexpr char kMultiplyBf16[] = "partita_multiply_bf16";
inline constexpr char kMultiplyF16[] = "partita_multiply_f16";
inline constexpr char kMultiplyF32[] = "partita_multiply_f32";
inline constexpr char kLoadMatrices[] = "partita_load_matrices";
inline constexpr char kLoadTransposed[] = "partita_load_transposed";
inline constexpr char kCopy[] = "partita_copy";
inline constexpr char kWaitForCopies[] = "partita_wait_for_copies";
inline constexpr char kFenceTiles[] = "partita_fence_tiles";
inline constexpr char kExp2[] = "partita_exp2";

inline constexpr int64_t kPanel = 64;  // columns, of a swizzled tile

// Rows of a matrix in scratch. Between two rows there are 16 bytes, with which
// eight of them lie in different banks of shared memory. Of swizzled ones, of
// 16-bit elements, without padding, it is panels of kPanel columns, one behind
// the other: rows of 128 bytes, whose eight parts of 16 bytes are exchanged,
// part p of row r for part p ^ (r % 8). `first` is a multiple of 1024 bytes
// then.
struct Tile {
  int64_t first = 0;  // element of the scratch memory
  int64_t rows = 0, columns = 0;
  int64_t padding = 8;  // elements in 16 bytes
  bool swizzled = false;

  int64_t stride() const { return columns + padding; }
  int64_t elements() const { return rows * stride(); }
};

// A left or a right one.
struct Fragment {
  mlir::Value halves[2];  // of 16-bit elements only the first one, which is all
};
using FragmentList = llvm::SmallVector<Fragment>;

// The argument that `value` is a part of, in another order; null if there is
// more to it.
mlir::BlockArgument movedArgument(mlir::Value value);

class Fragments {
 public:
  // Of elements of type `element`, bf16, f16 or f32, in a kernel for teams of
  // kBlock. `bytes` of scratch become the memory of tiles. `warpgroups` read
  // them (emit_warpgroup.h), not warps.
  Fragments(Emitter& emitter, mlir::Type element, int64_t bytes,
            bool warpgroups = false);

  mlir::Value base() const { return base_; }  // of that memory, in bytes

  // --- This thread ---
  mlir::Value warp() const { return warp_; }  // of the block
  mlir::Value g() const { return g_; }
  mlir::Value t() const { return t_; }

  // --- Tiles ---
  // Fills rows of a tile, `shift` elements further on (null: 0), with those of
  // a tensor from `first` on: [batch, head, first ..., 0 ...], the threads
  // sharing the work. Behind the last row that one comes again. Copies need not
  // have ended. `index` has the tensor's first two indices.
  mlir::LogicalResult fill(const Tile& tile, mlir::Value shift,
                           mlir::Value tensor, llvm::ArrayRef<Index> index,
                           mlir::Value first);
  // Stores the rows of a tile that a tensor has, from its `first` on, there.
  mlir::LogicalResult drain(const Tile& tile, const Buffer& to,
                            llvm::ArrayRef<int64_t> shape,
                            llvm::ArrayRef<Index> index, mlir::Value first);
  // Rounds sums into 16 rows and 8 columns of a tile, `shift` elements further
  // on (null: 0).
  void put(mlir::Value sums, const Tile& tile, mlir::Value shift,
           int64_t column);
  // This thread's copies have ended, and all threads have come here; what they
  // filled is seen by whoever reads it.
  void waitForTiles();
  void sync();

  // --- Fragments of tiles, of 16 rows from `row` and 16 columns ---
  // `shift` elements further on (null: 0).
  // The rows as rows of a left fragment.
  Fragment left(const Tile& tile, mlir::Value shift, int64_t row,
                int64_t column);
  // The rows as columns of a right fragment: for products with the transpose.
  Fragment rightTransposed(const Tile& tile, mlir::Value shift, int64_t row,
                           int64_t column);
  // The rows as rows of a right fragment, for left ones that were sums.
  Fragment right(const Tile& tile, mlir::Value shift, int64_t row,
                 int64_t column);

  // --- Products ---
  mlir::Value zero();  // sums
  // sums + left * the columns 8 half ... of right.
  mlir::Value multiply(const Fragment& left, const Fragment& right, int half,
                       mlir::Value sums);
  // From eight floats of a thread: four of columns 0 .. 7, four of 8 .. 15.
  Fragment leftOf(llvm::ArrayRef<mlir::Value> floats);
  // Two neighbours, rounded.
  mlir::Value round(mlir::Value a, mlir::Value b);
  // Combined over the four threads that hold a row of sums.
  mlir::Value sumOfRow(mlir::Value value);
  mlir::Value largestOfRow(mlir::Value value);
  mlir::Value exp2(mlir::Value value);

 private:
  bool isF32() const { return element_.isF32(); }
  int64_t elementBytes() const { return isF32() ? 4 : 2; }
  int64_t lanes() const { return 16 / elementBytes(); }  // of 16 bytes
  Fragment rightOfFloats(const Tile& tile, mlir::Value shift, int64_t row,
                         int64_t column);
  Fragment load(llvm::StringRef function, const Tile& tile, mlir::Value shift,
                int64_t row, int64_t column, mlir::Value lane_row,
                mlir::Value lane_column);
  // The first element of a tile at which a loop over its elements, in eights,
  // is.
  mlir::Value elementAt(const Tile& tile, const Symbol* lane,
                        mlir::Value in_tile);
  mlir::Value plus(mlir::Value a, mlir::Value b);
  mlir::Value times(mlir::Value a, int64_t b);
  // Where the elements at `index`, which has the lanes of `lane`, lie in memory
  // if these are 16 bytes in one piece, aligned, and nothing is computed of
  // them.
  std::optional<std::pair<Buffer, Index>> directAccess(
      mlir::Value tensor, llvm::ArrayRef<Index> index, const Symbol* lane);
  // Begins to copy from there to these elements of scratch.
  void copy(const Buffer& from, const Index& position, const Symbol* lane,
            mlir::Value to);

  Emitter& emitter_;
  mlir::ImplicitLocOpBuilder& builder_;
  mlir::Type element_;
  bool warpgroups_;
  mlir::Value base_, elements_;  // of scratch: as bytes, as elements
  mlir::Value warp_, g_, t_;
  // Rows and columns of the 8 x 8 matrices that a lane loads a row of: numbered
  // down and then right, or right and then down.
  mlir::Value down_row_, down_column_, right_row_, right_column_;
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_FRAGMENTS_H_
