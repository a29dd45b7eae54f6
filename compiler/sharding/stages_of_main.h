// Finds the pipeline stages of each value and operation in @main.
#ifndef PARTITA_COMPILER_SHARDING_STAGES_OF_MAIN_H_
#define PARTITA_COMPILER_SHARDING_STAGES_OF_MAIN_H_

#include <set>

#include "llvm/ADT/DenseMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::sharding {

// A stored tensor that is updated belongs to the stage that uses it first; this
// stage updates it. Other arguments, and values computed from them alone,
// belong to all stages that use them. An unmarked operation belongs to the
// stage of the updated argument among its operands, else to that of its last
// operand.
class StagesOfMain {
 public:
  // Reads the marks (`nn.stage`) of operations. Without marks, nothing has a
  // stage.
  explicit StagesOfMain(mlir::func::FuncOp main);

  // Returns the stages in ascending order; empty if there is none.
  const std::set<int>& of(mlir::Value value) const;
  const std::set<int>& of(mlir::Operation* op) const;

 private:
  void placeChanging();
  void placeOperations();
  void placeByUsers();
  std::set<int> ofUsers(mlir::Value value) const;
  std::set<int> firstUse(mlir::Value value) const;

  mlir::func::FuncOp main_;
  llvm::DenseMap<mlir::Operation*, std::set<int>> operations_;
  llvm::DenseMap<mlir::Value, std::set<int>> arguments_;
  const std::set<int> none_;
};

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_STAGES_OF_MAIN_H_
