// Emits the code that computes elements of a kernel function's values.
//
// Elements are computed on demand: a consumer asks for the element at an index,
// the emitter asks the defining operation's rule (KernelOpInterface), and so on
// down to loads from the arguments. Each (value, index) is emitted once, in the
// outermost scope (function, loop body, ...) that defines the symbols of its
// index. So loop-invariant code, reductions included, is outside of the loop.
#ifndef PARTITA_COMPILER_KERNELS_EMIT_ELEMENTS_H_
#define PARTITA_COMPILER_KERNELS_EMIT_ELEMENTS_H_

#include <deque>
#include <map>
#include <vector>

#include "compiler/kernels/kernel_op_interface.h"
#include "compiler/kernels/tensor_map.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace partita::kernels {

using Values = llvm::SmallVector<mlir::Value, 2>;

// A row-major array that generated code reads or writes: a flat memref and how
// its elements are stored.
struct Buffer {
  mlir::Value memref;
  mlir::Type element;  // of the tensor; i1 is stored as i8
};

class Emitter {
 public:
  // Emits into `body`, a function on flat memrefs (arguments, then results),
  // begin, end and scratch. `lanes` is the number of 32-bit elements in a
  // vector register, `team` the number of threads that compute an item
  // together.
  Emitter(mlir::func::FuncOp kernel, mlir::func::FuncOp body, int64_t lanes,
          int64_t team = 1);

  mlir::ImplicitLocOpBuilder& builder() { return builder_; }
  mlir::func::FuncOp kernel() { return kernel_; }
  int64_t nativeLanes() const { return lanes_; }

  // --- Elements ---
  mlir::FailureOr<Lanes> element(mlir::Value tensor,
                                 llvm::ArrayRef<Index> index);
  // Largest number of reductions on a path from the arguments to `tensor`.
  int reductionsBehind(mlir::Value tensor);
  // Prefetches the memory that computing an element with lanes loads.
  mlir::LogicalResult prefetch(mlir::Value tensor, llvm::ArrayRef<Index> index);
  // The memory of an argument of the kernel.
  Buffer bufferOf(mlir::BlockArgument argument);
  // Loads elements at a symbolic position of a buffer, converted to compute
  // type.
  Lanes load(const Buffer& buffer, const Index& position);
  void store(const Buffer& buffer, const Index& position, Lanes value);

  // Adds a parameter of kTensorMapBytes behind the function's buffers. The
  // target passes its own encoding of the map there.
  mlir::Value addMap(TensorMap map);
  const std::vector<TensorMap>& maps() const { return maps_; }

  // A read-only global array with the elements of a constant.
  Buffer constantArray(mlir::DenseElementsAttr elements);

  // --- Lanes ---
  // The type in which generated code holds elements of `type`.
  mlir::Type computeType(mlir::Type type);
  mlir::Type withLanes(mlir::Type type, int64_t lanes);
  mlir::Value splat(Lanes value, int64_t lanes);
  mlir::Value constant(mlir::Type type, double value,
                       int64_t lanes = 0);  // `type` is a compute type
  mlir::Value indexConstant(int64_t value);
  mlir::Value smaller(mlir::Value index, int64_t bound);
  // Converts between a tensor's element type as stored and its compute type.
  mlir::Value toCompute(mlir::Value value, mlir::Type element);
  mlir::Value fromCompute(mlir::Value value, mlir::Type element);

  // --- Indices ---
  const Symbol* newSymbol(Symbol symbol);
  // A symbol for an integer in [0, extent) computed at run time, defined in the
  // current scope.
  const Symbol* opaque(Lanes value, int64_t extent, mlir::Value mask);
  // The same for an integer that may lie outside: it is clamped. Equal (value,
  // extent) share one symbol.
  const Symbol* clampedSymbol(Lanes value, int64_t extent, mlir::Value mask);
  // Mask of the lanes that exist at all of these indices; null: all lanes.
  mlir::Value maskOf(llvm::ArrayRef<Index> index);
  std::pair<Index, Index> split(const Index& index, int64_t size);
  IndexVector delinearize(const Index& position, llvm::ArrayRef<int64_t> shape);
  // The index as a number of `type` (integer or float).
  Lanes number(const Index& index, mlir::Type type);
  // low <= index < high, as i1.
  Lanes inRange(const Index& index, int64_t low, int64_t high);

