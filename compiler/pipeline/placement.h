// Chooses the rank and time of each operation of @main in a pipeline.
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

// Prefix of states that a step leaves for the next step (partita-delay-stages).
// The number of the stage that reads the state follows.
inline constexpr char kDelayedPrefix[] = "delayed/";

// A transfer of a value between two ranks.
struct Transfer {
  mlir::Value value;
  int from = 0, to = 0;
  // Sent after this operation of the sender; null: before all operations.
  mlir::Operation* after = nullptr;
};

// Implements the rules of cutStages (cut.h).
class Placement {
 public:
  // The schedule has flushes. `clock` holds the times of its cells,
  // [rank][cell]. All arguments must outlive the placement.
  Placement(mlir::func::FuncOp main, const core::Schedule& schedule,
            const std::vector<std::vector<core::TimedCell>>& clock)
      : main_(main), schedule_(schedule), clock_(clock) {}

  // Must be called first. Fails with a diagnostic if a mark matches no cell of
  // the schedule.
  mlir::LogicalResult find();

  // Returns the operations of a rank in execution order.
  llvm::SmallVector<mlir::Operation*> orderOf(int rank) const {
    return orderOf(rank, end(rank));
  }

  // Returns one transfer per value and receiving rank, in the sender's order.
  const std::vector<Transfer>& transfers() const { return transfers_; }

  // Returns the rank that returns a result of @main.
  int rankOfResult(unsigned result) const { return result_rank_[result]; }

 private:
  // Returns the operations of a rank up to and including slot `last_slot`.
  llvm::SmallVector<mlir::Operation*> orderOf(int rank, int last_slot) const;
  mlir::LogicalResult placeCalls();
  mlir::LogicalResult placeCall(mlir::Operation* op,
                                const core::CellMap& cells);
  void placeArguments();
  void placeUnmarked(mlir::Operation* op);
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
  llvm::SmallVector<mlir::Operation*> body_;  // of main_, in order
  llvm::DenseMap<mlir::Operation*, int> number_;
  // The rank of each operation, and its cell's position on that rank. An
  // operation outside of cells has the position of the cell before it.
  llvm::DenseMap<mlir::Operation*, int> home_, slot_;
  llvm::DenseMap<mlir::Operation*, double> ready_;  // outside of cells
  llvm::DenseMap<mlir::Value, int> owner_;          // stored tensors
  llvm::StringMap<int> by_name_;                    // stored tensors by name
  llvm::DenseMap<mlir::Operation*, int> updates_;   // optimizer calls
  llvm::SmallVector<int> result_rank_;
  // Slots per rank of operations that are computed wherever they are needed.
  llvm::DenseMap<mlir::Operation*, std::map<int, int>> copies_;
  std::vector<Transfer> transfers_;
};

}  // namespace partita::pipeline

#endif  // PARTITA_COMPILER_PIPELINE_PLACEMENT_H_
