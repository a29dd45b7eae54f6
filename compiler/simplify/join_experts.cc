// Makes one mixture of experts of a sum of MLPs, one per expert; see passes.td.
#include <algorithm>

#include "compiler/simplify/expert_term.h"
#include "compiler/simplify/passes.h"
#include "compiler/simplify/stack_weights.h"
#include "compiler/simplify/stored_values.h"
#include "compiler/simplify/view.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::simplify {

#define GEN_PASS_DEF_JOINEXPERTSPASS
#include "compiler/simplify/passes.h.inc"

namespace {

using mlir::SmallVector;
using mlir::Value;
using mlir::arith::AddFOp;
using mlir::func::FuncOp;

// The summands of a sum of sums. Zeros are left out.
void collectSummands(Value sum, SmallVector<Value>& summands) {
  SmallVector<Value> stack = {sum};
  while (!stack.empty()) {
    const Value value = stack.pop_back_val();
    auto add = value.getDefiningOp<AddFOp>();
    if (add && (value == sum || value.hasOneUse())) {
      stack.push_back(add.getRhs());
      stack.push_back(add.getLhs());
    } else if (splatOf(value) != 0.0) {
      summands.push_back(value);
    }
  }
}

bool isSameLayer(const Linear& a, const Linear& b) {
  return a.matrix.getType() == b.matrix.getType() &&
         a.is_transposed == b.is_transposed && a.first == b.first &&
         a.count == b.count && !a.bias == !b.bias &&
         (!a.bias || a.bias.getType() == b.bias.getType());
}

// True if two terms are experts of one mixture.
bool areOfOneMixture(const ExpertTerm& a, const ExpertTerm& b) {
  return a.x == b.x && a.ids == b.ids && a.weights == b.weights &&
         a.rows == b.rows && a.choices == b.choices &&
         a.activation == b.activation && isSameLayer(a.up, b.up) &&
         isSameLayer(a.down, b.down) &&
         a.gate.has_value() == b.gate.has_value() &&
         (!a.gate || isSameLayer(*a.gate, *b.gate));
}

class JoinExpertsPass : public impl::JoinExpertsPassBase<JoinExpertsPass> {
  void runOnOperation() override {
    auto main = getOperation().lookupSymbol<FuncOp>("main");
    if (!main || main.isExternal()) {
      getOperation().emitError(
          "expected a function @main with a body, found none");
      return signalPassFailure();
    }
    SmallVector<AddFOp> sums;
    main.walk([&](AddFOp add) {
      const auto isSum = [](mlir::Operation* user) {
        return mlir::isa<AddFOp>(user);
      };
      const bool is_part =
          add->hasOneUse() && llvm::all_of(add->getUsers(), isSum);
      if (!is_part) sums.push_back(add);
    });
    WeightStacker weights(main);
    const int64_t before = mixtures;
    for (AddFOp sum : sums) join(sum, weights);
    if (mixtures == before) return;
    eraseDeadOperations(main);
    if (mlir::failed(weights.eraseReplaced())) signalPassFailure();
  }

  void join(AddFOp sum, WeightStacker& weights) {
    SmallVector<Value> summands;
    collectSummands(sum, summands);
    if (summands.size() < 2) return;
    SmallVector<SmallVector<ExpertTerm>> groups;
    SmallVector<Value> others;
    SmallVector<SmallVector<Value>> members;
    for (Value summand : summands) {
      const std::optional<ExpertTerm> term = matchExpertTerm(summand);
      if (!term) {
        others.push_back(summand);
        continue;
      }
      auto group = llvm::find_if(groups, [&](auto& terms) {
        return areOfOneMixture(terms.front(), *term);
      });
      const size_t place = group - groups.begin();
      if (group == groups.end()) {
        groups.emplace_back();
        members.emplace_back();
      }
      groups[place].push_back(*term);
      members[place].push_back(summand);
    }
    mlir::OpBuilder builder(sum);
    SmallVector<Value> results;
    for (auto [terms, values] : llvm::zip(groups, members)) {
      llvm::sort(terms, [](const ExpertTerm& a, const ExpertTerm& b) {
        return a.expert < b.expert;
      });
      bool are_all = terms.size() > 1;
      for (auto [i, term] : llvm::enumerate(terms))
        are_all &= term.expert == static_cast<int64_t>(i);
      if (!are_all) {
        llvm::append_range(others, values);
        continue;
      }
      weights.setReplaced(values);
      results.push_back(build(builder, sum, terms, weights));
    }
    if (results.empty()) return;
    mixtures += results.size();
    llvm::append_range(results, others);
    Value total = results.front();
    for (Value value : llvm::drop_begin(results))
      total = AddFOp::create(builder, sum.getLoc(), total, value);
    sum.replaceAllUsesWith(total);
  }

