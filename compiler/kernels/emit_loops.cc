// The emitter's scopes and loops.
#include <set>

#include "compiler/kernels/emit_elements.h"
#include "compiler/kernels/estimate_work.h"
#include "llvm/ADT/MapVector.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace partita::kernels {

using namespace mlir;

void Emitter::pushScope() {
  bool alone = !scopes_.empty() && scopes_.back().alone;
  scopes_.push_back({builder_.saveInsertionPoint(), {}, {}, {}, alone});
}

void Emitter::popScope() { scopes_.pop_back(); }

void Emitter::moveScopes(OpBuilder::InsertPoint to) {
  for (auto scope = scopes_.rbegin();
       scope != scopes_.rend() && scope->insertion.getBlock() == to.getBlock();
       ++scope)
    scope->insertion = to;
}

FailureOr<Lanes> Emitter::atDepth(int depth,
                                  llvm::function_ref<FailureOr<Lanes>()> body) {
  if (depth == this->depth()) return body();
  OpBuilder::InsertionGuard guard(builder_);
  std::vector<Scope> deeper(
      std::make_move_iterator(scopes_.begin() + depth + 1),
      std::make_move_iterator(scopes_.end()));
  scopes_.resize(depth + 1);
  builder_.restoreInsertionPoint(scopes_.back().insertion);
  FailureOr<Lanes> result = body();
  scopes_.insert(scopes_.end(), std::make_move_iterator(deeper.begin()),
                 std::make_move_iterator(deeper.end()));
  return result;
}

FailureOr<Lanes> Emitter::underMask(
    ArrayRef<Index> index, Value mask,
    llvm::function_ref<FailureOr<Lanes>(ArrayRef<Index>)> body) {
  pushScope();
  IndexVector masked(index.begin(), index.end());
  llvm::MapVector<const Symbol*, const Symbol*> symbols;
  for (const Index& i : index)
    for (const Term& term : i.terms())
      if (term.symbol->lanes != 0) symbols[term.symbol] = nullptr;
  for (auto& [from, to] : symbols) {
    Symbol fewer = *from;
    if (!fewer.unmasked) fewer.unmasked = from;
    fewer.mask = fewer.mask
                     ? Value(arith::AndIOp::create(builder_, fewer.mask, mask))
                     : mask;
    to = newSymbol(fewer);
    for (Index& i : masked) i = i.replaced(from, to);
  }
  FailureOr<Lanes> result = body(masked);
  popScope();
  return result;
}

FailureOr<Values> Emitter::withSymbol(const Symbol& symbol, ValueRange carried,
                                      LoopBody body) {
  pushScope();
  FailureOr<Values> result = body(newSymbol(symbol), carried);
  popScope();
  return result;
}

FailureOr<Values> Emitter::loop(int64_t extent, ValueRange init,
                                LoopBody body) {
  if (extent == 0) return Values(init);
  Symbol symbol;
  symbol.extent = extent;
  if (extent == 1) {
    symbol.value = indexConstant(0);
    return withSymbol(symbol, init, body);
  }
  return loop(indexConstant(0), indexConstant(extent), extent, init, body);
}

// Emits a loop over symbol = begin .. end-1 by `step`, in a new scope.
static FailureOr<Values> emitFor(
    ImplicitLocOpBuilder& builder, Value begin, Value end, Value step,
    int64_t trips, ValueRange init,
    llvm::function_ref<void(OpBuilder::InsertPoint)> move,
    llvm::function_ref<FailureOr<Values>(Value, ValueRange)> body) {
  auto loop = scf::ForOp::create(builder, begin, end, step, init);
  loop->setAttr(kTripsAttr, builder.getI64IntegerAttr(trips));
  move({loop->getBlock(), Block::iterator(loop)});
  Block* block = loop.getBody();
  if (init.empty())
    builder.setInsertionPoint(block->getTerminator());
  else
    builder.setInsertionPointToEnd(block);
  FailureOr<Values> carried =
      body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (succeeded(carried) && !init.empty()) {
    builder.setInsertionPointToEnd(block);
    scf::YieldOp::create(builder, *carried);
  }
  builder.setInsertionPointAfter(loop);
  move(builder.saveInsertionPoint());
  if (failed(carried)) return failure();
  return Values(loop.getResults());
}