  // --- Scopes and loops ---
  int depth() const { return static_cast<int>(scopes_.size()) - 1; }
  // Runs `body` in the scope `depth`, with deeper scopes set aside.
  mlir::FailureOr<Lanes> atDepth(
      int depth, llvm::function_ref<mlir::FailureOr<Lanes>()> body);
  // Runs `body` in a new scope of the same block, with the lanes of `index`
  // restricted by `mask`.
  mlir::FailureOr<Lanes> underMask(
      llvm::ArrayRef<Index> index, mlir::Value mask,
      llvm::function_ref<mlir::FailureOr<Lanes>(llvm::ArrayRef<Index>)> body);

  // Takes the loop's symbol and the loop-carried values; returns their next
  // values.
  using LoopBody = llvm::function_ref<mlir::FailureOr<Values>(
      const Symbol*, mlir::ValueRange)>;
  // Emits a loop over symbol = 0 .. extent-1, the same in all lanes.
  mlir::FailureOr<Values> loop(int64_t extent, mlir::ValueRange init,
                               LoopBody body);
  // Emits a loop over symbol = begin .. end-1, for a symbol in [0, extent).
  mlir::FailureOr<Values> loop(mlir::Value begin, mlir::Value end,
                               int64_t extent, mlir::ValueRange init,
                               LoopBody body);
  // Emits a loop over symbol = 0 .. extent-1 by `lanes`; a remainder is masked.
  mlir::FailureOr<Values> laneLoop(int64_t extent, int64_t lanes,
                                   mlir::ValueRange init, LoopBody body);
  // Emits a loop over symbol = begin .. end-1 by `lanes`, for a symbol in [0,
  // extent). `begin` is a multiple of `lanes`, and so is `end` unless it is
  // `extent`. `span` estimates end - begin.
  mlir::FailureOr<Values> laneLoop(mlir::Value begin, mlir::Value end,
                                   int64_t extent, int64_t span, int64_t lanes,
                                   mlir::ValueRange init, LoopBody body);
  // Runs `body` where `condition` holds.
  mlir::LogicalResult branch(mlir::Value condition,
                             llvm::function_ref<mlir::LogicalResult()> body);
  // Runs `body` once, in a new scope, with this symbol.
  mlir::FailureOr<Values> withSymbol(const Symbol& symbol,
                                     mlir::ValueRange carried, LoopBody body);

  // --- Teams (emit_team.h) ---
  int64_t team() const { return team_; }
  // This thread's number in its team; null: there is no team.
  mlir::Value thread() const { return thread_; }
  // True if a loop over lanes that is emitted here is divided among the threads
  // of the team. Inside such a loop each thread works alone.
  bool sharesLoops() const { return team_ > 1 && !scopes_.back().alone; }
  // Like withSymbol, for a symbol whose value differs between the team's
  // threads.
  mlir::FailureOr<Values> withThreadSymbol(const Symbol& symbol,
                                           mlir::ValueRange carried,
                                           LoopBody body);

  // --- Trials ---
  // The positions that emitted code accesses, and the indices at which
  // reductions were asked for.
  struct Recording {
    std::vector<Index> accesses;
    std::vector<IndexVector> reductions;
    // Sizes at which accesses divide `symbol`.
    llvm::SmallVector<int64_t> boundaries(const Symbol* symbol) const;
  };
  // True inside a trial whose code is always discarded: only its accesses
  // matter.
  bool isInvestigating() const {
    return investigated_ > 0 && depth() >= investigated_;
  }
  mlir::FailureOr<Recording> investigate(
      llvm::function_ref<mlir::FailureOr<Values>()> body);
  void noteReduction(llvm::ArrayRef<Index> index);
  // Emits `body` into a region of its own. Removes it again unless `accept`
  // returns true for the recorded accesses.
  mlir::FailureOr<Values> attempt(
      llvm::function_ref<mlir::FailureOr<Values>()> body,
      llvm::function_ref<bool(const Recording&)> accept, bool& accepted);

