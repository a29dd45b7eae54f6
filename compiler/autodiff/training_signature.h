// What training adds to the arguments and results of @main.
#ifndef PARTITA_COMPILER_AUTODIFF_TRAINING_SIGNATURE_H_
#define PARTITA_COMPILER_AUTODIFF_TRAINING_SIGNATURE_H_

#include <string>

#include "compiler/autodiff/optimizer.h"
#include "dialects/nn/signature.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::autodiff {

inline constexpr char kMaster[] = "master";  // the state that is the parameter

// A parameter and its gradient.
struct Trained {
  std::string name;
  mlir::Value parameter, gradient;
  mlir::DictionaryAttr attributes;  // of the parameter's argument

  // As the model has it.
  llvm::ArrayRef<int64_t> modelShape() const;
};

// Behind the other inputs.
mlir::Value addInput(mlir::func::FuncOp main, llvm::StringRef name,
                     llvm::StringRef role, mlir::RankedTensorType type);

// Of a parameter's shape; it lies as the parameter does. It is zero at first,
// but for the master copy.
mlir::Value addState(nn::Signature& main, const Trained& trained,
                     const std::string& state, mlir::Type type);
// One that has not the parameter's shape.
mlir::Value addReducedState(nn::Signature& main, const Trained& trained,
                            const State& state, mlir::RankedTensorType type);

// Result number `index`; `attribute` is nn.name or nn.updates.
void addResult(nn::Signature& main, mlir::Value value,
               llvm::StringRef attribute, const std::string& text,
               unsigned index);
// Behind the last result.
void addUpdate(nn::Signature& main, mlir::Value value, const std::string& name);
// Behind the loss and what else is shown.
unsigned firstUpdate(const nn::Signature& main);

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_TRAINING_SIGNATURE_H_
