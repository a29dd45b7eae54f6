// Makes one program per rank of a pipeline.
#ifndef PARTITA_COMPILER_PIPELINE_CUT_H_
#define PARTITA_COMPILER_PIPELINE_CUT_H_

#include "compiler/core/schedule.h"
#include "dialects/dist/dialect.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::pipeline {

// Cuts a module into one module per rank of `schedule`. The module has whole
// tensors with shardings and marked calls (autodiff's call_marks.h). Ranks are
// indices along `axes`, which no sharding uses. The original module stays
// unchanged.
//
// A marked call runs on the rank of its stage, in the order of the rank's
// cells. A stored tensor that a step updates belongs to the rank of the first
// call that uses it, together with its update. Other stored tensors belong to
// all ranks that use them. Values computed from inputs and constant tensors are
// computed by each rank that needs them, just before their use. Every other
// operation runs on the rank of its last operand, as soon as that exists.
//
// A value that another rank needs is sent once, right after it is computed, and
// received before its first use. Two ranks send and receive in the same order.
// Values that no cell waits for are sent after all cells. A stored tensor is
// sent after the sender's first cell, if it still arrives in time.
//
// A schedule without flushes contributes its period; partita-delay-stages has
// already made the module a step of that schedule.
//
// Fails with a diagnostic if a mark matches no cell of the schedule.
mlir::FailureOr<llvm::SmallVector<mlir::OwningOpRef<mlir::ModuleOp>>> cutStages(
    mlir::ModuleOp module, dist::AxesAttr axes, const core::Schedule& schedule);

}  // namespace partita::pipeline

#endif  // PARTITA_COMPILER_PIPELINE_CUT_H_
