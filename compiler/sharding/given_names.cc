// The inverse of labels.cc. Primes distinguish the dimensions of one value and
// carry no information about classes.
#include "compiler/sharding/given_names.h"

#include "compiler/sharding/dims.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::sharding {
namespace {

using mlir::Operation;
using mlir::Value;
using mlir::func::FuncOp;

std::string plain(llvm::StringRef name) { return name.rtrim('\'').str(); }

void name(int segment, const DimSegment& given, Names& names) {
  if (!given.name.empty()) names.set(segment, plain(given.name));
}

// Classes may have been split since. All parts of a named segment get its name:
// key-value heads and the queries of each are both heads.
void readDim(const Dim& dim, llvm::ArrayRef<int> segments,
             const DimClasses& classes, Names& names) {
  if (!dim.role.empty()) names.roles[segments.vec()] = plain(dim.role);
  if (dim.segments.size() == segments.size()) {
    for (auto [segment, given] : llvm::zip_equal(segments, dim.segments))
      name(segment, given, names);
    return;
  }
  for (const DimSegment& given : dim.segments) {
    // The text does not determine the sizes of several names.
    if (given.size == 0) return;
    for (int64_t left = given.size; left > 1 && !segments.empty();
         segments = segments.drop_front()) {
      const int64_t size = classes.sizeOf(segments.front());
      if (left % size != 0) return;
      name(segments.front(), given, names);
      left /= size;
    }
  }
}

bool readValue(Value value, const DimClasses& classes, Names& names) {
  const auto dims = dimsOf(value);
  if (!dims) return false;
  for (auto [i, dim] : llvm::enumerate(*dims))
    readDim(dim, classes.segmentsOf(value, i), classes, names);
  return true;
}

}  // namespace

bool readGivenNames(mlir::ModuleOp module, const DimClasses& classes,
                    Names& names) {
  bool any = false;
  for (FuncOp function : module.getOps<FuncOp>()) {
    if (function.isExternal()) continue;
    for (mlir::BlockArgument argument : function.getArguments())
      any |= readValue(argument, classes, names);
    for (Operation& op : function.front())
      for (Value result : op.getResults())
        any |= readValue(result, classes, names);
  }
  return any;
}

}  // namespace partita::sharding