FailureOr<Values> Emitter::loop(Value begin, Value end, int64_t extent,
                                ValueRange init, LoopBody body) {
  Symbol symbol;
  symbol.extent = extent;
  return emitFor(
      builder_, begin, end, indexConstant(1), extent, init,
      [&](OpBuilder::InsertPoint to) { moveScopes(to); },
      [&](Value value, ValueRange carried) {
        symbol.value = value;
        return withSymbol(symbol, carried, body);
      });
}

FailureOr<Values> Emitter::withThreadSymbol(const Symbol& symbol,
                                            ValueRange carried, LoopBody body) {
  pushScope();
  scopes_.back().alone = true;
  FailureOr<Values> result = body(newSymbol(symbol), carried);
  popScope();
  return result;
}

int64_t Emitter::laneStep(int64_t lanes) const {
  return sharesLoops() ? lanes * team_ : lanes;
}

Value Emitter::firstLane(Value begin, int64_t lanes) {
  if (!sharesLoops()) return begin;
  Value mine = arith::MulIOp::create(builder_, thread_, indexConstant(lanes));
  return arith::AddIOp::create(builder_, begin, mine);
}

Value Emitter::remainderMask(int64_t whole, int64_t lanes, int64_t rest) {
  auto type = VectorType::get({lanes}, builder_.getI1Type());
  Value mask =
      vector::ConstantMaskOp::create(builder_, type, ArrayRef<int64_t>{rest});
  if (!sharesLoops()) return mask;
  Value mine =
      arith::CmpIOp::create(builder_, arith::CmpIPredicate::eq, thread_,
                            indexConstant(whole / lanes % team_));
  return arith::AndIOp::create(
      builder_, mask, vector::BroadcastOp::create(builder_, type, mine));
}

FailureOr<Values> Emitter::laneLoop(int64_t extent, int64_t lanes,
                                    ValueRange init, LoopBody body) {
  Symbol symbol;
  symbol.extent = extent;
  symbol.lanes = lanes;
  int64_t whole = extent / lanes * lanes;
  Values carried(init);
  if (whole == lanes && !sharesLoops()) {
    symbol.value = indexConstant(0);
    FailureOr<Values> next = withThreadSymbol(symbol, carried, body);
    if (failed(next)) return failure();
    carried = *next;
  } else if (whole > 0) {
    int64_t step = laneStep(lanes);
    FailureOr<Values> next = emitFor(
        builder_, firstLane(indexConstant(0), lanes), indexConstant(whole),
        indexConstant(step), (whole + step - 1) / step, carried,
        [&](OpBuilder::InsertPoint to) { moveScopes(to); },
        [&](Value value, ValueRange inside) {
          symbol.value = value;
          return withThreadSymbol(symbol, inside, body);
        });
    if (failed(next)) return failure();
    carried = *next;
  }
  if (whole == extent) return carried;
  symbol.value = indexConstant(whole);
  symbol.mask = remainderMask(whole, lanes, extent - whole);
  return withThreadSymbol(symbol, carried, body);
}

