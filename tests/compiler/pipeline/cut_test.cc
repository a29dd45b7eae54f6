// A training step cut into the programs of a pipeline's ranks, which exchange
// values through queues, gives what the whole step gives.
#include "compiler/pipeline/cut.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "compiler/autodiff/gradient.h"
#include "compiler/core/schedule_generators.h"
#include "compiler/driver/model_phases.h"
#include "compiler/partition/local_form.h"
#include "compiler/pipeline/passes.h"
#include "compiler/sharding/convert.h"
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
using Programs = SmallVector<mlir::OwningOpRef<mlir::ModuleOp>>;
using Results = std::map<std::string, Tensor>;

// An embedding, four layers, logits over the same table: 8 rows of 3 tokens.
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
  %1 = call @layer(%0, %u0, %d0) : (tensor<8x3x6xf32>, tensor<6x10xf32>, tensor<10x6xf32>) -> tensor<8x3x6xf32>
  %2 = call @layer(%1, %u1, %d1) : (tensor<8x3x6xf32>, tensor<6x10xf32>, tensor<10x6xf32>) -> tensor<8x3x6xf32>
  %3 = call @layer(%2, %u2, %d2) : (tensor<8x3x6xf32>, tensor<6x10xf32>, tensor<10x6xf32>) -> tensor<8x3x6xf32>
  %4 = call @layer(%3, %u3, %d3) : (tensor<8x3x6xf32>, tensor<6x10xf32>, tensor<10x6xf32>) -> tensor<8x3x6xf32>
  %5 = nn.dot_general %4, %e contract = [2] x [1] : tensor<8x3x6xf32>, tensor<7x6xf32> -> tensor<8x3x7xf32>
  return %5 : tensor<8x3x7xf32>
}
)";

std::string modelText() {
  std::string arguments;
  for (int i = 0; i < 4; ++i)
    for (auto [name, shape] : {std::pair("u", "6x10"), {"d", "10x6"}}) {
      const std::string own = name + std::to_string(i);
      arguments += (arguments.empty() ? "%" : ", %") + own + ": tensor<" +
                   shape + "xf32> {nn.kind = \"parameter\", nn.name = \"" +
                   own + "\"}";
    }
  std::string text = kModel;
  const std::string place = "LAYER_ARGUMENTS";
  return text.replace(text.find(place), place.size(), arguments);
}

std::string textOf(mlir::Attribute attribute) {
  auto text = llvm::dyn_cast_if_present<mlir::StringAttr>(attribute);
  return text ? text.str() : "";
}

// One rank's program, one operation after another.
class Rank {
 public:
  Rank(mlir::ModuleOp module, int rank)
      : main_(module.lookupSymbol<FuncOp>("main")),
        rank_(rank),
        next_(main_.front().begin()) {
    for (mlir::BlockArgument argument : main_.getArguments()) {
      const unsigned i = argument.getArgNumber();
      const std::string name = textOf(main_.getArgAttr(i, nn::kNameAttr));
      Tensor value = simplify::madeUp(
          llvm::cast<mlir::RankedTensorType>(argument.getType()),
          std::hash<std::string>()(name));
      if (name == "step") value.setInt(0, 2);
      values_.insert_or_assign(argument, value);
    }
  }

  using Queues = std::map<std::pair<int, int>, std::deque<Tensor>>;

  // Until it must wait; whether it computed anything.
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

  // By name, as parameters' new values.
  void addResults(Results& results) {
    for (auto [i, value] :
         llvm::enumerate(main_.front().getTerminator()->getOperands())) {
      std::string name = textOf(main_.getResultAttr(i, nn::kUpdatesAttr));
      if (name.empty()) name = textOf(main_.getResultAttr(i, nn::kNameAttr));
      EXPECT_TRUE(results.emplace(name, values_.at(value)).second) << name;
    }
  }

 private:
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

class CutTest : public testing::Test {
 protected:
  CutTest() : context_(registry(), mlir::MLIRContext::Threading::DISABLED) {}

  static mlir::DialectRegistry registry() {
    mlir::DialectRegistry registry = simplify::testRegistry();
    registry.insert<dist::DistDialect>();
    partition::registerLocalForms(registry);
    autodiff::registerGradients(registry);
    return registry;
  }

