// Calls, loops, branches. Calls and branches are inlined. A loop runs at
// compile time as long as its condition is constant; the rest of it is a loop
// of nn.
#include "frontends/stablehlo/ops/ops.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace partita::stablehlo {
namespace {

// Maximum number of iterations of a loop.
constexpr int64_t kMaxIterations = 1 << 16;

std::optional<int64_t> constantInteger(Val value) {
  const auto constant = value.constant();
  if (!constant || constant.getNumElements() != 1 || value.isFloat())
    return std::nullopt;
  const llvm::APInt number = *constant.getValues<llvm::APInt>().begin();
  return value.isBool() ? static_cast<int64_t>(number.getZExtValue())
                        : number.getSExtValue();
}

}  // namespace

Val importCall(OpContext& n) {
  const std::string callee = n.text("callee");
  const Values arguments = n.all();
  if (n.failed()) return {};
  n.outAll(n.call(callee, arguments));
  return {};
}

// Composites that nn has are built at once; others by their decompositions.
Val importComposite(OpContext& n) {
  const std::string name = n.text("name");
  if (n.failed()) return {};
  if (name == "chlo.top_k" && n.op.getNumResults() == 2) return importTopK(n);
  if (name == "chlo.erf" && n.size() == 1 && n.in(0).isFloat())
    return n.e.unary<mlir::math::ErfOp>(n.in(0));
  if (name == "chlo.ragged_dot")
    if (const Val product = importRaggedDot(n)) return product;
  const std::string decomposition = n.text("decomposition");
  const Values arguments = n.all();
  if (n.failed()) return {};
  n.outAll(n.call(decomposition, arguments));
  return {};
}

Val importWhile(OpContext& n) {
  Values state = n.all();
  if (n.failed()) return {};
  const mlir::Location loc = n.e.loc();
  for (int64_t i = 0;; ++i) {
    const Values condition = n.region(0, state);
    if (n.failed()) return {};
    n.e.start(loc);
    if (condition.size() != 1)
      return n.error("expected one result of the condition");
    const auto goes_on = constantInteger(condition[0]);
    if (!goes_on) {
      if (condition[0].rank() != 0 || !condition[0].isBool())
        return n.error("expected a scalar of booleans from the condition");
      if (n.manual() != nullptr)
        return n.unsupported(
            "a loop whose number of iterations depends on data, within "
            "shard_map,");
      n.outAll(n.loop(condition[0], state));
      return {};
    }
    if (*goes_on == 0) break;
    if (i >= kMaxIterations)
      return n.unsupported("a loop of more than " +
                           llvm::Twine(kMaxIterations) + " iterations");
    Values next = n.region(1, state);
    if (n.failed()) return {};
    n.e.start(loc);
    if (next.size() != state.size())
      return n.error("expected as many results of the body as operands");
    state = std::move(next);
  }
  n.outAll(state);
  return {};
}

// A branch that depends on data runs all branches and selects. A loop in a
// branch that is not chosen makes no iteration.
Val importCase(OpContext& n) {
  const Val given = n.in(0);
  const int64_t count = n.op.getNumRegions();
  if (n.failed()) return {};
  if (given.rank() != 0 || count == 0 || given.isFloat())
    return n.error("expected a scalar and branches");
  const bool is_if = n.name == "if";
  if (is_if && count != 2) return n.error("expected two branches");
  const mlir::Location loc = n.e.loc();
  if (const auto constant = constantInteger(given)) {
    // An index out of range takes the last branch.
    const int64_t chosen = is_if ? (*constant != 0 ? 0 : 1)
                           : *constant < 0 || *constant >= count ? count - 1
                                                                 : *constant;
    const Values results = n.region(chosen, {});
    if (!n.failed()) n.e.start(loc);
    n.outAll(results);
    return {};
  }
  Values results;
  Val others;  // whether another branch than the last is chosen
  llvm::SmallVector<Val> is_chosen;
  for (int64_t i = 0; i + 1 < count; ++i) {
    is_chosen.push_back(
        is_if ? given
              : n.e.compare(Compare::eq, given, static_cast<double>(i)));
    others = others ? n.e.bitOr(others, is_chosen.back()) : is_chosen.back();
  }
  for (int64_t i = count - 1; i >= 0; --i) {
    n.e.start(loc);
    const Values branch =
        count == 1 ? n.region(0, {})
                   : n.branch(i, i < count - 1 ? is_chosen[i]
                                               : n.e.logicalNot(others));
    if (n.failed()) return {};
    n.e.start(loc);
    if (i == count - 1) {
      results = branch;
      continue;
    }
    if (branch.size() != results.size())
      return n.error("expected branches with the same results");
    for (auto [result, value] : llvm::zip(results, branch)) {
      if (value.shape() != result.shape())
        return n.error("expected branches with the same results");
      result = n.e.select(is_chosen[i], value, result);
    }
  }
  n.outAll(results);
  return {};
}

Val importBarrier(OpContext& n) {
  n.outAll(n.all());
  return {};
}

Val importCustomCall(OpContext& n) {
  const std::string target = n.text("call_target_name");
  if (n.failed()) return {};
  return n.unsupported(
      "a call of '" + target +
      (target.find("callback") != std::string::npos
           ? "', which runs Python on the host; leave callbacks out of the "
             "exported function: it"
           : "', which is code outside of the program; it"));
}

// A region with operands, as a call of it.
Val importNamedComputation(OpContext& n) {
  Values arguments = n.all();
  if (n.failed()) return {};
  for (const char* name : {"in_shardings", "out_shardings"})
    if (n.has(name))
      mlir::emitRemark(n.e.loc()) << name << " of a named computation: not "
                                  << "used, as it is inlined";
  n.outAll(n.region(0, arguments));
  return {};
}

// Without results: tensors of one group are to be divided alike.
Val importShardingGroup(OpContext& n) {
  mlir::emitRemark(n.e.loc())
      << "a sharding group: not used, as each tensor is divided on its own";
  return {};
}

Val importConstraint(OpContext& n) {
  const Val x = n.in(0);
  return n.failed() ? Val() : n.constrain(x, "sharding");
}

}  // namespace partita::stablehlo
