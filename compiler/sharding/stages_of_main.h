// Of which stages of a pipeline what stands in @main is.
#ifndef PARTITA_COMPILER_SHARDING_STAGES_OF_MAIN_H_
#define PARTITA_COMPILER_SHARDING_STAGES_OF_MAIN_H_

#include <set>

#include "llvm/ADT/DenseMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::sharding {

// A stored tensor that changes is of the stage that computes with it first,
// which updates it; other arguments, and what follows from them alone, are of
// all stages that use them; everything else is where its last operand is.
class StagesOfMain {
 public:
  // Operations have their marks (`nn.stage`); without any, all is of no stage.
  explicit StagesOfMain(mlir::func::FuncOp main);

  // In order; empty: of no stage.
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
