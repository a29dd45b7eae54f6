// A training step cut into programs for the ranks of a pipeline gives the
// results of the whole step, in the schedule's order.
#include "compiler/pipeline/cut.h"

#include <gmock/gmock.h>

#include "compiler/autodiff/call_marks.h"
#include "compiler/core/schedule_generators.h"
#include "dialects/nn/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "tests/compiler/pipeline/step_fixture.h"
#include "tests/compiler/simplify/evaluate.h"

namespace partita::pipeline {
namespace {

using mlir::func::FuncOp;

// The cells of a program's calls, in the notation of schedules.
std::vector<std::string> cellsOf(mlir::ModuleOp program) {
  std::vector<std::string> cells;
  for (mlir::Operation& op : program.lookupSymbol<FuncOp>("main").front()) {
    auto stage = op.getAttrOfType<mlir::IntegerAttr>(autodiff::kStageAttr);
    auto microbatch =
        op.getAttrOfType<mlir::IntegerAttr>(autodiff::kMicrobatchAttr);
    if (!stage || !microbatch) continue;  // no cell, e.g. the count of targets
    mlir::Attribute backward = op.getAttr(autodiff::kBackwardAttr);
    const std::string part = textOf(backward);
    core::Cell cell;
    cell.work = !backward                           ? core::Work::kForward
                : part.empty()                      ? core::Work::kBackward
                : part == autodiff::kInputGradients ? core::Work::kInputGrad
                                                    : core::Work::kWeightGrad;
    cell.stage = static_cast<int>(stage.getInt());
    cell.microbatch = static_cast<int>(microbatch.getInt());
    if (const std::string text = core::ToString(cell);
        cells.empty() || cells.back() != text)
      cells.push_back(text);
  }
  return cells;
}

class CutTest : public StepTest {
 protected:
  void check(const core::Schedule& schedule, double clip_norm = 0,
             int layers = 4) {
    auto module = step(schedule, clip_norm, layers);
    const Programs programs = cut(*module, schedule);
    ASSERT_EQ(programs.size(), static_cast<size_t>(schedule.ranks()));
    const Results expected = run(*module);
    const Results actual = run(programs);
    ASSERT_EQ(actual.size(), expected.size());
    for (const auto& [name, tensor] : expected) {
      auto found = actual.find(name);
      ASSERT_NE(found, actual.end()) << name;
      simplify::expectSame({found->second}, {tensor}, name);
    }
  }
};

TEST_F(CutTest, EverySchedule) {
  check(core::GPipe(2, 4));
  check(core::OneForwardOneBackward(2, 4));
  check(core::OneForwardOneBackward(2, 1));
  check(core::OneForwardOneBackward(4, 8));
  check(core::OneForwardOneBackward(3, 2));
  check(core::Interleaved(2, 2, 4));
}

// Weight gradients are computed later than input gradients.
TEST_F(CutTest, ZeroBubble) {
  check(core::ZeroBubbleH1(2, 1));
  check(core::ZeroBubbleH1(2, 4));
  check(core::ZeroBubbleH1(4, 8));
  check(core::ZeroBubbleV(2, 4));
  check(core::ZeroBubbleV(4, 8), 0, 8);
}

// The norm of all gradients is exchanged between all ranks.
TEST_F(CutTest, OneNormForAllRanks) {
  check(core::OneForwardOneBackward(2, 4), 0.1);
  check(core::OneForwardOneBackward(4, 2), 0.1);
  check(core::ZeroBubbleH1(4, 4), 0.1);
}

TEST_F(CutTest, SendsSayWhoReads) {
  const core::Schedule schedule = core::OneForwardOneBackward(2, 2);
  auto module = step(schedule);
  std::vector<std::vector<std::string>> reasons;
  for (mlir::OwningOpRef<mlir::ModuleOp>& program : cut(*module, schedule)) {
    reasons.emplace_back();
    program->walk([&](dist::SendOp send) {
      reasons.back().push_back(textOf(send.getWhyAttr()));
    });
  }
  ASSERT_EQ(reasons.size(), 2u);
  EXPECT_THAT(reasons[0], testing::Contains(testing::StartsWith(
                              "stage 1 on rank 1 computes with it")));
  EXPECT_THAT(reasons[1],
              testing::Contains(testing::StartsWith(
                  "the gradient of stage 0 on rank 0 computes with it")));
}

// The table is sent to the last rank, which sends back its partial gradient:
// once per step for any number of microbatches.
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

// A rank sends in order: the table after the first activations, and its
// gradient after the last gradient of activations.
TEST_F(CutTest, TablesDoNotHoldUpCells) {
  const core::Schedule schedule = core::OneForwardOneBackward(2, 4);
  auto module = step(schedule);
  std::vector<std::vector<bool>> tables;
  for (auto& program : cut(*module, schedule)) {
    tables.emplace_back();
    program->walk([&](dist::SendOp send) {
      tables.back().push_back(
          llvm::cast<mlir::RankedTensorType>(send.getInput().getType())
              .getShape() == llvm::ArrayRef<int64_t>{7, 6});
    });
  }
  using testing::ElementsAre;
  EXPECT_THAT(tables,
              ElementsAre(ElementsAre(false, true, false, false, false),
                          ElementsAre(false, false, false, false, true)));
}

// Each rank holds the parameters that its stages use and no other rank's
// layers.
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
  EXPECT_EQ(held.size(), 9u * 3);  // each with two states
  for (const auto& [name, times] : held) EXPECT_EQ(times, 1) << name;
}

// Each rank runs the schedule's cells in the schedule's order, so the number of
// microbatches in flight is the schedule's.
TEST_F(CutTest, CellsAreInTheSchedulesOrder) {
  for (const core::Schedule& schedule :
       {core::OneForwardOneBackward(4, 4), core::ZeroBubbleH1(2, 4),
        core::ZeroBubbleH1(4, 8), core::ZeroBubbleV(2, 4),
        core::ZeroBubbleV(4, 8)}) {
    auto module = step(schedule, 0, 8);
    const Programs programs = cut(*module, schedule);
    ASSERT_EQ(programs.size(), static_cast<size_t>(schedule.ranks()));
    for (auto [rank, program] : llvm::enumerate(programs)) {
      std::vector<std::string> expected;
      for (const core::Cell& cell : schedule.cells[rank])
        expected.push_back(core::ToString(cell));
      EXPECT_EQ(cellsOf(*program), expected) << "rank " << rank;
    }
  }
}

// The previous stage gets its gradient as soon as the input gradient exists.
TEST_F(CutTest, NobodyWaitsForWeightGradients) {
  for (const core::Schedule& schedule :
       {core::ZeroBubbleH1(4, 8), core::ZeroBubbleV(4, 8)}) {
    auto module = step(schedule, 0, 8);
    int sent = 0;
    for (auto& program : cut(*module, schedule)) {
      mlir::Operation* marked = nullptr;  // the last marked call
      for (mlir::Operation& op :
           program->lookupSymbol<FuncOp>("main").front()) {
        if (op.hasAttr(autodiff::kStageAttr)) marked = &op;
        auto send = llvm::dyn_cast<dist::SendOp>(op);
        auto type =
            send ? llvm::cast<mlir::RankedTensorType>(send.getInput().getType())
                 : mlir::RankedTensorType();
        if (!send || type.getRank() != 3)
          continue;  // e.g. the table's
                     // gradient
        ASSERT_NE(marked, nullptr);
        EXPECT_NE(textOf(marked->getAttr(autodiff::kBackwardAttr)),
                  autodiff::kWeightGradients);
        sent += marked->hasAttr(autodiff::kBackwardAttr);
      }
    }
    const int hops = schedule.stages == 4 ? 3 : 6;  // between ranks
    EXPECT_EQ(sent, hops * schedule.microbatches);
  }
}

// A mark without a cell in the schedule is refused.
TEST_F(CutTest, CellsMustBeThere) {
  auto module = step(core::OneForwardOneBackward(2, 4));
  mlir::ScopedDiagnosticHandler handler(
      &context_, [&](mlir::Diagnostic& diagnostic) {
        EXPECT_EQ(diagnostic.str(),
                  "'func.call' op expected a cell of the schedule, found B1.0");
        return mlir::success();
      });
  EXPECT_TRUE(
      failed(cutStages(*module, axes(*module), core::ZeroBubbleH1(2, 4))));
}

}  // namespace
}  // namespace partita::pipeline