  static Value build(mlir::OpBuilder& builder, AddFOp sum,
                     mlir::ArrayRef<ExpertTerm> terms, WeightStacker& weights) {
    const mlir::Location loc = sum.getLoc();
    const ExpertTerm& first = terms.front();
    const auto matrices = [&](auto linearOf) {
      return stackMatrices(builder, loc, terms, linearOf, weights);
    };
    const auto biases = [&](auto linearOf) {
      return stackBiases(builder, loc, terms, linearOf, weights);
    };
    const auto gateOf = [](const ExpertTerm& t) -> const Linear& {
      return *t.gate;
    };
    const auto upOf = [](const ExpertTerm& t) -> const Linear& { return t.up; };
    const auto downOf = [](const ExpertTerm& t) -> const Linear& {
      return t.down;
    };
    Value gate, gate_bias;
    if (first.gate) {
      gate = matrices(gateOf);
      gate_bias = biases(gateOf);
    }
    const Value up = matrices(upOf), down = matrices(downOf),
                up_bias = biases(upOf), down_bias = biases(downOf);
    const int64_t rows = first.rows;
    const Value x = buildReshape(builder, loc, first.x,
                                 {rows, tensorType(up).getDimSize(2)});
    const auto result = tensorType(x).clone(
        mlir::ArrayRef<int64_t>{rows, tensorType(down).getDimSize(1)});
    const SmallVector<int64_t> shape = {rows, first.choices};
    const Value experts = nn::ExpertsOp::create(
        builder, loc, result, x, buildReshape(builder, loc, first.ids, shape),
        buildReshape(builder, loc, first.weights, shape), gate, up, down,
        gate_bias, up_bias, down_bias, first.activation);
    return buildReshape(builder, loc, experts, tensorType(sum).getShape());
  }

  // [experts, out, in].
  template <typename LinearOf>
  static Value stackMatrices(mlir::OpBuilder& builder, mlir::Location loc,
                             mlir::ArrayRef<ExpertTerm> terms,
                             LinearOf linearOf, WeightStacker& weights) {
    SmallVector<Value> values;
    for (const ExpertTerm& term : terms)
      values.push_back(linearOf(term).matrix);
    Value stacked = weights.stack(builder, loc, values);
    const Linear& first = linearOf(terms.front());
    if (first.is_transposed)
      stacked = buildTranspose(builder, loc, stacked, {0, 2, 1});
    return outputs(builder, loc, stacked, first);
  }

  // [experts, out]; null if there are none.
  template <typename LinearOf>
  static Value stackBiases(mlir::OpBuilder& builder, mlir::Location loc,
                           mlir::ArrayRef<ExpertTerm> terms, LinearOf linearOf,
                           WeightStacker& weights) {
    const Linear& first = linearOf(terms.front());
    if (!first.bias) return {};
    SmallVector<Value> values;
    for (const ExpertTerm& term : terms) values.push_back(linearOf(term).bias);
    Value stacked = weights.stack(builder, loc, values);
    const int64_t count = terms.size();
    stacked =
        buildReshape(builder, loc, stacked,
                     {count, tensorType(stacked).getNumElements() / count});
    return outputs(builder, loc, stacked, first);
  }

  // The outputs of dimension 1 that the product keeps.
  static Value outputs(mlir::OpBuilder& builder, mlir::Location loc,
                       Value stacked, const Linear& linear) {
    SmallVector<int64_t> shape(tensorType(stacked).getShape());
    if (shape[1] == linear.count) return stacked;
    shape[1] = linear.count;
    SmallVector<int64_t> starts(shape.size(), 0), strides(shape.size(), 1);
    starts[1] = linear.first;
    return nn::SliceOp::create(builder, loc, tensorType(stacked).clone(shape),
                               stacked, starts, strides);
  }
};

}  // namespace
}  // namespace partita::simplify
