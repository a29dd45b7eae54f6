// The interface between a handler and one operation: operands, attributes,
// results. A wrong attribute is reported once at the operation; the accessor
// then returns a harmless default and `failed()` is true.
#ifndef PARTITA_FRONTENDS_STABLEHLO_OP_CONTEXT_H_
#define PARTITA_FRONTENDS_STABLEHLO_OP_CONTEXT_H_

#include <optional>
#include <string>

#include "frontends/stablehlo/graph_importer.h"

namespace partita::stablehlo {

using builder::Compare;
using builder::countUp;
using builder::product;
using builder::toString;

class OpContext {
 public:
  // `name` is the operation's without its dialect and version: "dot_general".
  OpContext(GraphImporter& importer, mlir::Operation& op, llvm::StringRef name);

  Emitter& e;
  mlir::Operation& op;
  const llvm::StringRef name;

  bool failed() const { return e.failed(); }
  // Reports an error and returns a null value.
  Val error(const llvm::Twine& message);
  // Reports a feature that the importer or nn lacks.
  Val unsupported(const llvm::Twine& what);

  unsigned size() const { return op.getNumOperands(); }
  // Operand i, which must exist.
  Val in(unsigned i);
  Values all();
  void out(unsigned i, Val value);
  // Sets all results.
  void outAll(const Values& values);

  // The type of result i, as the file declares it.
  ValueType result(unsigned i = 0);

  // Attributes by name.
  bool has(llvm::StringRef attribute) const {
    return static_cast<bool>(op.getAttr(attribute));
  }
  int64_t integer(llvm::StringRef attribute);
  // A tensor or array of integers, row-major; empty if it is absent.
  Shape ints(llvm::StringRef attribute);
  bool flag(llvm::StringRef attribute);
  std::string text(llvm::StringRef attribute);
  // Distinct dimensions of a tensor of this rank.
  Shape dimensions(llvm::StringRef attribute, int64_t rank);
  // One dimension.
  int64_t dimension(llvm::StringRef attribute, int64_t rank);

  // Imports region i with these arguments. Empty after an error.
  Values region(unsigned i, llvm::ArrayRef<Val> arguments);
  // Imports region i, without arguments, as a branch that is taken if `taken`.
  Values branch(unsigned i, Val taken);
  // Imports the rest of a loop of regions 0 (condition) and 1 (body). Empty
  // after an error.
  Values loop(Val goes_on, llvm::ArrayRef<Val> first);
  Values call(llvm::StringRef function, llvm::ArrayRef<Val> arguments);
  // The operation of a region that only applies one operation to its two
  // arguments, in either order: "add". Empty if there is more in it.
  llvm::StringRef onlyOperation(unsigned region);

  // The value with the sharding of Shardy in an attribute.
  Val constrain(Val value, llvm::StringRef attribute);

  llvm::DenseMap<mlir::Value, Values>& rows() { return importer_.rows_; }

  // The axes of the manual computation whose body this is in; null outside.
  ManualAxes* manual() { return importer_.manual_; }
  // The results of a manual computation. Empty after an error.
  Values manualComputation();

 private:
  GraphImporter& importer_;
};

// "dot_general" for "vhlo.dot_general_v2", "sdy.mesh" for itself.
llvm::StringRef shortName(mlir::Operation& op);

}  // namespace partita::stablehlo

#endif  // PARTITA_FRONTENDS_STABLEHLO_OP_CONTEXT_H_
