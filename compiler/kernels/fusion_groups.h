// Decides which operations of a block become one kernel.
//
// Every operation between library calls has one role. Movement (broadcast,
// reshape, transpose, slice, iota) is an index map: it belongs to no group and
// is repeated in every kernel that reads through it, unless an operation
// outside kernels needs its result. So does a conversion to a wider type that
// only arithmetic reads. The others start as groups of their own.
// Going from the last operation to the first, a producer joins the group of its
// consumers if the joint kernel computes each element once, the groups stay
// acyclic, and no value has to stay in memory longer through a call.
// Independent elementwise kernels that read the same value become one first.
#ifndef PARTITA_COMPILER_KERNELS_FUSION_GROUPS_H_
#define PARTITA_COMPILER_KERNELS_FUSION_GROUPS_H_

#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"

namespace partita::kernels {

enum class FusionRole {
  fixed,        // not a kernel: library calls, function calls, constants, the
                // terminator
  view,         // a reshape that is read outside kernels: the same memory
  movement,     // an index map
  elementwise,  // each element of the result from the same element of the
                // operands (pad and gather count here)
  reduction,    // nn.reduce
  row,          // softmax and norms over trailing dimensions
  attention,
  product,  // nn.ordered_dot: elementwise operations on its result follow
  single  // a kernel of its own that reads its operands in an order of its own
};

struct FusionGroups {
  // Operations of each group in program order; movement is not listed.
  std::vector<llvm::SmallVector<mlir::Operation*>> groups;
  llvm::DenseMap<mlir::Operation*, FusionRole> roles;
};

// The value before a conversion to a wider type that each reader repeats.
mlir::Value beforeWidening(mlir::Value value);
// The log-sum-exp of an attention, or null. Its kernel stores it for readers
// outside, whatever becomes of the other result.
mlir::Value lseOf(mlir::Operation* op);

// The role of an operation by itself. Readers may make a kernel or a view of
// movement.
FusionRole fusionRoleOf(mlir::Operation& op);

FusionGroups findFusionGroups(mlir::Block& block);

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_FUSION_GROUPS_H_
