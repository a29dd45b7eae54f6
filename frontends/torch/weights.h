// Data of weights: ranges of the model's file, or constants.
#ifndef PARTITA_FRONTENDS_TORCH_WEIGHTS_H_
#define PARTITA_FRONTENDS_TORCH_WEIGHTS_H_

#include <string>

#include "frontends/builder/element_type.h"
#include "frontends/torch/program.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace partita::torch {

using builder::ElementType;

// Null type if nn has no such type.
ElementType elementTypeOf(ScalarType type, mlir::MLIRContext* context);

// A stored tensor. Element (i, j, ...) is at offset + i * strides[0] + ... in
// elements of `type`.
struct Stored {
  ElementType type;
  llvm::SmallVector<int64_t> shape, strides;
  uint64_t offset = 0;     // of the first element, in bytes from the file's
                           // beginning
  std::string_view bytes;  // from the first element to the end of the entry
  std::string identity;    // equal for tied weights
  bool is_trained = false;

  int64_t elements() const;
  uint64_t byteSize() const;
  // The dimensions in the order of memory if that order is dense: a transposed
  // view has a permutation. Nothing for views with gaps or repeated elements.
  std::optional<llvm::SmallVector<int64_t>> memoryOrder() const;
};

class Weights {
 public:
  // Arguments outlive this object; `path` is the archive's.
  Weights(const Archive& archive, const Program& program, std::string path)
      : archive_(archive), program_(program), path_(std::move(path)) {}

  const std::string& path() const { return path_; }

  // The weight with a name in the state dict, or the constant with that name.
  // Fails with `error` set if it is missing, pickled, or larger than its entry.
  mlir::FailureOr<Stored> find(const std::string& name,
                               mlir::MLIRContext* context,
                               std::string& error) const;

  // The values of a small weight.
  static mlir::DenseElementsAttr decode(const Stored& stored);

 private:
  const Archive& archive_;
  const Program& program_;
  std::string path_;
};

}  // namespace partita::torch

#endif  // PARTITA_FRONTENDS_TORCH_WEIGHTS_H_
