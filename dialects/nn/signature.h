// Batched changes of a function's arguments and results.
#ifndef PARTITA_DIALECTS_NN_SIGNATURE_H_
#define PARTITA_DIALECTS_NN_SIGNATURE_H_

#include <string>
#include <vector>

#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace partita::nn {

// Collects changes and writes them at once. Each setter of FuncOp builds a new
// list of all attributes or types, and the context never frees it: with the
// thousands of arguments of a training step, one call per argument takes
// gigabytes. While a Signature exists, no other code may change the function's
// signature, and the function still shows the old one. Block arguments and the
// terminator's operands change immediately.
class Signature {
 public:
  explicit Signature(mlir::func::FuncOp function);
  ~Signature() { write(); }
  Signature(const Signature&) = delete;
  Signature& operator=(const Signature&) = delete;

  size_t numResults() const { return results_.size(); }
  // Null if there is no attribute of that name.
  mlir::Attribute resultAttr(unsigned i, llvm::StringRef name) const;

  // A null `value` removes the attribute.
  void setArgument(unsigned i, llvm::StringRef name, mlir::Attribute value);
  void setResult(unsigned i, llvm::StringRef name, mlir::Attribute value);

  // Appends an argument after all others.
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

// The argument number of each name (nn.name).
llvm::StringMap<unsigned> argumentsByName(mlir::func::FuncOp function);

}  // namespace partita::nn

#endif  // PARTITA_DIALECTS_NN_SIGNATURE_H_
