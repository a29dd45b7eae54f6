// Many changes of a function's arguments and results, written at once.
#ifndef PARTITA_DIALECTS_NN_SIGNATURE_H_
#define PARTITA_DIALECTS_NN_SIGNATURE_H_

#include <string>
#include <vector>

#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace partita::nn {

// Each setter of FuncOp builds a new list of all attributes or types, which the
// context keeps for good: with the thousands of arguments of a training step,
// one setter for each of them takes gigabytes. This collects changes and writes
// them once. While it lives, nobody else may change the signature, and the
// function still shows the old one; block arguments and the terminator's
// operands are changed immediately.
class Signature {
 public:
  explicit Signature(mlir::func::FuncOp function);
  ~Signature() { write(); }
  Signature(const Signature&) = delete;
  Signature& operator=(const Signature&) = delete;

  size_t numResults() const { return results_.size(); }
  // Null: it has none of that name.
  mlir::Attribute resultAttr(unsigned i, llvm::StringRef name) const;

  // A null `value` removes the attribute.
  void setArgument(unsigned i, llvm::StringRef name, mlir::Attribute value);
  void setResult(unsigned i, llvm::StringRef name, mlir::Attribute value);

  // Behind all others.
  mlir::Value addArgument(mlir::Type type, mlir::DictionaryAttr attributes,
                          mlir::Location location);
  // `value` becomes result number `index`.
  void insertResult(unsigned index, mlir::Value value,
                    mlir::DictionaryAttr attributes);
  void eraseResult(unsigned index);

  void write();

 private:
  static void set(mlir::DictionaryAttr& attributes, llvm::StringRef name,
                  mlir::Attribute value);

  mlir::func::FuncOp function_;
  std::vector<mlir::DictionaryAttr> arguments_, results_;
  bool sets_arguments_ = false, sets_results_ = false, sets_type_ = false;
};

// The number of the argument that has each name (nn.name).
llvm::StringMap<unsigned> argumentsByName(mlir::func::FuncOp function);

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_SIGNATURE_H_
