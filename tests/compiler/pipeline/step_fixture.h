// Builds training steps for a pipeline, and runs the ranks' programs together;
// they exchange values through queues.
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

// Empty if the attribute is null.
std::string textOf(mlir::Attribute attribute);

class StepTest : public testing::Test {
 protected:
  StepTest();

  // A step with shardings and the schedule's number of microbatches: an
  // embedding, `layers` layers, logits over the same table; 8 rows of 3 tokens.
  // If the schedule has two cells for gradients, backward calls are split. If
  // it does not flush, stages are delayed with these weights and this
  // correction.
  mlir::OwningOpRef<mlir::ModuleOp> step(
      const core::Schedule& schedule, double clip_norm = 0, int layers = 4,
      const std::string& weights = "previous", double correction = 0);

  Programs cut(mlir::ModuleOp module, const core::Schedule& schedule);

  // The mesh axes along which a step's ranks are numbered.
  dist::AxesAttr axes(mlir::ModuleOp module);

  // The results, by the names of the parameters that they update. Arguments
  // missing in `given` get made-up values.
  static Results run(const Programs& programs, const Results& given = {});
  static Results run(mlir::ModuleOp module, const Results& given = {});

  mlir::MLIRContext context_;
};

}  // namespace partita::pipeline

#endif  // PARTITA_TESTS_COMPILER_PIPELINE_STEP_FIXTURE_H_
