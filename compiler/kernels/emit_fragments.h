// Matrix products by warps, on tensor cores.
//
// Matrices lie in scratch, as tiles. A warp loads fragments of them, which its
// threads hold together, and multiplies these into sums. The layout is that of
// PTX's mma.m16n8k16, with g = lane / 4 and t = lane % 4 of a thread of a warp:
//
//   left   16 x 16  4 words of two elements: rows g, g + 8, g, g + 8;
//                   columns 2t, 2t, 2t + 8, 2t + 8, and the next ones
//   right  16 x 16  4 words, two for each 8 columns: columns g, g, g + 8,
//                   g + 8; rows 2t, 2t + 8, 2t, 2t + 8, and the next ones
//   sums   16 x 8   4 floats: rows g, g, g + 8, g + 8;
//                   columns 2t, 2t + 1, 2t, 2t + 1
//
// So sums of 16 columns, rounded, are a left fragment. Elements of f32 are
// multiplied by mma.m16n8k8, twice: a fragment has two halves of
//
//   left   16 x 8   4 floats: rows g, g + 8, g, g + 8;
//                   columns t, t, t + 4, t + 4
//   right  8 x 16   4 floats: columns g, g, g + 8, g + 8;
//                   rows t, t + 4, t, t + 4
//
// When sums become a left fragment, its columns t and t + 4 hold columns 2t and
// 2t + 1 of the sums; `right` loads rows in the same order. A target must
// provide these functions, in addition to the ones in emit_team.h. All threads
// of a warp call them together, except the last three, which any thread may
// call:
//   v4f32 partita_multiply_bf16(v4i32 left, i32 right, i32 right, v4f32 sums)
//   v4f32 partita_multiply_f16(...)       left * right + sums, 8 columns
//   v4f32 partita_multiply_f32(v4f32 left, f32 right, f32 right, v4f32 sums)
//                                         the same for half fragments; products
//                                         are good to 21 bits or more
//   v4i32 partita_load_matrices(ptr base, i64 offset)
//                                         four matrices of 8 rows of 16 bytes;
//                                         lanes 8 i ... give the rows of matrix
//                                         i, at base + offset bytes; word i of
//                                         the result is word t of row g
//   v4i32 partita_load_transposed(ptr base, i64 offset)
//                                         the same for matrices of 8 x 8 16-bit
//                                         elements, transposed
//   void partita_copy(ptr base, i64 offset, i64 source)
//                                         begins to copy 16 bytes from address
//                                         `source` to scratch
//   void partita_wait_for_copies()        waits for this thread's copies
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

inline constexpr int64_t kPanel = 64;  // columns of a panel of a swizzled tile

// Rows of a matrix in scratch. 16 bytes of padding between rows put eight
// consecutive rows into different banks of shared memory.
//
// A swizzled tile has 16-bit elements and no padding. It consists of panels of
// kPanel columns, one after the other, with rows of 128 bytes. Part p (16
// bytes) of row r is stored in place of part p ^ (r % 8). `first` must be a
// multiple of 1024 bytes.
struct Tile {
  int64_t first = 0;  // its first element, counted in scratch
  int64_t rows = 0, columns = 0;
  int64_t padding = 8;  // elements between rows: 16 bytes
  bool swizzled = false;

  int64_t stride() const { return columns + padding; }
  int64_t elements() const { return rows * stride(); }
};

// A left or a right fragment.
struct Fragment {
  mlir::Value halves[2];  // for 16-bit elements only the first
};
using FragmentList = llvm::SmallVector<Fragment>;

// Returns the kernel argument whose elements `value` selects or reorders; null
// if `value` is computed in any other way.
mlir::BlockArgument movedArgument(mlir::Value value);

class Fragments {
 public:
  // For elements of type `element` (bf16, f16 or f32) in a kernel for teams of
  // kBlock. Reserves `bytes` of scratch for tiles. `warpgroups`: warpgroups
  // read them (emit_warpgroup.h), not warps.
  Fragments(Emitter& emitter, mlir::Type element, int64_t bytes,
            bool warpgroups = false);

  mlir::Value base() const { return base_; }  // the tiles' memory, as bytes
  mlir::Value elements() const { return elements_; }

  // --- This thread ---
  mlir::Value warp() const { return warp_; }  // its number in the block
  mlir::Value g() const { return g_; }
  mlir::Value t() const { return t_; }

