// Cuts a step as large as GPT-3's. Work that is quadratic in the step's size
// would exceed the test's time limit.
#include "compiler/autodiff/call_marks.h"
#include "compiler/core/schedule_generators.h"
#include "compiler/pipeline/cut.h"
#include "compiler/sharding/convert.h"
#include "dialects/nn/dialect.h"
#include "dialects/nn/math_builder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tests/compiler/pipeline/step_fixture.h"

namespace partita::pipeline {
namespace {

using llvm::SmallVector;
using mlir::Value;
using mlir::func::CallOp;
using mlir::func::FuncOp;

constexpr int kLayers = 96;
constexpr int kWeights = 12;  // per layer

// Calls of layer functions, and sums of their results.
class LargeStep {
 public:
  LargeStep(mlir::MLIRContext& context, const core::Schedule& schedule)
      : schedule_(schedule),
        builder_(&context),
        math_(builder_, builder_.getUnknownLoc()),
        type_(mlir::RankedTensorType::get({2}, builder_.getF32Type())),
        module_(mlir::ModuleOp::create(builder_.getUnknownLoc())) {}

  mlir::OwningOpRef<mlir::ModuleOp> build() {
    builder_.setInsertionPointToEnd(module_->getBody());
    forward_ = declare("forward", 1 + kWeights, 1);
    input_ = declare("backward_input", 1 + kWeights, 1);
    weight_ = declare("backward_weight", 2, kWeights);
    update_ = declare("update", 2, 1);
    const unsigned parameters = kLayers * kWeights;
    auto main = FuncOp::create(builder_, builder_.getUnknownLoc(), "main",
                               typeOf(1 + parameters, parameters));
    builder_.setInsertionPointToStart(main.addEntryBlock());
    main.setArgAttr(0, nn::kKindAttr, builder_.getStringAttr("input"));
    for (unsigned i = 0; i < parameters; ++i) {
      auto name = builder_.getStringAttr("w" + std::to_string(i));
      main.setArgAttr(1 + i, nn::kKindAttr,
                      builder_.getStringAttr("parameter"));
      main.setArgAttr(1 + i, nn::kNameAttr, name);
      main.setResultAttr(i, nn::kUpdatesAttr, name);
    }
    sums_.assign(parameters, Value());
    for (int k = 0; k < schedule_.microbatches; ++k) microbatch(main, k);
    SmallVector<Value> results;
    for (unsigned i = 0; i < parameters; ++i)
      results.push_back(
          call(update_, {main.getArgument(1 + i), sums_[i]}).getResult(0));
    mlir::func::ReturnOp::create(builder_, builder_.getUnknownLoc(), results);
    return std::move(module_);
  }

 private:
  mlir::FunctionType typeOf(unsigned inputs, unsigned results) {
    return builder_.getFunctionType(SmallVector<mlir::Type>(inputs, type_),
                                    SmallVector<mlir::Type>(results, type_));
  }

  FuncOp declare(const char* name, unsigned inputs, unsigned results) {
    auto function = FuncOp::create(builder_, builder_.getUnknownLoc(), name,
                                   typeOf(inputs, results));
    function.setPrivate();
    return function;
  }

  CallOp call(FuncOp callee, mlir::ValueRange operands) {
    return CallOp::create(builder_, builder_.getUnknownLoc(), callee, operands);
  }

  CallOp cell(FuncOp callee, mlir::ValueRange operands, int layer,
              int microbatch) {
    CallOp made = call(callee, operands);
    made->setAttr(
        autodiff::kStageAttr,
        builder_.getI64IntegerAttr(layer * schedule_.stages / kLayers));
    made->setAttr(autodiff::kMicrobatchAttr,
                  builder_.getI64IntegerAttr(microbatch));
    return made;
  }

  void microbatch(FuncOp main, int k) {
    const auto weights = [&](int layer) {
      return main.getArguments().slice(1 + layer * kWeights, kWeights);
    };
    SmallVector<Value> activations = {main.getArgument(0)};
    for (int layer = 0; layer < kLayers; ++layer) {
      SmallVector<Value> operands = {activations.back()};
      llvm::append_range(operands, weights(layer));
      activations.push_back(cell(forward_, operands, layer, k).getResult(0));
    }
    Value gradient = activations.back();
    for (int layer = kLayers; layer-- > 0;) {
      SmallVector<Value> operands = {gradient};
      llvm::append_range(operands, weights(layer));
      CallOp input = cell(input_, operands, layer, k);
      CallOp weight = cell(weight_, {activations[layer], gradient}, layer, k);
      input->setAttr(autodiff::kBackwardAttr,
                     builder_.getStringAttr(autodiff::kInputGradients));
      weight->setAttr(autodiff::kBackwardAttr,
                      builder_.getStringAttr(autodiff::kWeightGradients));
      gradient = input.getResult(0);
      for (int i = 0; i < kWeights; ++i) {
        Value& sum = sums_[layer * kWeights + i];
        sum = sum ? math_.add(sum, weight.getResult(i)) : weight.getResult(i);
      }
    }
  }

  const core::Schedule& schedule_;
  mlir::OpBuilder builder_;
  nn::MathBuilder math_;
  mlir::RankedTensorType type_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  FuncOp forward_, input_, weight_, update_;
  SmallVector<Value> sums_;
};

size_t operations(mlir::ModuleOp module) {
  return module.lookupSymbol<FuncOp>("main").front().getOperations().size();
}

class CutLargeTest : public StepTest {};

// Every value is computed once. An activation, or the gradient of one, is sent
// and received once if its next stage is on another rank.
TEST_F(CutLargeTest, NinetySixLayersSixtyFourMicrobatches) {
  context_.loadAllAvailableDialects();
  core::Mesh mesh;
  mesh.axes = {{"pipe", 8}};
  const dist::AxesAttr axes =
      sharding::axesAttr(&context_, {core::WholeAxis(mesh, 0)}, mesh);
  for (const core::Schedule& schedule :
       {core::OneForwardOneBackward(8, 64), core::Interleaved(8, 12, 64),
        core::ZeroBubbleH1(8, 64), core::ZeroBubbleV(8, 64)}) {
    auto module = LargeStep(context_, schedule).build();
    const auto programs = cutStages(*module, axes, schedule);
    ASSERT_TRUE(succeeded(programs));
    int hops = 0;
    for (int stage = 1; stage < schedule.stages; ++stage)
      hops +=
          schedule.rank_of_stage[stage] != schedule.rank_of_stage[stage - 1];
    size_t sum = 0;
    for (auto& program : *programs) sum += operations(*program) - 1;
    EXPECT_EQ(sum, operations(*module) - 1 +
                       size_t{2} * 2 * hops * schedule.microbatches);
  }
}

}  // namespace
}  // namespace partita::pipeline