  // --- Scratch ---
  Buffer scratch(mlir::Type element, int64_t count);
  // Bytes of scratch, aligned to 64, and views of them, which may overlap.
  int64_t reserveScratch(int64_t bytes);
  mlir::Value scratchView(int64_t offset, mlir::Type stored, int64_t count);
  int64_t scratchBytes() const { return scratch_bytes_; }
  // From now on, in the current scope, `buffer` holds the elements of `tensor`
  // described by `cached`.
  struct Cached {
    IndexVector index;  // free dimensions take any index, the others this one
    llvm::SmallVector<int64_t>
        strides;     // per dimension of the tensor; -1: not free
    Index position;  // of the element with all free dimensions 0
    Buffer buffer;
  };
  void cache(mlir::Value tensor, Cached cached);
  bool isCached(mlir::Value tensor) const;

 private:
  using Key = llvm::SmallVector<int64_t, 8>;
  struct Scope {
    mlir::OpBuilder::InsertPoint insertion;
    std::map<Key, Lanes> elements;
    std::map<void*, std::vector<Cached>> cached;
    std::map<std::pair<void*, int64_t>, const Symbol*> clamped;
    bool alone = false;  // inside a loop that the team shares
  };
  // A position as address arithmetic: base + k * stride for lane k, or one
  // offset per lane.
  struct Address {
    mlir::Value base;
    int64_t stride = 0;
    mlir::Value offsets;
    int64_t lanes = 0;
    mlir::Value mask;  // lanes that exist; null: all
  };

  static Key keyOf(mlir::Value tensor, llvm::ArrayRef<Index> index);
  mlir::FailureOr<Lanes> computeElement(mlir::Value tensor,
                                        llvm::ArrayRef<Index> index);
  Address address(const Index& position);
  // Known alignment of a vector access at `position`, in bytes; null if it is
  // not more than an element's.
  mlir::IntegerAttr alignment(const Index& position, mlir::VectorType type);
  mlir::Value digit(mlir::Value number,
                    const Term& term);  // (number / divisor) % modulus * scale
  mlir::Value laneNumbers(
      const Symbol* symbol);  // vector of the symbol's values
  void pushScope();           // at the builder's insertion point
  void popScope();
  // For a loop over lanes that the team shares: this thread's first lane, its
  // step, and its lanes of the remainder, which begins at `whole`.
  mlir::Value firstLane(mlir::Value begin, int64_t lanes);
  int64_t laneStep(int64_t lanes) const;
  mlir::Value remainderMask(int64_t whole, int64_t lanes, int64_t rest);
  // Moves the insertion point of all scopes that insert into the block of `to`.
  void moveScopes(mlir::OpBuilder::InsertPoint to);

  mlir::func::FuncOp kernel_, body_;
  mlir::ImplicitLocOpBuilder builder_;
  int64_t lanes_;
  int64_t team_;
  mlir::Value thread_;
  mlir::Type lane_index_;  // integer type of per-lane index arithmetic
  std::vector<Scope> scopes_;
  std::deque<Symbol> symbols_;
  std::vector<Recording*> active_;
  llvm::DenseMap<mlir::Value, int> reductions_behind_;
  int64_t scratch_bytes_ = 0;
  std::vector<TensorMap> maps_;
  int constants_ = 0;
  int prefetching_ = 0;   // from this scope on, loads only prefetch; 0: none
  int investigated_ = 0;  // from this scope on, code is discarded; 0: none
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_ELEMENTS_H_
