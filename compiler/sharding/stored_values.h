// Finds the values of a model that are made of stored data alone.
#ifndef PARTITA_COMPILER_SHARDING_STORED_VALUES_H_
#define PARTITA_COMPILER_SHARDING_STORED_VALUES_H_

#include "compiler/sharding/view_parameters.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/DenseSet.h"

namespace partita::sharding {

// Stored data are parameters, states, and weights that the caller of @main
// passes. The module must not change while this object is in use.
class StoredValues {
 public:
  explicit StoredValues(mlir::ModuleOp module);

  // True if a value is computed from stored data and constants alone, in every
  // call of its function.
  bool contains(mlir::Value value) const { return stored_.contains(value); }

  // True if the weight of a convolution is computed from activations. Programs
  // of JAX write the gradient of a kernel so, with the batch as the channels,
  // and the kernel as the image of the result.
  bool isKernelGradient(nn::ConvOp op) const;

  const Callers& callers() const { return callers_; }

 private:
  bool isStored(mlir::BlockArgument argument) const;
  // Adds the values of a function. Returns true if it found new ones.
  bool addValues(mlir::func::FuncOp function);
  bool isActivation(mlir::Value value) const;

  Callers callers_;
  llvm::DenseSet<mlir::Value> stored_;
};

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_STORED_VALUES_H_
