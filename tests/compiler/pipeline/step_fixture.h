// Training steps for a pipeline, and their programs run together, which
// exchange values through queues.
#ifndef PARTITA_TESTS_COMPILER_PIPELINE_STEP_FIXTURE_H_
#define PARTITA_TESTS_COMPILER_PIPELINE_STEP_FIXTURE_H_

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "compiler/core/schedule.h"
#include "dialects/dist/dialect.h"
#include "dialects/nn/tensor.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::pipeline {

using Programs = llvm::SmallVector<mlir::OwningOpRef<mlir::ModuleOp>>;
using Results = std::map<std::string, nn::Tensor>;

// Empty where there is none.
std::string textOf(mlir::Attribute attribute);

class StepTest : public testing::Test {
 protected:
  StepTest();

  // A step of as many microbatches as the schedule has, with shardings: an
  // embedding, `layers` layers, logits over the same table; 8 rows of 3 tokens.
  // Gradients that the schedule has in two cells are split; stages are delayed,
  // with these weights and this correction, where it does not flush.
  mlir::OwningOpRef<mlir::ModuleOp> step(
      const core::Schedule& schedule, double clip_norm = 0, int layers = 4,
      const std::string& weights = "previous", double correction = 0);

  Programs cut(mlir::ModuleOp module, const core::Schedule& schedule);

  // Along which the ranks of a step lie.
  dist::AxesAttr axes(mlir::ModuleOp module);

  // By name, as parameters' new values. Arguments that are not given, by name,
  // are made up.
  static Results run(const Programs& programs, const Results& given = {});
  static Results run(mlir::ModuleOp module, const Results& given = {});

  mlir::MLIRContext context_;
};

}  // namespace partita::pipeline

#endif  // PARTITA_TESTS_COMPILER_PIPELINE_STEP_FIXTURE_H_
