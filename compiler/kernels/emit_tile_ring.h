// Tiles that come to shared memory by the tensor memory accelerator, which
// sm_90 has, in a ring of several stages.
//
// One thread of a block asks for a tile, box by box (TensorMap). Each stage has
// two barriers: `full` is passed when all of a tile's bytes are there, and
// `empty` when every warp has read it. All threads wait for both, so that what
// one does alone is short and needs no registers. A barrier counts phases: tile
// j is in phase j / stages of both barriers of its stage.
//
// What a target must provide, called by any thread. A barrier is 8 bytes of
// scratch, at base + offset, which nobody else touches.
//   void partita_barrier_make(ptr base, i64 offset, i32 arrivals)
//                         a phase ends with so many arrivals, and when what is
//                         expected has come; phase 0 begins. To be fenced by
//                         this thread (partita_fence_tiles), and seen by others
//                         when all have met
//   void partita_barrier_end(ptr base, i64 offset)
//                         there is no barrier any more
//   void partita_barrier_arrive(ptr base, i64 offset)
//   void partita_barrier_expect(ptr base, i64 offset, i32 bytes, i32 does)
//                         more bytes are to come in this phase; and an arrival.
//                         Nothing if `does` is 0, as below: without a branch,
//                         which would keep what a loop shares among its threads
//                         in registers of each
//   void partita_barrier_wait(ptr base, i64 offset, i32 parity)
//                         ends unless the phase is one of this parity
//   void partita_copy_box(ptr base, i64 offset, i64 barrier, ptr map, i32 x 4,
//                         i32 does)
//                         begins to copy the box of a map with four dimensions
//                         from this element on to base + offset; its bytes,
//                         zeros included, come at the barrier at base + barrier
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

inline constexpr int64_t kBarrierBytes = 16;  // of a stage
// Of scratch that a ring of at most four stages has beside its tiles.
inline constexpr int64_t kRingBytes = 128;

// Boxes of `rows` rows and kPanel columns of a tensor [batch, head, rows,
// columns] of 16-bit elements; none where it is computed, or where it does not
// lie as boxes want it: rows in one piece, everything at multiples of 16 bytes.
std::optional<TensorMap> boxesOf(Emitter& emitter, mlir::Value tensor,
                                 int64_t rows);

class TileRing {
 public:
  // A swizzled tile of each stage, and the boxes it consists of.
  struct Part {
    Tile tile;
    TensorMap map;
  };
  // In a kernel for teams of kBlock; the tiles lie in scratch that begins at
  // `base`, each stage `stage_elements` behind the one before.
  TileRing(Emitter& emitter, mlir::Value base, int64_t stages,
           int64_t stage_elements, llvm::ArrayRef<Part> parts);

  // --- Called by all threads ---
  // Before an item's first tile: what was in the ring's memory is read, and
  // what was written there is visible to copies. Its tiles are `count`, of this
  // batch and head; all stages but one are asked for.
  mlir::LogicalResult open(mlir::Value batch, mlir::Value head,
                           mlir::Value count);
  // The tile is there; the last one that has a stage then is asked for.
  void await(mlir::Value tile, mlir::Value count);
  // This warp has read the tile.
  mlir::LogicalResult release(mlir::Value tile);
  // After an item's last tile: all threads have come here.
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
  // Of the tile's phase, or of the one before.
  mlir::Value parity(mlir::Value tile, bool before = false);
  void call(llvm::StringRef function, mlir::ValueRange arguments);
  // By the thread that asks, if there is such a tile.
  void fill(mlir::Value tile, mlir::Value count);
  // Of every so many threads.
  mlir::Value isFirstOf(int64_t threads);
  // By the thread that asks; its warp goes on together.
  mlir::LogicalResult byOne(llvm::function_ref<void()> body);

  Emitter& emitter_;
  mlir::ImplicitLocOpBuilder& builder_;
  mlir::Value base_;
  int64_t stages_, stage_elements_;
  llvm::SmallVector<Tile> tiles_;
  Values maps_;
  int64_t barriers_;  // byte of scratch; full and empty of each stage
  Buffer origin_;     // batch and head, in scratch and in no registers
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_TILE_RING_H_