  // --- Tiles ---
  // Fills rows of a tile, `shift` elements further on (null: 0), with rows of a
  // tensor from `first` on: [batch, head, first ..., 0 ...]. The threads share
  // the work. Past the tensor's last row, that row is repeated. Copies may
  // still be in flight on return. `index` holds the tensor's first two indices.
  mlir::LogicalResult fill(const Tile& tile, mlir::Value shift,
                           mlir::Value tensor, llvm::ArrayRef<Index> index,
                           mlir::Value first);
  // Memory of the elements at `index`, which has the lanes of `lane`. None
  // unless they are 16 contiguous, aligned bytes that are stored unchanged.
  std::optional<std::pair<Buffer, Index>> directAccess(
      mlir::Value tensor, llvm::ArrayRef<Index> index, const Symbol* lane);
  // Begins to copy from there to element `to` of scratch.
  void copy(const Buffer& from, const Index& position, const Symbol* lane,
            mlir::Value to);
  // Stores the rows of a tile into a tensor of `rows` rows from row `first` on,
  // except rows past the tensor's end. The tensor begins at element `begin` of
  // the buffer. `index` holds the tensor's first two indices.
  mlir::LogicalResult drain(const Tile& tile, const Buffer& to, int64_t rows,
                            llvm::ArrayRef<int64_t> strides, int64_t begin,
                            llvm::ArrayRef<Index> index, mlir::Value first);
  // Rounds sums into 16 rows and 8 columns of a tile, `shift` elements further
  // on (null: 0). In a swizzled tile, that is a multiple of 16 rows of a panel.
  void put(mlir::Value sums, const Tile& tile, mlir::Value shift,
           int64_t column);
  // Waits for this thread's copies and synchronizes all threads. Afterwards all
  // readers see the copied elements.
  void waitForTiles();
  // Synchronizes all threads. Afterwards all readers see the elements that this
  // thread has stored. Its copies may still be in flight.
  void shareTiles();
  void sync();

  // --- Fragments of tiles, of 16 rows from `row` and 16 columns ---
  // Tile rows become rows of a left fragment. Here and below, the tile is
  // `shift` elements further on (null: 0).
  Fragment left(const Tile& tile, mlir::Value shift, int64_t row,
                int64_t column);
  // Tile columns become rows of a left fragment.
  Fragment leftTransposed(const Tile& tile, mlir::Value shift, int64_t row,
                          int64_t column);
  // Tile rows become columns of a right fragment, for products with the
  // transpose.
  Fragment rightTransposed(const Tile& tile, mlir::Value shift, int64_t row,
                           int64_t column);
  // Tile rows become rows of a right fragment, for left ones that were sums.
  Fragment right(const Tile& tile, mlir::Value shift, int64_t row,
                 int64_t column);
  // The same for left ones that were loaded.
  Fragment rightInOrder(const Tile& tile, mlir::Value shift, int64_t row,
                        int64_t column);

  // --- Products ---
  mlir::Value zero();  // sums of 0
  // sums + left * right, for the 8 columns of right from column 8 half on.
  mlir::Value multiply(const Fragment& left, const Fragment& right, int half,
                       mlir::Value sums);
  // Makes a left fragment of eight floats per thread: four of columns 0 .. 7,
  // four of columns 8 .. 15.
  Fragment leftOf(llvm::ArrayRef<mlir::Value> floats);
  // Rounds two neighbours into a word.
  mlir::Value round(mlir::Value a, mlir::Value b);
  // Combine a value over the four threads that hold a row of sums.
  mlir::Value sumOfRow(mlir::Value value);
  mlir::Value largestOfRow(mlir::Value value);
  mlir::Value exp2(mlir::Value value);

 private:
  bool isF32() const { return element_.isF32(); }
  int64_t elementBytes() const { return isF32() ? 4 : 2; }
  int64_t lanes() const { return 16 / elementBytes(); }  // elements in 16 bytes
  Fragment rightOfFloats(const Tile& tile, mlir::Value shift, int64_t row,
                         int64_t column);
  // Half fragments of the floats at these rows and columns of eight by eight,
  // in addition to this thread's row and column.
  Fragment halvesOf(const Tile& tile, mlir::Value at,
                    llvm::ArrayRef<std::pair<int64_t, int64_t>> places);
  Fragment load(llvm::StringRef function, const Tile& tile, mlir::Value shift,
                int64_t row, int64_t column, mlir::Value lane_row,
                mlir::Value lane_column);
  // The element of the tile at which an iteration of a loop over pieces of 16
  // bytes begins.
  mlir::Value elementAt(const Tile& tile, const Symbol* lane,
                        mlir::Value in_tile);
  mlir::Value plus(mlir::Value a, mlir::Value b);
  mlir::Value times(mlir::Value a, int64_t b);
  Emitter& emitter_;
  mlir::ImplicitLocOpBuilder& builder_;
  mlir::Type element_;
  bool warpgroups_;
  mlir::Value base_, elements_;  // scratch as bytes, and as elements
  mlir::Value warp_, g_, t_;
  // Row and column of the 8 x 8 matrix of which a lane loads a row. The
  // matrices are numbered down and then right, or right and then down.
  mlir::Value down_row_, down_column_, right_row_, right_column_;
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_FRAGMENTS_H_
