// Finds the layer of the model that each value belongs to, as a dotted name.
#ifndef PARTITA_COMPILER_SHARDING_LAYER_PATHS_H_
#define PARTITA_COMPILER_SHARDING_LAYER_PATHS_H_

#include <string>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::sharding {

// A value's layer. For a parameter it is the parameter's name, e.g.
// "h.0.mlp.up.weight". A value computed with parameters of both h.0.mlp.up and
// h.0.mlp.down belongs to "h.0.mlp".
struct LayerPath {
  std::string path;        // empty: unknown
  bool parameter = false;  // stored data, or computed from stored data alone
  int order = -1;          // position of the operation in the function
};

// A value belongs to the common layer of the parameters that its operation
// uses. If there are no named parameters, the layer comes from the operation's
// location in @main, else from the operand computed last. Values before all
// layers belong to the layer of their first user.
class LayerPaths {
 public:
  using Paths = llvm::DenseMap<mlir::Value, LayerPath>;

  explicit LayerPaths(mlir::ModuleOp module);

  // Returns the layers of all values in @main.
  Paths inMain() const;
  // Returns the layers of all values in the callee, for one call; `caller`
  // holds the layers in the caller.
  Paths inCallee(mlir::func::CallOp call, const Paths& caller) const;

 private:
  Paths inFunction(mlir::func::FuncOp function, Paths paths,
                   llvm::StringRef context) const;
  void addResults(mlir::Operation* op, int order, Paths& paths) const;
  std::string ofParameters(mlir::Operation* op, const Paths& paths) const;
  std::string ofLocation(mlir::Operation* op) const;
  void findWrapper();

  mlir::ModuleOp module_;
  std::string wrapper_;  // prefix of operation names that parameter names lack
};

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_LAYER_PATHS_H_
