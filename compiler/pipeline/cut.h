// One program for each rank of a pipeline.
#ifndef PARTITA_COMPILER_PIPELINE_CUT_H_
#define PARTITA_COMPILER_PIPELINE_CUT_H_

#include "compiler/core/schedule.h"
#include "dialects/dist/dialect.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace partita::pipeline {

// Cuts a module of whole tensors with shardings, whose calls are marked
// (autodiff's call_marks.h), into one for each rank of `schedule`; ranks are
// indices along `axes`, which no sharding uses. The module itself stays.
//
// A marked call is computed by the rank of its stage, in the order of the
// rank's cells. What is not marked: a stored tensor that a step changes belongs
// to the rank of the first call that uses it, its update too, others to all
// that use them; what follows from inputs and what does not change is computed
// by each rank that needs it, just before; all else
// by the rank that computes its last operand, as soon as that is there. A value
// that another rank needs is sent once, right after it is computed, and
// received before its first use; between two ranks in the same order. What no
// cell waits for is sent after all cells, and a stored tensor after the first
// one, if there is time for that.
//
// Of a schedule that does not flush it is the period, and partita-delay-stages
// has made the module a step of it.
//
// Fails, with a diagnostic, where a mark is none of the schedule's cells.
mlir::FailureOr<llvm::SmallVector<mlir::OwningOpRef<mlir::ModuleOp>>> cutStages(
    mlir::ModuleOp module, dist::AxesAttr axes, const core::Schedule& schedule);

}  // namespace partita::pipeline

#endif  // PARTITA_COMPILER_PIPELINE_CUT_H_
