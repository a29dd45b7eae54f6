// Gives each device that shares the batch states of its own.
#ifndef PARTITA_COMPILER_SHARDING_OWN_STATES_H_
#define PARTITA_COMPILER_SHARDING_OWN_STATES_H_

#include "compiler/sharding/device_rows.h"

namespace partita::sharding {

// True if @main has states that differ between devices
// (compiler/autodiff/device_marks.h).
bool hasOwnStates(mlir::func::FuncOp main);

// Such a state [...] becomes [rows, ...], one row per device,
// and operand 1 of calls with `nn.own_gradient` becomes the device's own
// gradient instead of their mean. In between, values that depend on a device's
// row have the shape of one row and count as equal on all devices, although
// they differ: nothing may divide them along the axes of the rows. There must
// be at least two rows, and a mesh in the module.
void giveOwnStates(mlir::func::FuncOp main, const DeviceRows& rows);

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_OWN_STATES_H_
