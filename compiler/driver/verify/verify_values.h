// Numbers to verify with, and how far two tensors are apart.
#ifndef PARTITA_COMPILER_DRIVER_VERIFY_VERIFY_VALUES_H_
#define PARTITA_COMPILER_DRIVER_VERIFY_VERIFY_VALUES_H_

#include <map>
#include <string>

#include "dialects/nn/tensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::driver {

// The same numbers for a parameter or an input of one name, in whatever shape
// a module takes it: what its file holds, else numbers from a formula. Inputs
// and weights without file are made up: floats of the scale of their
// distribution, else in [-0.5, 0.5); integers 0, 1, 2, which are tokens of any
// vocabulary. States of an optimizer are as in the midst of training, at least
// 0.5: from zeros, an update would be the sign of each gradient, roundings
// included.
class ArgumentValues {
 public:
  // Relative paths of weights are relative to this.
  explicit ArgumentValues(std::string source_folder)
      : source_folder_(std::move(source_folder)) {}

  // Argument `i` of @main as a tensor of `type`, which may be another view of
  // the same elements.
  nn::Tensor get(mlir::func::FuncOp main, unsigned i,
                 mlir::RankedTensorType type);

  // Weights so far, by whether their file was read.
  int64_t read() const { return count(true); }
  int64_t madeUp() const { return count(false); }

 private:
  int64_t count(bool was_read) const;

  std::string source_folder_;
  std::map<std::string, bool> read_;  // by name of the weight
};

// Largest difference over the largest magnitude (`least`, if that is larger),
// element by element in row-major order, of tensors of one size; NaN where one
// has NaN and the other has none.
double distanceOf(const nn::Tensor& found, const nn::Tensor& expected,
                  double least = 0);
// The largest finite magnitude.
double largestOf(const nn::Tensor& tensor);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_VERIFY_VERIFY_VALUES_H_
