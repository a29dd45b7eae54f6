// A ring of tiles in shared memory, which sm_90's tensor memory accelerator
// fills.
//
// One thread of a block requests a tile, box by box (TensorMap). Each stage has
// two barriers: `full` completes a phase when all bytes of a tile have arrived,
// `empty` when every warp has read it. All threads wait for both, so the
// requesting thread does little alone and needs no registers for it. A barrier
// counts phases: tile j uses phase j / stages of both barriers of its stage.
//
// A target must provide these functions, called by any thread. A barrier is 8
// bytes of scratch, at base + offset, which nothing else accesses.
//   void partita_barrier_make(ptr base, i64 offset, i32 arrivals)
//                         begins phase 0. A phase ends after this number of
//                         arrivals, when all expected bytes have come. This
//                         thread must fence (partita_fence_tiles); others see
//                         the barrier when all have met
//   void partita_barrier_end(ptr base, i64 offset)
//                         destroys the barrier
//   void partita_barrier_arrive(ptr base, i64 offset)
//   void partita_barrier_expect(ptr base, i64 offset, i32 bytes, i32 does)
//                         expects more bytes in this phase, and arrives. Does
//                         nothing if `does` is 0, like partita_copy_box. A
//                         branch instead would keep values that a loop shares
//                         among its threads in registers of each thread
//   void partita_barrier_wait(ptr base, i64 offset, i32 parity)
//                         waits while the current phase has this parity
//   void partita_copy_box(ptr base, i64 offset, i64 barrier, ptr map, i32 x 4,
//                         i32 does)
//                         begins to copy the box of a map with four dimensions
//                         from this element on to base + offset. Its bytes,
//                         zeros included, arrive at the barrier at
//                         base + barrier
#ifndef PARTITA_COMPILER_KERNELS_EMIT_TILE_RING_H_
#define PARTITA_COMPILER_KERNELS_EMIT_TILE_RING_H_

#include <optional>

#include "compiler/kernels/emit_fragments.h"

namespace partita::kernels {

inline constexpr char kBarrierMake[] = "partita_barrier_make";
inline constexpr char kBarrierEnd[] = "partita_barrier_end";
inline constexpr char kBarrierArrive[] = "partita_barrier_arrive";
inline constexpr char kBarrierExpect[] = "partita_barrier_expect";
inline constexpr char kBarrierWait[] = "partita_barrier_wait";
inline constexpr char kCopyBox[] = "partita_copy_box";

inline constexpr int64_t kBarrierBytes = 16;  // both barriers of a stage
// Scratch of a ring of up to four stages, in addition to its tiles.
inline constexpr int64_t kRingBytes = 128;

// The map for boxes of `rows` rows and kPanel columns of a tensor [batch, head,
// rows, columns] of 16-bit elements. None if the tensor is computed, or if its
// layout does not allow boxes: rows must be contiguous, and everything must lie
// at multiples of 16 bytes.
std::optional<TensorMap> boxesOf(Emitter& emitter, mlir::Value tensor,
                                 int64_t rows);

class TileRing {
 public:
  // The swizzled tile of each stage, and the boxes that fill it.
  struct Part {
    Tile tile;
    TensorMap map;
  };
  // For a kernel with teams of kBlock. The tiles lie in scratch that begins at
  // `base`; a stage begins `stage_elements` after the one before.
  // `starts_later`: an item's first tile need not begin at row 0. `list`: the
  // numbers of the tiles to copy, in i32; null: one after the other. It has
  // `stages` more than any position requires.
  TileRing(Emitter& emitter, mlir::Value base, int64_t stages,
           int64_t stage_elements, llvm::ArrayRef<Part> parts,
           bool starts_later = false, const Buffer& list = {});

  // --- Called by all threads ---
  // Called before an item's first tile. Waits until all threads have read the
  // ring's memory, and makes their writes there visible to copies. The item has
  // `count` tiles of this batch element and head, from row `first` on; null: 0.
  // With a list, `first` is a position in it.
  // Requests the first tiles, for all stages but one.
  mlir::LogicalResult open(mlir::Value batch, mlir::Value head,
                           mlir::Value count, mlir::Value first);
  // Requests the next tile that is not requested yet, once its stage is empty.
  // Then waits for `tile`.
  void await(mlir::Value tile, mlir::Value count);
  // Declares that this warp has read the tile.
  mlir::LogicalResult release(mlir::Value tile);
  // Called after an item's last tile. Waits for all threads.
  mlir::LogicalResult close();

  // Elements before the tile.
  mlir::Value shiftOf(mlir::Value tile);

 private:
  mlir::Value index(int64_t value) { return emitter_.indexConstant(value); }
  mlir::Value i32(int64_t value);
  mlir::Value toI32(mlir::Value index);
  mlir::Value toI64(mlir::Value index);
  // tile % stages * scale + offset
  mlir::Value ofStage(mlir::Value tile, int64_t scale, int64_t offset);
  mlir::Value full(mlir::Value tile) {
    return ofStage(tile, kBarrierBytes, barriers_);
  }
  mlir::Value empty(mlir::Value tile) {
    return ofStage(tile, kBarrierBytes, barriers_ + kBarrierBytes / 2);
  }
  // Parity of the tile's phase, or of the phase before it.
  mlir::Value parity(mlir::Value tile, bool before = false);
  void call(llvm::StringRef function, mlir::ValueRange arguments);
  // Requests the tile if it exists. Only the requesting thread acts.
  void fill(mlir::Value tile, mlir::Value count);
  // True in the first of every `threads` threads.
  mlir::Value isFirstOf(int64_t threads);
  // Runs `body` in the requesting thread; its warp waits for it.
  mlir::LogicalResult byOne(llvm::function_ref<void()> body);

  Emitter& emitter_;
  mlir::ImplicitLocOpBuilder& builder_;
  mlir::Value base_;
  int64_t stages_, stage_elements_;
  llvm::SmallVector<Tile> tiles_;
  Values maps_;
  int64_t barriers_;  // byte of scratch; full and empty of each stage
  bool starts_later_;
  Buffer list_;
  Buffer origin_;  // batch, head and `first`; in scratch to save registers
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_TILE_RING_H_
