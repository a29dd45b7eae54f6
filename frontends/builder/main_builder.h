// Builds @main of an imported model: inputs, a seed, weights in files, results.
#ifndef PARTITA_FRONTENDS_BUILDER_MAIN_BUILDER_H_
#define PARTITA_FRONTENDS_BUILDER_MAIN_BUILDER_H_

#include <string>
#include <utility>

#include "dialects/nn/dialect.h"
#include "frontends/builder/emitter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::builder {

// A result of @main: an output, or the new value of the stored tensor `name`.
// Updates follow outputs.
struct Result {
  std::string name;
  Val value;
  bool is_update = false;
};

// The order of arguments is inputs, seed, weights. Add all inputs before the
// first weight.
class MainBuilder {
 public:
  // `main` has an empty entry block; `emitter` appends to it.
  MainBuilder(mlir::func::FuncOp main, Emitter& emitter)
      : main_(main), emitter_(emitter) {}

  Val addInput(llvm::StringRef name, mlir::RankedTensorType type,
               bool is_unsigned = false);
  // `kind` is "parameter", "buffer" or "constant"; `source` says where the
  // loader finds the data.
  Val addWeight(llvm::StringRef name, mlir::RankedTensorType type,
                bool is_unsigned, llvm::StringRef kind, nn::FileAttr source);

  // A tensor that runs keep and update. It begins as zeros.
  Val addState(llvm::StringRef name, mlir::RankedTensorType type,
               bool is_unsigned);

  // Returns a new scalar i64 seed at each call, derived from the input `seed`.
  // The first call creates that input. Each call adds the same operations, so
  // that layers stay equal.
  Val nextSeed();

  llvm::ArrayRef<std::pair<std::string, Val>> inputs() const { return inputs_; }

  // Returns the results, erases unused operations and weights, and writes the
  // function's type and attributes.
  void finish(llvm::ArrayRef<Result> results);

 private:
  struct Weight {
    mlir::BlockArgument argument;
    std::string name;
    bool is_unsigned;
    std::string kind;
    mlir::Attribute source;
  };

  void eraseUnused();
  void annotateArguments();

  mlir::func::FuncOp main_;
  Emitter& emitter_;
  llvm::SmallVector<std::pair<std::string, Val>> inputs_;
  llvm::SmallVector<Weight> weights_;
  Val seed_, next_seed_;  // the input `seed`, and the seed for its next use
};

}  // namespace partita::builder

#endif  // PARTITA_FRONTENDS_BUILDER_MAIN_BUILDER_H_
