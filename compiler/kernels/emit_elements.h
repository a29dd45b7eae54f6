// Emits the code that computes elements of a kernel function's values.
//
// Elements are computed on demand: a consumer asks for the element at an index,
// the emitter asks the defining operation's rule (KernelOpInterface), and so on
// down to loads from the arguments. Each (value, index) is emitted once, in the
// outermost scope (function, loop body, ...) that defines the symbols its index
// needs; so what does not depend on a loop leaves the loop, reductions
// included.
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
  mlir::Type element;  // of the tensor: i1 elements are stored as i8
};

class Emitter {
 public:
  // Emits into `body`, a function on flat memrefs (arguments, then results),
  // begin, end and scratch. `lanes` is the number of 32-bit elements in a
  // vector register, `team` how many threads compute an item together.
  Emitter(mlir::func::FuncOp kernel, mlir::func::FuncOp body, int64_t lanes,
          int64_t team = 1);

  mlir::ImplicitLocOpBuilder& builder() { return builder_; }
  mlir::func::FuncOp kernel() { return kernel_; }
  int64_t nativeLanes() const { return lanes_; }

  // --- Elements ---
  mlir::FailureOr<Lanes> element(mlir::Value tensor,
                                 llvm::ArrayRef<Index> index);
  // How many reductions lie one behind the other in what `tensor` is computed
  // from.
  int reductionsBehind(mlir::Value tensor);
  // Asks the memory system for what computing an element with lanes will load.
  mlir::LogicalResult prefetch(mlir::Value tensor, llvm::ArrayRef<Index> index);
  // Where an argument of the kernel lies.
  Buffer bufferOf(mlir::BlockArgument argument);
  // Elements at a symbolic position of a buffer, in compute type.
  Lanes load(const Buffer& buffer, const Index& position);
  void store(const Buffer& buffer, const Index& position, Lanes value);

  // A parameter of the function, behind its buffers: kTensorMapBytes, as the
  // target makes them of the map.
  mlir::Value addMap(TensorMap map);
  const std::vector<TensorMap>& maps() const { return maps_; }

  // A read-only array of the module with the elements of a constant.
  Buffer constantArray(mlir::DenseElementsAttr elements);

  // --- Lanes ---
  // The type that elements of `type` are held in.
  mlir::Type computeType(mlir::Type type);
  mlir::Type withLanes(mlir::Type type, int64_t lanes);
  mlir::Value splat(Lanes value, int64_t lanes);
  mlir::Value constant(mlir::Type type, double value,
                       int64_t lanes = 0);  // of a compute type
  mlir::Value indexConstant(int64_t value);
  mlir::Value smaller(mlir::Value index, int64_t bound);
  // Converts between a tensor's element type as stored and its compute type.
  mlir::Value toCompute(mlir::Value value, mlir::Type element);
  mlir::Value fromCompute(mlir::Value value, mlir::Type element);

  // --- Indices ---
  const Symbol* newSymbol(Symbol symbol);
  // A symbol for a computed integer in [0, extent), defined in the current
  // scope.
  const Symbol* opaque(Lanes value, int64_t extent, mlir::Value mask);
  // The same for a number that may lie outside, clamped. One symbol for one
  // (value, extent).
  const Symbol* clampedSymbol(Lanes value, int64_t extent, mlir::Value mask);
  // The lanes that exist at all of these; null: all lanes.
  mlir::Value maskOf(llvm::ArrayRef<Index> index);
  std::pair<Index, Index> split(const Index& index, int64_t size);
  IndexVector delinearize(const Index& position, llvm::ArrayRef<int64_t> shape);
  // The number itself, as `type` (integer or float).
  Lanes number(const Index& index, mlir::Type type);
  // Truth of low <= index < high, as i1.
  Lanes inRange(const Index& index, int64_t low, int64_t high);

  // --- Scopes and loops ---
  int depth() const { return static_cast<int>(scopes_.size()) - 1; }
  // Runs `body` in the scope `depth`, with what lies deeper set aside.
  mlir::FailureOr<Lanes> atDepth(
      int depth, llvm::function_ref<mlir::FailureOr<Lanes>()> body);
  // Runs `body` in a new scope in the same block, with `index` on fewer lanes.
  mlir::FailureOr<Lanes> underMask(
      llvm::ArrayRef<Index> index, mlir::Value mask,
      llvm::function_ref<mlir::FailureOr<Lanes>(llvm::ArrayRef<Index>)> body);

