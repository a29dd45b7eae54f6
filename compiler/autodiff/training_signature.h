// Adds the arguments and results of training to @main.
#ifndef PARTITA_COMPILER_AUTODIFF_TRAINING_SIGNATURE_H_
#define PARTITA_COMPILER_AUTODIFF_TRAINING_SIGNATURE_H_

#include <string>

#include "compiler/autodiff/optimizer.h"
#include "dialects/nn/signature.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::autodiff {

inline constexpr char kMaster[] = "master";  // state: f32 copy of a parameter

// A parameter and its gradient.
struct Trained {
  std::string name;
  mlir::Value parameter, gradient;
  mlir::DictionaryAttr attributes;  // of the parameter's argument

  // Returns the shape in the model's file.
  llvm::ArrayRef<int64_t> modelShape() const;
};

// Inserts an argument after the other inputs.
mlir::Value addInput(mlir::func::FuncOp main, llvm::StringRef name,
                     llvm::StringRef role, mlir::RankedTensorType type);

// Adds a state of the parameter's shape and sharding. It is initially zero,
// except for the master copy.
mlir::Value addState(nn::Signature& main, const Trained& trained,
                     const std::string& state, mlir::Type type);
// Adds a scalar state of the whole step, initially zero.
mlir::Value addStepState(nn::Signature& main, llvm::StringRef name,
                         mlir::Type element, mlir::Location location);
// Adds a state of another shape than the parameter's.
mlir::Value addReducedState(nn::Signature& main, const Trained& trained,
                            const State& state, mlir::RankedTensorType type);

// Adds result number `index`; `attribute` is nn.name or nn.updates.
void addResult(nn::Signature& main, mlir::Value value,
               llvm::StringRef attribute, const std::string& text,
               unsigned index);
// Appends a result that updates argument `name`.
void addUpdate(nn::Signature& main, mlir::Value value, const std::string& name);
// Returns the index of the first result with nn.updates, after the loss and
// other shown results.
unsigned firstUpdate(const nn::Signature& main);

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_TRAINING_SIGNATURE_H_
