// Makes one matrix product of all stored matrices that multiply the same
// tensor; see passes.td.
#include <map>

#include "compiler/simplify/passes.h"
#include "compiler/simplify/stored_values.h"
#include "compiler/simplify/view.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::simplify {

#define GEN_PASS_DEF_MERGEPROJECTIONSPASS
#include "compiler/simplify/passes.h.inc"

namespace {

using mlir::SmallVector;
using mlir::Value;
using mlir::func::FuncOp;

// True if the value is a packed weight's numbers. Concatenating these would
// unpack them.
bool isUnpacked(Value value) {
  mlir::Operation* producer = value.getDefiningOp();
  while (mlir::isa_and_nonnull<nn::ReshapeOp, nn::TransposeOp>(producer))
    producer = producer->getOperand(0).getDefiningOp();
  return mlir::isa_and_nonnull<nn::DequantizeOp>(producer);
}

// True if the product is x W with a stored matrix W that exists before `point`.
bool isProjection(nn::DotGeneralOp dot, const StoredValues& stored,
                  mlir::Operation* point) {
  const Value weight = dot.getRhs();
  mlir::Operation* producer = weight.getDefiningOp();
  return dot.getLhsBatch().empty() && dot.getRhsContract().size() == 1 &&
         tensorType(weight).getRank() == 2 && stored.contains(weight) &&
         !isUnpacked(weight) && !stored.contains(dot.getLhs()) &&
         (!producer || producer->isBeforeInBlock(point));
}

// Replaces `dots`, which share the left operand and its contracted dimension,
// by one product and slices of it.
void merge(mlir::ArrayRef<nn::DotGeneralOp> dots) {
  nn::DotGeneralOp first = dots.front();
  mlir::OpBuilder builder(first);
  const mlir::Location loc = first.getLoc();
  const int64_t axis = 1 - first.getRhsContract().front();
  SmallVector<Value> weights;
  int64_t columns = 0;
  for (nn::DotGeneralOp dot : dots) {
    weights.push_back(dot.getRhs());
    columns += tensorType(dot.getRhs()).getDimSize(axis);
  }
  SmallVector<int64_t> shape(tensorType(first.getRhs()).getShape());
  shape[axis] = columns;
  const Value weight = nn::ConcatOp::create(
      builder, loc, tensorType(first.getRhs()).clone(shape), weights, axis);
  const Value product =
      nn::DotGeneralOp::create(builder, loc, first.getLhs(), weight, {}, {},
                               first.getLhsContract(), first.getRhsContract());
  SmallVector<int64_t> starts(tensorType(product).getRank(), 0),
      strides(starts.size(), 1);
  for (nn::DotGeneralOp dot : dots) {
    const Value slice = nn::SliceOp::create(builder, loc, dot.getType(),
                                            product, starts, strides);
    starts.back() += dot.getType().getShape().back();
    dot.replaceAllUsesWith(slice);
  }
  for (nn::DotGeneralOp dot : dots) dot.erase();
}

class MergeProjectionsPass
    : public impl::MergeProjectionsPassBase<MergeProjectionsPass> {
  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<FuncOp>("main");
    if (!main || main.isExternal()) {
      getOperation().emitError(
          "expected a function @main with a body, found none");
      return signalPassFailure();
    }
    const CallGraph graph(main);
    const StoredValues stored(main, graph);
    for (FuncOp function : graph.functions) mergeIn(function, stored);
  }

  void mergeIn(FuncOp function, const StoredValues& stored) {
    using Key = std::tuple<void*, std::vector<int64_t>, int64_t>;
    std::map<Key, size_t> known;
    SmallVector<SmallVector<nn::DotGeneralOp>> groups;
    for (nn::DotGeneralOp dot : function.front().getOps<nn::DotGeneralOp>()) {
      if (!isProjection(dot, stored, dot)) continue;
      const Key key(dot.getLhs().getAsOpaquePointer(),
                    dot.getLhsContract().vec(), dot.getRhsContract().front());
      const auto [found, is_new] = known.try_emplace(key, groups.size());
      if (is_new) groups.emplace_back();
      SmallVector<nn::DotGeneralOp>& group = groups[found->second];
      if (group.empty() || isProjection(dot, stored, group.front()))
        group.push_back(dot);
    }
    for (const SmallVector<nn::DotGeneralOp>& group : groups) {
      if (group.size() < 2) continue;
      merge(group);
      merged += group.size();
    }
  }
};

}  // namespace
}  // namespace partita::simplify
