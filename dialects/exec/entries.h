// The functions that a module begins with.
#ifndef PARTITA_DIALECTS_EXEC_ENTRIES_H_
#define PARTITA_DIALECTS_EXEC_ENTRIES_H_

#include <string>

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::exec {

// What one rank of a pipeline runs, or every device where there is none.
struct Entry {
  mlir::func::FuncOp main;  // at each run
  mlir::func::FuncOp init;  // at load time; null if there is nothing to do
};

// By rank: @main and @init, @main.1 and @init.1, and so on.
llvm::SmallVector<Entry> entriesOf(mlir::ModuleOp module);

// "main.1"; that of entry 0 is the name itself.
std::string entryName(llvm::StringRef name, size_t entry);

}  // namespace partita::exec

#endif  // PARTITA_DIALECTS_EXEC_ENTRIES_H_