  // Called with the loop's symbol and the values carried so far; returns the
  // values carried on.
  using LoopBody = llvm::function_ref<mlir::FailureOr<Values>(
      const Symbol*, mlir::ValueRange)>;
  // symbol = 0 .. extent-1, the same in all lanes.
  mlir::FailureOr<Values> loop(int64_t extent, mlir::ValueRange init,
                               LoopBody body);
  // symbol = begin .. end-1, of a symbol whose extent is known.
  mlir::FailureOr<Values> loop(mlir::Value begin, mlir::Value end,
                               int64_t extent, mlir::ValueRange init,
                               LoopBody body);
  // symbol = 0 .. extent-1 by `lanes`; a remainder is masked.
  mlir::FailureOr<Values> laneLoop(int64_t extent, int64_t lanes,
                                   mlir::ValueRange init, LoopBody body);
  // symbol = begin .. end-1 by `lanes`, of a symbol whose extent is known;
  // `begin` is a multiple of `lanes`, and so is `end` unless it is the extent.
  // They are about `span` apart.
  mlir::FailureOr<Values> laneLoop(mlir::Value begin, mlir::Value end,
                                   int64_t extent, int64_t span, int64_t lanes,
                                   mlir::ValueRange init, LoopBody body);
  // Runs `body` where `condition` holds.
  mlir::LogicalResult branch(mlir::Value condition,
                             llvm::function_ref<mlir::LogicalResult()> body);
  // Runs `body` once, for a symbol of its own in a new scope.
  mlir::FailureOr<Values> withSymbol(const Symbol& symbol,
                                     mlir::ValueRange carried, LoopBody body);

  // --- Teams (emit_team.h) ---
  int64_t team() const { return team_; }
  // This one's number in its team; null: there is no team.
  mlir::Value thread() const { return thread_; }
  // Whether a loop over lanes here is divided among the threads of the team;
  // inside such a loop each thread is on its own.
  bool sharesLoops() const { return team_ > 1 && !scopes_.back().alone; }
  // withSymbol, for a symbol of which each thread of the team has its own.
  mlir::FailureOr<Values> withOwnSymbol(const Symbol& symbol,
                                        mlir::ValueRange carried,
                                        LoopBody body);

  // --- Trials ---
  // What emitted code accesses, by position; reductions also note the index
  // they were asked for.
  struct Recording {
    std::vector<Index> accesses;
    std::vector<IndexVector> reductions;
    // Sizes at which accesses divide `symbol`.
    llvm::SmallVector<int64_t> boundaries(const Symbol* symbol) const;
  };
  // True inside a trial that is thrown away in any case: there only accesses
  // matter.
  bool isInvestigating() const {
    return investigated_ > 0 && depth() >= investigated_;
  }
  mlir::FailureOr<Recording> investigate(
      llvm::function_ref<mlir::FailureOr<Values>()> body);
  void noteReduction(llvm::ArrayRef<Index> index);
  // Emits `body` into a region of its own, and takes it out again unless
  // `accept` likes what it recorded.
  mlir::FailureOr<Values> attempt(
      llvm::function_ref<mlir::FailureOr<Values>()> body,
      llvm::function_ref<bool(const Recording&)> accept, bool& accepted);

  // --- Scratch ---
  Buffer scratch(mlir::Type element, int64_t count);
  // Bytes of scratch, aligned to 64, and views of them, which may overlap.
  int64_t reserveScratch(int64_t bytes);
  mlir::Value scratchView(int64_t offset, mlir::Type stored, int64_t count);
  int64_t scratchBytes() const { return scratch_bytes_; }
  // From now on, in the current scope, elements of `tensor` at `base` + free
  // dimensions lie in `buffer`.
  struct Cached {
    IndexVector index;  // dimensions that are not free must equal these
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
    bool alone = false;  // each thread of the team is elsewhere
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
  // Bytes that a vector at `position` is certainly aligned to, if more than an
  // element; else nothing.
  mlir::IntegerAttr alignment(const Index& position, mlir::VectorType type);
  mlir::Value digit(mlir::Value number,
                    const Term& term);  // (number / divisor) % modulus * scale
  mlir::Value laneNumbers(
      const Symbol* symbol);  // vector of the symbol's values
  void pushScope();           // at the builder's insertion point
  void popScope();
  // In a loop over lanes: where this thread begins, how far its steps are, and
  // which lanes of the remainder, whose first is `whole`, are its own.
  mlir::Value firstLane(mlir::Value begin, int64_t lanes);
  int64_t laneStep(int64_t lanes) const;
  mlir::Value remainderMask(int64_t whole, int64_t lanes, int64_t rest);
  // Scopes that insert where the builder does, from now on insert at its (new)
  // place.
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
  int prefetching_ = 0;   // scope from which on loads only prefetch; 0: none
  int investigated_ = 0;  // scope from which on all is thrown away
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_EMIT_ELEMENTS_H_