  // A step of as many microbatches as the schedule has, with shardings.
  mlir::OwningOpRef<mlir::ModuleOp> step(const core::Schedule& schedule,
                                         double clip_norm = 0) {
    auto module =
        mlir::parseSourceString<mlir::ModuleOp>(modelText(), &context_);
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
    std::vector<driver::Phase> phases = driver::simplifyModel(&train);
    for (driver::Phase& phase : driver::divideModel(plan, &train)) {
      if (phase.name == "differentiate")
        phases.push_back({"stages", [&](mlir::OpPassManager& pm) {
                            AssignStagesPassOptions options;
                            options.stages = schedule.stages;
                            pm.addPass(createAssignStagesPass(options));
                          }});
      if (phase.name == "partition") break;
      phases.push_back(std::move(phase));
    }
    for (const driver::Phase& phase : phases) {
      mlir::PassManager passes(&context_);
      phase.build(passes);
      EXPECT_TRUE(succeeded(passes.run(*module))) << phase.name;
    }
    return module;
  }

  Programs cut(mlir::ModuleOp module, const core::Schedule& schedule) {
    auto mesh = sharding::meshOf(module);
    EXPECT_TRUE(succeeded(mesh));
    auto programs = cutStages(
        module,
        sharding::axesAttr(&context_, {core::WholeAxis(*mesh, 0)}, *mesh),
        schedule);
    EXPECT_TRUE(succeeded(programs));
    if (failed(programs)) return {};
    for (auto& program : *programs)
      EXPECT_TRUE(succeeded(mlir::verify(*program)));
    return std::move(*programs);
  }

  static Results run(Programs& programs) {
    std::vector<Rank> ranks;
    for (auto [i, program] : llvm::enumerate(programs))
      ranks.emplace_back(*program, static_cast<int>(i));
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

  void check(const core::Schedule& schedule, double clip_norm = 0) {
    auto module = step(schedule, clip_norm);
    Programs programs = cut(*module, schedule);
    ASSERT_EQ(programs.size(), static_cast<size_t>(schedule.ranks()));
    Results expected;
    Rank whole(*module, 0);
    Rank::Queues none;
    whole.run(none);
    whole.addResults(expected);
    const Results actual = run(programs);
    ASSERT_EQ(actual.size(), expected.size());
    for (const auto& [name, tensor] : expected) {
      auto found = actual.find(name);
      ASSERT_NE(found, actual.end()) << name;
      simplify::expectSame({found->second}, {tensor}, name);
    }
  }

  mlir::MLIRContext context_;
};

TEST_F(CutTest, EverySchedule) {
  check(core::GPipe(2, 4));
  check(core::OneForwardOneBackward(2, 4));
  check(core::OneForwardOneBackward(2, 1));
  check(core::OneForwardOneBackward(4, 8));
  check(core::OneForwardOneBackward(3, 2));
  check(core::Interleaved(2, 2, 4));
}

// The norm of all gradients goes from rank to rank and back.
TEST_F(CutTest, OneNormForAllRanks) {
  check(core::OneForwardOneBackward(2, 4), 0.1);
  check(core::OneForwardOneBackward(4, 2), 0.1);
}

// The table is sent to the last rank, which sends its share of the gradient
// back: once in a step, whatever the number of microbatches.
TEST_F(CutTest, TiedParametersAreSentOnce) {
  const core::Schedule schedule = core::OneForwardOneBackward(2, 4);
  auto module = step(schedule);
  Programs programs = cut(*module, schedule);
  for (auto& program : programs) {
    int sent = 0;
    program->walk([&](dist::SendOp send) {
      sent += llvm::cast<mlir::RankedTensorType>(send.getInput().getType())
                  .getShape() == llvm::ArrayRef<int64_t>{7, 6};
    });
    EXPECT_EQ(sent, 1);
  }
}

// Each rank keeps what its stages use, and no other's layers.
TEST_F(CutTest, ParametersAreWhereTheyAreUsed) {
  const core::Schedule schedule = core::OneForwardOneBackward(2, 2);
  auto module = step(schedule);
  Programs programs = cut(*module, schedule);
  std::map<std::string, int> held;
  for (auto& program : programs) {
    auto main = program->lookupSymbol<FuncOp>("main");
    for (unsigned i = 0; i < main.getNumArguments(); ++i)
      if (textOf(main.getArgAttr(i, nn::kKindAttr)) != "input")
        ++held[textOf(main.getArgAttr(i, nn::kNameAttr))];
  }
  EXPECT_EQ(held.size(), 9u * 3);  // with two states each
  for (const auto& [name, times] : held) EXPECT_EQ(times, 1) << name;
}

}  // namespace
}  // namespace partita::pipeline
