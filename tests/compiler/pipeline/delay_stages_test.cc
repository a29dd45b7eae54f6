// Steps without a flush give, bit for bit, the results of the same functions
// run one by one on weights of the age that the schedule's table gives. So do
// the ranks' programs.
#include <cmath>

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
  // The initial values of a run, and the inputs of a step.
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

  // The results of each step, including updated parameters and states.
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

  // Gives each marked call separate parameters: "NAME@STAGE.MICROBATCH", with a
  // final 'b' for calls that compute gradients.
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
        const std::string name =
            argumentText(main, i, nn::kNameAttr) + "@" +
            std::to_string(stage.getInt()) + "." + std::to_string(microbatch) +
            (op.hasAttr(autodiff::kBackwardAttr) ? "b" : "");
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

  // A parameter of a marked call.
  struct Version {
    std::string own, name;  // "w@1.0b", "w"
    int stage = 0, microbatch = 0;
    bool is_gradients = false;
  };

  static std::vector<Version> versionsOf(FuncOp main) {
    std::vector<Version> versions;
    for (unsigned i = 0; i < main.getNumArguments(); ++i) {
      const std::string own = argumentText(main, i, nn::kNameAttr);
      const size_t at = own.find('@'), dot = own.find('.', at);
      if (at == std::string::npos) continue;
      versions.push_back({own, own.substr(0, at), std::stoi(own.substr(at + 1)),
                          std::stoi(own.substr(dot + 1)), own.back() == 'b'});
    }
    return versions;
  }

  // The decay of the moving average by parameter; `delay` gives the delay of a
  // version.
  template <typename Delay>
  static std::map<std::string, double> keptParts(
      const std::vector<Version>& versions, double correction, Delay delay) {
    std::map<std::string, std::pair<double, double>> delays;  // sum and count
    for (const Version& version : versions)
      if (version.is_gradients) {
        delays[version.name].first += delay(version);
        delays[version.name].second += 1;
      }
    std::map<std::string, double> kept;
    for (const auto& [name, sum] : delays)
      kept[name] = std::pow(correction, sum.second / sum.first);
    return kept;
  }

  // x + factor * y, in f32 like the program.
  static Tensor sum(const Tensor& x, double factor, const Tensor& y) {
    Tensor result = x;
    for (int64_t i = 0; i < x.size(); ++i) {
      const float product =
          static_cast<float>(factor) * static_cast<float>(y.getFloat(i));
      result.setFloat(i, static_cast<float>(x.getFloat(i)) + product);
    }
    return result;
  }

  // Runs one step after the other. Each microbatch uses the versions of the
  // run's table. With a correction, gradients use the newest weights and the
  // older weights estimated from their moving averages.
  static std::vector<Results> reference(mlir::ModuleOp module,
                                        const core::Schedule& schedule,
                                        double correction) {
    auto main = module.lookupSymbol<FuncOp>("main");
    separateVersions(main);
    std::map<std::pair<int, int>, int> table;  // by stage and microbatch
    for (const auto& cells : core::Unroll(schedule, kSteps + 2).cells)
      for (const core::Cell& cell : cells)
        table[{cell.stage, cell.microbatch}] = cell.version;
    const auto version_at = [&](const Version& version, int step) {
      return table.at(
          {version.stage, step * schedule.microbatches + version.microbatch});
    };
    const auto delay = [&](const Version& version) {
      return kSteps + 1 - version_at(version, kSteps + 1);
    };
    const std::vector<Version> versions = versionsOf(main);
    const auto kept = keptParts(versions, correction, delay);
    Results values, averages;
    begin(main, values);
    std::vector<Results> history = {values}, all;
    for (const auto& [name, part] : kept)
      averages.insert_or_assign(name, Tensor(values.at(name).type()));
    for (int step = 0; step < kSteps; ++step) {
      give(main, step, values);
      for (const Version& version : versions)
        values.insert_or_assign(
            version.own,
            correction > 0 && version.is_gradients
                ? sum(history.at(step).at(version.name), -delay(version),
                      averages.at(version.name))
                : history.at(version_at(version, step)).at(version.name));
      all.push_back(run(module, values));
      keep(all.back(), values);
      history.push_back(values);
      for (auto& [name, average] : averages) {
        const Tensor change =
            sum(values.at(name), -1, history.at(step).at(name));
        const Tensor none(average.type());
        average =
            sum(sum(none, kept.at(name), average), 1 - kept.at(name), change);
      }
    }
    return all;
  }

  void check(const core::Schedule& schedule, const std::string& weights,
             double correction = 0) {
    auto whole = step(
        core::OneForwardOneBackward(schedule.stages, schedule.microbatches));
    const std::vector<Results> expected =
        reference(*whole, schedule, correction);
    auto delayed = step(schedule, 0, 4, weights, correction);
    auto main = delayed->lookupSymbol<FuncOp>("main");
    const int late =
        (schedule.microbatches + schedule.stages - 2) / schedule.microbatches;
    expectLater(steps(main, *delayed), expected, late);
    expectLater(steps(main, cut(*delayed, schedule)), expected, late);
  }

  // Expects the reference's results some steps later, after initial empty
  // steps.
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

// PipeMare's second technique keeps no old weights for gradients.
TEST_F(DelayStagesTest, CorrectedVersions) {
  check(core::Async(2, 4), "newest", 0.5);
  check(core::Async(4, 4), "newest", 0.135);
  check(core::Async(4, 1), "newest", 0.135);
}

// A rank has as many microbatches in flight as with 1F1B. The state between
// steps is the activations of the microbatches in flight: for each stage, one
// less than the number of stages from it to the last.
TEST_F(DelayStagesTest, StatesAreThoseUnderWay) {
  const core::Schedule schedule = *core::Async2bw(4, 8);
  auto module = step(schedule);
  std::vector<int> wide;  // layers save activations of shape [1, 3, 10]
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
