// Steps that do not wait for each other give, bit for bit, what the same
// functions give one by one on weights as old as the schedule's table says; and
// so do the ranks' programs.
#include "compiler/autodiff/call_marks.h"
#include "compiler/core/schedule_generators.h"
#include "dialects/nn/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tests/compiler/pipeline/step_fixture.h"
#include "tests/compiler/simplify/evaluate.h"

namespace partita::pipeline {
namespace {

using mlir::func::FuncOp;
using nn::Tensor;

constexpr int kSteps = 5;

std::string argumentText(FuncOp main, unsigned i, const char* name) {
  return textOf(main.getArgAttr(i, name));
}

mlir::RankedTensorType typeOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}

class DelayStagesTest : public StepTest {
 protected:
  // What a run begins with, and the inputs of a step.
  static void begin(FuncOp main, Results& values) {
    for (mlir::BlockArgument argument : main.getArguments()) {
      const unsigned i = argument.getArgNumber();
      const std::string kind = argumentText(main, i, nn::kKindAttr);
      const std::string name = argumentText(main, i, nn::kNameAttr);
      if (kind == "parameter")
        values.insert_or_assign(
            name,
            simplify::madeUp(typeOf(argument), std::hash<std::string>()(name)));
      if (kind == "state")
        values.insert_or_assign(name, Tensor(typeOf(argument)));
    }
  }
  static void give(FuncOp main, int step, Results& values) {
    for (mlir::BlockArgument argument : main.getArguments()) {
      const unsigned i = argument.getArgNumber();
      if (argumentText(main, i, nn::kKindAttr) != "input") continue;
      const std::string name = argumentText(main, i, nn::kNameAttr);
      Tensor value = simplify::madeUp(typeOf(argument),
                                      std::hash<std::string>()(name) + step);
      if (name == "step") value.setInt(0, step + 1);
      if (name == "lr") value.setFloat(0, 0.01 * (step + 1));
      values.insert_or_assign(name, value);
    }
  }
  static void keep(const Results& results, Results& values) {
    for (const auto& [name, tensor] : results)
      values.insert_or_assign(name, tensor);
  }

  // The results of each step, updated parameters and states included.
  template <typename Module>
  static std::vector<Results> steps(FuncOp main, const Module& module) {
    Results values;
    begin(main, values);
    std::vector<Results> all;
    for (int step = 0; step < kSteps; ++step) {
      give(main, step, values);
      all.push_back(run(module, values));
      keep(all.back(), values);
    }
    return all;
  }

  // Gives each marked call parameters of its own: "NAME@STAGE.MICROBATCH".
  static void separateVersions(FuncOp main) {
    const unsigned count = main.getNumArguments();
    for (mlir::Operation& op : main.front()) {
      auto stage = op.getAttrOfType<mlir::IntegerAttr>(autodiff::kStageAttr);
      if (!stage) continue;
      auto mark =
          op.getAttrOfType<mlir::IntegerAttr>(autodiff::kMicrobatchAttr);
      const int64_t microbatch = mark ? mark.getInt() : 0;
      for (mlir::OpOperand& operand : op.getOpOperands()) {
        auto argument = llvm::dyn_cast<mlir::BlockArgument>(operand.get());
        if (!argument || argument.getArgNumber() >= count) continue;
        const unsigned i = argument.getArgNumber();
        if (argumentText(main, i, nn::kKindAttr) != "parameter") continue;
        const std::string name = argumentText(main, i, nn::kNameAttr) + "@" +
                                 std::to_string(stage.getInt()) + "." +
                                 std::to_string(microbatch);
        mlir::Builder builder(main.getContext());
        const unsigned last = main.getNumArguments();
        (void)main.insertArgument(
            last, argument.getType(),
            builder.getDictionaryAttr(builder.getNamedAttr(
                nn::kNameAttr, builder.getStringAttr(name))),
            main.getLoc());
        operand.set(main.getArgument(last));
      }
    }
  }

