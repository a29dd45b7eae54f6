// Finds the module of the model that each operation of a program belongs to.
#ifndef PARTITA_COMPILER_KERNELS_LAYERS_H_
#define PARTITA_COMPILER_KERNELS_LAYERS_H_

#include <string>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::kernels {

// Reads the paths from locations, which importers set to a module's path or to
// an exporter's name of an operation. Layers of one kind share a function,
// whose locations are either relative to the kind ("block.mlp.up" in @block) or
// copied from the first layer ("h.0.mlp.up"). In both cases the path of a call
// names its layer.
class Layers {
 public:
  // `module` holds exec operations and must outlive the result.
  explicit Layers(mlir::ModuleOp module);

  // Returns the path of an operation; empty if unknown. A path that begins with
  // "." continues the path of the call of its function: ".mlp.up" in a call of
  // "h.3" is "h.3.mlp.up", and "." is "h.3".
  std::string of(mlir::Operation* op) const { return paths_.lookup(op); }

  // Returns a pattern for the operation's paths in all calls of its function,
  // such as "h.*.mlp.up"; empty if unknown.
  std::string patternOf(mlir::Operation* op) const;

 private:
  using Function = mlir::func::FuncOp;
  using Call = mlir::func::CallOp;

  void readLocations(Function function);
  void dropWrapper();
  void relate(Function function);
  bool relateToKind(Function function, const std::string& kind);
  bool relateToNumber(Function function);
  bool shortenCalls(Function function);
  std::string callsOf(Function function) const;

  mlir::ModuleOp module_;
  llvm::SmallVector<Function> functions_;  // callees before callers
  llvm::DenseMap<mlir::Operation*, std::string> paths_;
  llvm::StringMap<llvm::SmallVector<Call>> calls_;  // by callee
  llvm::StringMap<std::string> patterns_;  // of a function's calls, by function
};

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_LAYERS_H_
