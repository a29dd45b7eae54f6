// Gives each device that shares the batch states of its own.
#ifndef PARTITA_COMPILER_SHARDING_OWN_STATES_H_
#define PARTITA_COMPILER_SHARDING_OWN_STATES_H_

#include <vector>

#include "compiler/plan/plan.h"
#include "compiler/sharding/device_rows.h"
#include "compiler/sharding/problem.h"

namespace partita::sharding {

// True if @main has states that differ between devices
// (compiler/autodiff/device_marks.h).
bool hasOwnStates(mlir::func::FuncOp main);

// Such a state [...] becomes [rows, ...], one row per device,
// and operand 1 of calls with `nn.own_gradient` becomes the device's own
// gradient instead of their mean. In between, values that depend on a device's
// row have the shape of one row and count as equal on all devices, although
// they differ: nothing may divide them along the axes of the rows, which the
// checks below refuse. There must be at least two rows, and a mesh in the
// module.
void giveOwnStates(mlir::func::FuncOp main, const DeviceRows& rows);

// Fails with a diagnostic if an entry gives an axis of B to another dimension.
mlir::LogicalResult checkEntriesOfOwnStates(mlir::ModuleOp module,
                                            const plan::Plan& plan);
// Fails with a diagnostic if the decided shardings divide a device's row along
// the axes of the rows, or if devices have no own gradients to take.
mlir::LogicalResult checkOwnStates(
    mlir::ModuleOp module, const plan::Plan& plan, const Problem& problem,
    const std::vector<core::Sharding>& shardings);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_OWN_STATES_H_