  // One step after the other; each microbatch with the versions of the run's
  // table.
  static std::vector<Results> reference(mlir::ModuleOp module,
                                        const core::Schedule& schedule) {
    auto main = module.lookupSymbol<FuncOp>("main");
    separateVersions(main);
    std::map<std::pair<int, int>, int> versions;  // by stage and microbatch
    for (const auto& cells : core::Unroll(schedule, kSteps + 2).cells)
      for (const core::Cell& cell : cells)
        versions[{cell.stage, cell.microbatch}] = cell.version;
    Results values;
    begin(main, values);
    std::vector<Results> history = {values}, all;
    for (int step = 0; step < kSteps; ++step) {
      give(main, step, values);
      for (unsigned i = 0; i < main.getNumArguments(); ++i) {
        const std::string own = argumentText(main, i, nn::kNameAttr);
        const size_t at = own.find('@'), dot = own.find('.', at);
        if (at == std::string::npos) continue;
        const int microbatch = std::stoi(own.substr(dot + 1));
        const int version =
            versions.at({std::stoi(own.substr(at + 1)),
                         step * schedule.microbatches + microbatch});
        values.insert_or_assign(own, history.at(version).at(own.substr(0, at)));
      }
      all.push_back(run(module, values));
      keep(all.back(), values);
      history.push_back(values);
    }
    return all;
  }

  void check(const core::Schedule& schedule, const std::string& weights) {
    auto whole = step(
        core::OneForwardOneBackward(schedule.stages, schedule.microbatches));
    const std::vector<Results> expected = reference(*whole, schedule);
    auto delayed = step(schedule, 0, 4, weights);
    auto main = delayed->lookupSymbol<FuncOp>("main");
    const int late =
        (schedule.microbatches + schedule.stages - 2) / schedule.microbatches;
    expectLater(steps(main, *delayed), expected, late);
    expectLater(steps(main, cut(*delayed, schedule)), expected, late);
  }

  // What the reference gives, some steps later; at first nothing.
  static void expectLater(const std::vector<Results>& actual,
                          const std::vector<Results>& expected, int late) {
    int updates = 0;
    for (int step = late; step < kSteps; ++step)
      for (const auto& [name, tensor] : expected[step - late]) {
        ASSERT_EQ(actual[step].count(name), 1u) << name;
        EXPECT_TRUE(actual[step].at(name).toBytes() == tensor.toBytes())
            << name << " of step " << step - late;
        updates += name.find('/') == std::string::npos;
      }
    EXPECT_GT(updates, 0);
    for (const auto& [name, tensor] : expected[0])
      if (tensor.shape().empty() || name.find("grad.") == 0)
        for (int64_t i = 0; i < tensor.size(); ++i)
          EXPECT_EQ(actual[0].at(name).getFloat(i), 0) << name;
  }
};

TEST_F(DelayStagesTest, TwoVersions) {
  check(*core::Async2bw(2, 4), "previous");
  check(*core::Async2bw(2, 1), "previous");
  check(*core::Async2bw(3, 4), "previous");
  check(*core::Async2bw(4, 4), "previous");
}

TEST_F(DelayStagesTest, NewestVersions) {
  check(core::Async(2, 4), "newest");
  check(core::Async(4, 4), "newest");
  check(core::Async(4, 2), "newest");
}

// A rank has as many microbatches in flight as with 1F1B: what one step leaves
// for the next are the activations of those that are under way, for each stage
// one less than there are stages from it on.
TEST_F(DelayStagesTest, StatesAreThoseUnderWay) {
  const core::Schedule schedule = *core::Async2bw(4, 8);
  auto module = step(schedule);
  std::vector<int> wide;  // activations that layers save are [1, 3, 10]
  for (auto& program : cut(*module, schedule)) {
    auto main = program->lookupSymbol<FuncOp>("main");
    wide.push_back(0);
    for (mlir::BlockArgument argument : main.getArguments())
      wide.back() +=
          typeOf(argument).getShape() == llvm::ArrayRef<int64_t>{1, 3, 10} &&
          argumentText(main, argument.getArgNumber(), nn::kKindAttr) == "state";
  }
  EXPECT_EQ(wide, (std::vector<int>{3, 2, 1, 0}));
}

}  // namespace
}  // namespace partita::pipeline
