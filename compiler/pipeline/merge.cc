// Compares functions after their callees.
#include "compiler/pipeline/merge.h"

#include <map>

#include "dialects/exec/entries.h"
#include "llvm/ADT/DenseMap.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/SymbolTable.h"

namespace partita::pipeline {
namespace {

using llvm::SmallVector;
using mlir::ModuleOp;
using mlir::Operation;
using mlir::func::FuncOp;

constexpr auto kFlags = mlir::OperationEquivalence::IgnoreLocations;

// Hashes a function's body without its name and the names of values.
size_t hashOf(FuncOp function) {
  llvm::hash_code hash = llvm::hash_value(function->getNumRegions());
  function.getBody().walk([&](Operation* op) {
    hash = llvm::hash_combine(
        hash, mlir::OperationEquivalence::computeHash(
                  op, mlir::OperationEquivalence::ignoreHashValue,
                  mlir::OperationEquivalence::ignoreHashValue, kFlags));
  });
  return hash;
}

class Merger {
 public:
  explicit Merger(ModuleOp module) : module_(module) {}

  // Adds the functions of one more rank.
  void add(ModuleOp program) {
    FuncOp main = program.lookupSymbol<FuncOp>("main");
    for (FuncOp root : {program.lookupSymbol<FuncOp>("init"), main})
      if (root) move(root, program);
    ++ranks_;
  }

 private:
  // Moves a function after the functions that it references and gives it an
  // unused name, or returns the name of an equal function.
  mlir::StringAttr move(FuncOp function, ModuleOp program) {
    const mlir::StringAttr old = function.getSymNameAttr();
    function.walk([&](Operation* op) {
      for (mlir::NamedAttribute attribute : op->getAttrs())
        if (auto symbol =
                llvm::dyn_cast<mlir::FlatSymbolRefAttr>(attribute.getValue()))
          if (mlir::StringAttr name = moved(symbol.getValue(), program))
            op->setAttr(attribute.getName(),
                        mlir::FlatSymbolRefAttr::get(name));
    });
    return names_[{ranks_, old}] = place(function);
  }

  // Returns null if there is no such function.
  mlir::StringAttr moved(llvm::StringRef symbol, ModuleOp program) {
    if (auto known = names_.find({ranks_, symbol}); known != names_.end())
      return known->second;
    auto function = program.lookupSymbol<FuncOp>(symbol);
    return function ? move(function, program) : mlir::StringAttr();
  }

  mlir::StringAttr place(FuncOp function) {
    SmallVector<FuncOp>& alike = by_hash_[hashOf(function)];
    const mlir::StringAttr old = function.getSymNameAttr();
    if (function.isPrivate())
      for (FuncOp other : alike)
        if (isEqual(function, other)) return other.getSymNameAttr();
    std::string name = old.str();
    if (!function.isPrivate())
      name = exec::entryName(name, ranks_);
    else
      for (int i = 1; module_.lookupSymbol(name); ++i)
        name = old.str() + "_" + std::to_string(i);  // dots are not PTX
    function->remove();
    function.setSymName(name);
    module_.push_back(function);
    if (function.isPrivate()) alike.push_back(function);
    return function.getSymNameAttr();
  }

  static bool isEqual(FuncOp a, FuncOp b) {
    const auto attributesOf = [](FuncOp function) {
      mlir::NamedAttrList attributes(function->getAttrs());
      attributes.erase(function.getSymNameAttrName());
      return attributes.getDictionary(function.getContext());
    };
    return attributesOf(a) == attributesOf(b) &&
           mlir::OperationEquivalence::isRegionEquivalentTo(
               &a.getBody(), &b.getBody(), kFlags);
  }

  ModuleOp module_;
  size_t ranks_ = 0;
  // By rank and the function's name there.
  std::map<std::pair<size_t, llvm::StringRef>, mlir::StringAttr> names_;
  llvm::DenseMap<size_t, SmallVector<FuncOp>> by_hash_;
};

}  // namespace

mlir::OwningOpRef<ModuleOp> mergePrograms(
    llvm::MutableArrayRef<mlir::OwningOpRef<ModuleOp>> programs) {
  ModuleOp first = *programs.front();
  mlir::OwningOpRef<ModuleOp> merged =
      ModuleOp::create(first.getLoc(), first.getName());
  (*merged)->setAttrs(first->getAttrs());
  for (Operation& op : llvm::make_early_inc_range(*first.getBody()))
    if (!llvm::isa<FuncOp>(op)) {
      op.remove();
      merged->push_back(&op);
    }
  Merger merger(*merged);
  for (mlir::OwningOpRef<ModuleOp>& program : programs) merger.add(*program);
  for (mlir::OwningOpRef<ModuleOp>& program : programs) program = {};
  return merged;
}

}  // namespace partita::pipeline
