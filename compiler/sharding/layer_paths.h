// Which layer of the model each value belongs to, as a dotted name.
#ifndef PARTITA_COMPILER_SHARDING_LAYER_PATHS_H_
#define PARTITA_COMPILER_SHARDING_LAYER_PATHS_H_

#include <string>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::sharding {

// "h.0.mlp" of "h.0.mlp.up" and "h.0.mlp.down"; empty where they share nothing.
std::string commonLayer(llvm::StringRef a, llvm::StringRef b);
// What an exporter's name of an operation says: "h.0.mlp" of "/h/h.0/mlp/Add".
std::string layerOfName(llvm::StringRef name);

// A value's layer: "h.0.mlp.up.weight" for a parameter, which is its name,
// "h.0.mlp" for what has parameters of both h.0.mlp.up and h.0.mlp.down.
struct LayerPath {
  std::string path;        // empty: not known
  bool parameter = false;  // stored data, and what is made of it alone
  int order = -1;          // of its operation in the function
};

// Where parameters have no names (constants of an exporter), and for operations
// without any, the name of the operation's location counts in @main, and else
// the layer of the operand that is computed last. What comes before all layers
// belongs to its first user.
class LayerPaths {
 public:
  using Paths = llvm::DenseMap<mlir::Value, LayerPath>;

  explicit LayerPaths(mlir::ModuleOp module);

  // Of everything in @main.
  Paths inMain() const;
  // Of everything in the function of a call that stands where `caller` says.
  Paths inCallee(mlir::func::CallOp call, const Paths& caller) const;

 private:
  Paths inFunction(mlir::func::FuncOp function, Paths paths,
                   llvm::StringRef context) const;
  void addResults(mlir::Operation* op, int order, Paths& paths) const;
  std::string ofParameters(mlir::Operation* op, const Paths& paths) const;
  std::string ofLocation(mlir::Operation* op) const;
  void findWrapper();

  mlir::ModuleOp module_;
  std::string wrapper_;  // what operations' names have before parameters'
};

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_LAYER_PATHS_H_
