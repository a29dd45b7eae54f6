// Runs the compiler's phases up to the cut, and an interpreter for each rank.
#include "tests/compiler/pipeline/step_fixture.h"

#include <deque>

#include "compiler/autodiff/gradient.h"
#include "compiler/driver/model_phases.h"
#include "compiler/partition/local_form.h"
#include "compiler/pipeline/cut.h"
#include "compiler/pipeline/passes.h"
#include "compiler/sharding/convert.h"
#include "compiler/sharding/passes.h"
#include "dialects/dist/dialect.h"
#include "dialects/nn/interpreter.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "tests/compiler/simplify/evaluate.h"

namespace partita::pipeline {
namespace {

using llvm::SmallVector;
using mlir::func::FuncOp;
using nn::Tensor;

constexpr char kModel[] = R"(
func.func private @layer(%x: tensor<8x3x6xf32>, %u: tensor<6x10xf32>, %d: tensor<10x6xf32>) -> tensor<8x3x6xf32> {
  %0 = nn.dot_general %x, %u contract = [2] x [0] : tensor<8x3x6xf32>, tensor<6x10xf32> -> tensor<8x3x10xf32>
  %1 = math.tanh %0 : tensor<8x3x10xf32>
  %2 = nn.dot_general %1, %d contract = [2] x [0] : tensor<8x3x10xf32>, tensor<10x6xf32> -> tensor<8x3x6xf32>
  %3 = arith.addf %x, %2 : tensor<8x3x6xf32>
  return %3 : tensor<8x3x6xf32>
}
func.func @main(%ids: tensor<8x3xi64> {nn.kind = "input", nn.name = "ids"},
                %e: tensor<7x6xf32> {nn.kind = "parameter", nn.name = "e"},
                LAYER_ARGUMENTS)
    -> (tensor<8x3x7xf32> {nn.name = "logits"}) {
  %i = nn.reshape %ids : tensor<8x3xi64> -> tensor<8x3x1xi64>
  %0 = nn.gather %e[%i] axes = [0] : tensor<7x6xf32>, tensor<8x3x1xi64> -> tensor<8x3x6xf32>
  LAYER_CALLS
  %y = nn.dot_general %LAST, %e contract = [2] x [1] : tensor<8x3x6xf32>, tensor<7x6xf32> -> tensor<8x3x7xf32>
  return %y : tensor<8x3x7xf32>
}
)";

void replace(std::string& text, const std::string& place,
             const std::string& with) {
  text.replace(text.find(place), place.size(), with);
}

std::string modelText(int layers) {
  std::string arguments, calls, last = "0";
  for (int i = 0; i < layers; ++i) {
    const std::string n = std::to_string(i);
    for (auto [name, shape] : {std::pair("u", "6x10"), {"d", "10x6"}})
      arguments +=
          (arguments.empty() ? "%" : ", %") + (name + n) + ": tensor<" + shape +
          "xf32> {nn.kind = \"parameter\", nn.name = \"" + name + n + "\"}";
    calls += "%y" + n + " = call @layer(%" + last + ", %u" + n + ", %d" + n +
             ") : (tensor<8x3x6xf32>, tensor<6x10xf32>, tensor<10x6xf32>) -> "
             "tensor<8x3x6xf32>\n";
    last = "y" + n;
  }
  std::string text = kModel;
  replace(text, "LAYER_ARGUMENTS", arguments);
  replace(text, "LAYER_CALLS", calls);
  replace(text, "LAST", last);
  return text;
}

mlir::DialectRegistry registry() {
  mlir::DialectRegistry registry = simplify::testRegistry();
  registry.insert<dist::DistDialect>();
  partition::registerLocalForms(registry);
  autodiff::registerGradients(registry);
  return registry;
}

// One rank's program, executed operation by operation.
class Rank {
 public:
  // Missing arguments get made-up values.
  Rank(mlir::ModuleOp module, int rank, const Results& given)
      : main_(module.lookupSymbol<FuncOp>("main")),
        rank_(rank),
        next_(main_.front().begin()) {
    for (mlir::BlockArgument argument : main_.getArguments()) {
      const unsigned i = argument.getArgNumber();
      const std::string name = textOf(main_.getArgAttr(i, nn::kNameAttr));
      auto found = given.find(name);
      values_.insert_or_assign(argument, found != given.end()
                                             ? found->second
                                             : madeUp(name, argument));
    }
  }

  using Queues = std::map<std::pair<int, int>, std::deque<Tensor>>;

  // Runs until the rank must wait. Returns true if it computed anything.
  bool run(Queues& queues) {
    bool any = false;
    for (; !isDone(); ++next_, any = true) {
      mlir::Operation* op = &*next_;
      if (auto send = llvm::dyn_cast<dist::SendOp>(op)) {
        queues[{rank_, static_cast<int>(send.getTo())}].push_back(
            values_.at(send.getInput()));
      } else if (auto receive = llvm::dyn_cast<dist::ReceiveOp>(op)) {
        auto& queue = queues[{static_cast<int>(receive.getFrom()), rank_}];
        if (queue.empty()) return any;
        EXPECT_EQ(queue.front().type(), receive.getType());
        values_.insert_or_assign(receive.getResult(), queue.front());
        queue.pop_front();
      } else {
        compute(op);
      }
    }
    return any;
  }

  bool isDone() const { return llvm::isa<mlir::func::ReturnOp>(*next_); }

  // Adds results by the names of the parameters that they update.
  void addResults(Results& results) {
    for (auto [i, value] :
         llvm::enumerate(main_.front().getTerminator()->getOperands())) {
      std::string name = textOf(main_.getResultAttr(i, nn::kUpdatesAttr));
      if (name.empty()) name = textOf(main_.getResultAttr(i, nn::kNameAttr));
      EXPECT_TRUE(results.emplace(name, values_.at(value)).second) << name;
    }
  }

