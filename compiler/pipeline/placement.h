// Where and when each operation of @main is computed in a pipeline.
#ifndef PARTITA_COMPILER_PIPELINE_PLACEMENT_H_
#define PARTITA_COMPILER_PIPELINE_PLACEMENT_H_

#include <map>
#include <vector>

#include "compiler/core/schedule.h"
#include "compiler/core/timetable.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::pipeline {

// Begins the names of states in which a step leaves something for the next one
// (partita-delay-stages); the number of the stage that reads it follows.
inline constexpr char kDelayedPrefix[] = "delayed/";

// A value on its way from one rank to another.
struct Transfer {
  mlir::Value value;
  int from = 0, to = 0;
  // Behind which of the sender's operations it is sent; null: in front of all.
  mlir::Operation* after = nullptr;
};

// By the rules of cutStages (cut.h).
class Placement {
 public:
  // The schedule flushes; `clock` says when its cells run, [rank][cell]. All
  // must outlive the placement.
  Placement(mlir::func::FuncOp main, const core::Schedule& schedule,
            const std::vector<std::vector<core::TimedCell>>& clock)
      : main_(main), schedule_(schedule), clock_(clock) {}

  // Comes first. Fails, with a diagnostic, where a mark is none of the
  // schedule's cells.
  mlir::LogicalResult find();

  // What a rank computes, in this order.
  llvm::SmallVector<mlir::Operation*> orderOf(int rank) const {
    return orderOf(rank, end(rank));
  }

  // Each value once for each rank that receives it, in the order in which its
  // sender sends them.
  const std::vector<Transfer>& transfers() const { return transfers_; }

  // The rank that returns a result of @main.
  int rankOfResult(unsigned result) const { return result_rank_[result]; }

 private:
  // Up to the operations of a slot.
  llvm::SmallVector<mlir::Operation*> orderOf(int rank, int last_slot) const;
  mlir::LogicalResult placeCalls();
  mlir::LogicalResult placeCall(mlir::Operation* op,
                                const core::CellMap& cells);
  void placeArguments();
  void placeOther(mlir::Operation* op);
  void placeResults();
  void placeCopies(mlir::Operation* op);
  void findTransfers();
  std::pair<int, int> sendAfter(Transfer& transfer, int use, bool waits) const;
  mlir::Operation* lastOf(int rank, int slot) const;
  int firstUse(mlir::Value value) const;
  int homeOf(mlir::Value value) const;
  int slotOf(mlir::Value value) const;
  bool leadsToCell(mlir::Operation* op) const;
  double readyAt(mlir::Value value) const;
  double endOf(int rank, int slot) const;
  int slotAt(int rank, double time) const;
  int end(int rank) const;
  std::map<int, int> slotsOf(mlir::Operation* op) const;
  llvm::StringRef text(mlir::BlockArgument argument, const char* name);
  llvm::StringRef updated(unsigned result);

  mlir::func::FuncOp main_;
  const core::Schedule& schedule_;
  const std::vector<std::vector<core::TimedCell>>& clock_;
  llvm::SmallVector<mlir::Operation*> body_;  // of main_, with their numbers
  llvm::DenseMap<mlir::Operation*, int> number_;
  // The rank of an operation, and after which of the rank's cells it comes, or
  // which it is.
  llvm::DenseMap<mlir::Operation*, int> home_, slot_;
  llvm::DenseMap<mlir::Operation*, double> ready_;  // but for cells
  llvm::DenseMap<mlir::Value, int> owner_;          // of stored tensors
  llvm::StringMap<int> by_name_;                    // the same
  llvm::DenseMap<mlir::Operation*, int> updates_;   // calls of optimizers
  llvm::SmallVector<int> result_rank_;
  // Of operations that are computed wherever they are needed: slots by rank.
  llvm::DenseMap<mlir::Operation*, std::map<int, int>> copies_;
  std::vector<Transfer> transfers_;
};

}  // namespace partita::pipeline

#endif  // PARTITA_COMPILER_PIPELINE_PLACEMENT_H_
