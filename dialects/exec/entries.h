// The functions at which the execution of a module starts.
#ifndef PARTITA_DIALECTS_EXEC_ENTRIES_H_
#define PARTITA_DIALECTS_EXEC_ENTRIES_H_

#include <string>

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::exec {

// The functions of one pipeline rank, or of every device without a pipeline.
struct Entry {
  mlir::func::FuncOp main;  // runs once per step
  mlir::func::FuncOp init;  // runs at load time; null if there is nothing to do
};

// The entries by rank: @main and @init, @main.1 and @init.1, and so on.
llvm::SmallVector<Entry> entriesOf(mlir::ModuleOp module);

// "main.1" for entry 1; for entry 0 the name is unchanged.
std::string entryName(llvm::StringRef name, size_t entry);

}  // namespace partita::exec

#endif  // PARTITA_DIALECTS_EXEC_ENTRIES_H_