FailureOr<Values> Emitter::laneLoop(Value begin, Value end, int64_t extent,
                                    int64_t span, int64_t lanes,
                                    ValueRange init, LoopBody body) {
  Symbol symbol;
  symbol.extent = extent;
  symbol.lanes = lanes;
  int64_t rest = extent % lanes;
  Value whole = end;
  if (rest != 0) whole = smaller(end, extent - rest);
  auto move = [&](OpBuilder::InsertPoint to) { moveScopes(to); };
  auto inside = [&](Value value, ValueRange carried) {
    symbol.value = value;
    return withThreadSymbol(symbol, carried, body);
  };
  Values carried(init);
  if (extent >= lanes) {
    int64_t step = laneStep(lanes);
    FailureOr<Values> next =
        emitFor(builder_, firstLane(begin, lanes), whole, indexConstant(step),
                (span + step - 1) / step, carried, move, inside);
    if (failed(next)) return failure();
    carried = *next;
  }
  if (rest == 0) return carried;
  Value reached = arith::CmpIOp::create(builder_, arith::CmpIPredicate::eq, end,
                                        indexConstant(extent));
  auto branch = scf::IfOp::create(builder_, ValueRange(carried).getTypes(),
                                  reached, /*addThenBlock=*/true,
                                  /*addElseBlock=*/!carried.empty());
  move({branch->getBlock(), Block::iterator(branch)});
  builder_.setInsertionPointToStart(branch.thenBlock());
  symbol.mask = remainderMask(extent - rest, lanes, rest);
  FailureOr<Values> tail = inside(indexConstant(extent - rest), carried);
  if (failed(tail)) return failure();
  builder_.setInsertionPointToEnd(branch.thenBlock());
  scf::YieldOp::create(builder_, *tail);
  if (!carried.empty()) {
    builder_.setInsertionPointToEnd(branch.elseBlock());
    scf::YieldOp::create(builder_, carried);
  }
  builder_.setInsertionPointAfter(branch);
  move(builder_.saveInsertionPoint());
  return Values(branch.getResults());
}

LogicalResult Emitter::branch(Value condition,
                              llvm::function_ref<LogicalResult()> body) {
  auto branch =
      scf::IfOp::create(builder_, condition, /*withElseRegion=*/false);
  moveScopes({branch->getBlock(), Block::iterator(branch)});
  builder_.setInsertionPoint(branch.thenBlock()->getTerminator());
  pushScope();
  LogicalResult result = body();
  popScope();
  builder_.setInsertionPointAfter(branch);
  moveScopes(builder_.saveInsertionPoint());
  return result;
}

//===----------------------------------------------------------------------===//
// Trials
//===----------------------------------------------------------------------===//

SmallVector<int64_t> Emitter::Recording::boundaries(
    const Symbol* symbol) const {
  std::set<int64_t> sizes;
  for (const Index& access : accesses) {
    for (const Term& term : access.terms()) {
      if (term.symbol != symbol) continue;
      if (term.divisor != 1) sizes.insert(term.divisor);
      if (term.modulus != 0) sizes.insert(term.divisor * term.modulus);
    }
  }
  return SmallVector<int64_t>(sizes.begin(), sizes.end());
}

void Emitter::noteReduction(ArrayRef<Index> index) {
  for (Recording* recording : active_)
    recording->reductions.emplace_back(index.begin(), index.end());
}

FailureOr<Values> Emitter::attempt(
    llvm::function_ref<FailureOr<Values>()> body,
    llvm::function_ref<bool(const Recording&)> accept, bool& accepted) {
  Recording recording;
  auto wrapper = scf::ExecuteRegionOp::create(builder_, TypeRange());
  moveScopes({wrapper->getBlock(), Block::iterator(wrapper)});
  Block& block = wrapper.getRegion().emplaceBlock();
  builder_.setInsertionPointToEnd(&block);
  active_.push_back(&recording);
  pushScope();
  FailureOr<Values> result = body();
  popScope();
  active_.pop_back();
  accepted = succeeded(result) && accept(recording);
  if (accepted)
    wrapper->getBlock()->getOperations().splice(Block::iterator(wrapper),
                                                block.getOperations());
  builder_.setInsertionPointAfter(wrapper);
  moveScopes(builder_.saveInsertionPoint());
  wrapper->erase();
  return result;
}

FailureOr<Emitter::Recording> Emitter::investigate(
    llvm::function_ref<FailureOr<Values>()> body) {
  Recording result;
  int outer = std::exchange(investigated_, depth() + 1);
  auto learn = [&](const Recording& recording) {
    result = recording;
    return false;
  };
  bool accepted;
  FailureOr<Values> emitted = attempt(body, learn, accepted);
  investigated_ = outer;
  if (failed(emitted)) return failure();
  return result;
}

}  // namespace partita::kernels
