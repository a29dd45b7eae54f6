// Finds the routers of mixtures of experts, which compute in f32 in any
// precision: a rounded score may choose another expert.
#ifndef PARTITA_COMPILER_AUTODIFF_ROUTER_OPERATIONS_H_
#define PARTITA_COMPILER_AUTODIFF_ROUTER_OPERATIONS_H_

#include "llvm/ADT/DenseSet.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::autodiff {

// The operations of a function that compute the ids and weights of nn.experts
// from a router's product, and that product.
llvm::DenseSet<mlir::Operation*> findRouterOperations(
    mlir::func::FuncOp function);

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_ROUTER_OPERATIONS_H_
