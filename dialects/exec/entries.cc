// Finds entries by their names.
#include "dialects/exec/entries.h"

namespace partita::exec {

using mlir::func::FuncOp;

llvm::SmallVector<Entry> entriesOf(mlir::ModuleOp module) {
  llvm::SmallVector<Entry> entries;
  const auto find = [&](const char* name) {
    return module.lookupSymbol<FuncOp>(entryName(name, entries.size()));
  };
  while (FuncOp main = find("main")) entries.push_back({main, find("init")});
  return entries;
}

std::string entryName(llvm::StringRef name, size_t entry) {
  return entry == 0 ? name.str() : name.str() + "." + std::to_string(entry);
}

}  // namespace partita::exec