 private:
  static Tensor madeUp(const std::string& name, mlir::Value argument) {
    Tensor value =
        simplify::madeUp(llvm::cast<mlir::RankedTensorType>(argument.getType()),
                         std::hash<std::string>()(name));
    if (name == "step") value.setInt(0, 2);
    return value;
  }

  void compute(mlir::Operation* op) {
    SmallVector<Tensor> operands;
    for (mlir::Value operand : op->getOperands())
      operands.push_back(values_.at(operand));
    mlir::FailureOr<SmallVector<Tensor>> results = mlir::failure();
    if (auto call = llvm::dyn_cast<mlir::func::CallOp>(op))
      results =
          nn::interpret(mlir::SymbolTable::lookupNearestSymbolFrom<FuncOp>(
                            call, call.getCalleeAttr()),
                        operands);
    else
      results = llvm::cast<nn::ReferenceOpInterface>(op).evaluate(operands);
    ASSERT_TRUE(succeeded(results));
    for (auto [value, result] : llvm::zip_equal(op->getResults(), *results))
      values_.insert_or_assign(value, result);
  }

  FuncOp main_;
  const int rank_;
  mlir::Block::iterator next_;
  std::map<mlir::Value, Tensor, bool (*)(mlir::Value, mlir::Value)> values_{
      [](mlir::Value a, mlir::Value b) {
        return a.getAsOpaquePointer() < b.getAsOpaquePointer();
      }};
};

}  // namespace

std::string textOf(mlir::Attribute attribute) {
  auto text = llvm::dyn_cast_if_present<mlir::StringAttr>(attribute);
  return text ? text.str() : "";
}

StepTest::StepTest()
    : context_(registry(), mlir::MLIRContext::Threading::DISABLED) {}

mlir::OwningOpRef<mlir::ModuleOp> StepTest::step(const core::Schedule& schedule,
                                                 double clip_norm, int layers,
                                                 const std::string& weights,
                                                 double correction) {
  auto module =
      mlir::parseSourceString<mlir::ModuleOp>(modelText(layers), &context_);
  EXPECT_TRUE(module);
  driver::TrainOptions train;
  train.optimizer = "adamw";
  train.clip_norm = clip_norm;
  train.keep_gradients = true;
  train.microbatches = schedule.microbatches;
  plan::Plan plan;
  plan.mesh =
      *plan::ParseMeshOption("pipe=" + std::to_string(schedule.ranks()));
  plan.microbatches = train.microbatches;
  std::vector<driver::Phase> phases = driver::attachLoss(&train);
  phases.push_back(driver::simplifyModel(/*training=*/true));
  llvm::append_range(phases, driver::exposeFactors());
  llvm::append_range(phases, driver::assignStages(plan, &train));
  phases.push_back({"stages", [&](mlir::OpPassManager& pm) {
                      AssignStagesPassOptions options;
                      options.stages = schedule.stages;
                      pm.addPass(createAssignStagesPass(options));
                    }});
  phases.push_back(driver::trainModel(train));
  if (!schedule.flushes)
    phases.push_back({"delay", [&](mlir::OpPassManager& pm) {
                        DelayStagesPassOptions options;
                        options.weights = weights;
                        options.correction = correction;
                        pm.addPass(createDelayStagesPass(options));
                      }});
  phases.push_back({"split", [&](mlir::OpPassManager& pm) {
                      SplitBackwardPassOptions options;
                      options.cells = cellsToSplit(schedule);
                      pm.addPass(createSplitBackwardPass(options));
                    }});
  phases.push_back({"spread-names", [](mlir::OpPassManager& pm) {
                      pm.addPass(sharding::createNameDimensionsPass());
                    }});
  phases.push_back(driver::shardModel(plan));
  for (const driver::Phase& phase : phases) {
    mlir::PassManager passes(&context_);
    phase.build(passes);
    EXPECT_TRUE(succeeded(passes.run(*module))) << phase.name;
  }
  return module;
}

dist::AxesAttr StepTest::axes(mlir::ModuleOp module) {
  auto mesh = sharding::meshOf(module);
  EXPECT_TRUE(succeeded(mesh));
  return sharding::axesAttr(&context_, {core::WholeAxis(*mesh, 0)}, *mesh);
}

Programs StepTest::cut(mlir::ModuleOp module, const core::Schedule& schedule) {
  auto programs = cutStages(module, axes(module), schedule);
  EXPECT_TRUE(succeeded(programs));
  if (failed(programs)) return {};
  for (auto& program : *programs)
    EXPECT_TRUE(succeeded(mlir::verify(*program)));
  return std::move(*programs);
}

Results StepTest::run(const Programs& programs, const Results& given) {
  std::vector<Rank> ranks;
  for (auto [i, program] : llvm::enumerate(programs))
    ranks.emplace_back(*program, static_cast<int>(i), given);
  Rank::Queues queues;
  bool any = true;
  while (any) {
    any = false;
    for (Rank& rank : ranks) any |= rank.run(queues);
  }
  Results results;
  for (Rank& rank : ranks) {
    EXPECT_TRUE(rank.isDone()) << "a rank waits forever";
    if (rank.isDone()) rank.addResults(results);
  }
  for (auto& [pair, queue] : queues)
    EXPECT_TRUE(queue.empty()) << "not received";
  return results;
}

Results StepTest::run(mlir::ModuleOp module, const Results& given) {
  Rank whole(module, 0, given);
  Rank::Queues none;
  whole.run(none);
  Results results;
  whole.addResults(results);
  return results;
}

}  // namespace partita::pipeline
