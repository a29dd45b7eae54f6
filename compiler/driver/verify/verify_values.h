// Values to verify with, and distances between tensors.
#ifndef PARTITA_COMPILER_DRIVER_VERIFY_VERIFY_VALUES_H_
#define PARTITA_COMPILER_DRIVER_VERIFY_VERIFY_VALUES_H_

#include <map>
#include <string>

#include "dialects/nn/tensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::driver {

// Gives a parameter or an input of one name the same values in every module,
// whatever its shape there. Weights are read from their file if there is one.
// Inputs and other weights are made up: floats with the scale of their
// distribution, else in [-0.5, 0.5); integers 0, 1, 2, which are tokens of any
// vocabulary. Optimizer states are at least 0.5, as in the midst of training:
// with zeros, an update would be the sign of each gradient, including rounding
// errors.
class ArgumentValues {
 public:
  // Relative paths of weights are relative to `source_folder`.
  explicit ArgumentValues(std::string source_folder)
      : source_folder_(std::move(source_folder)) {}

  // Argument `i` of @main as a tensor of `type`, which may be another view of
  // the same elements.
  nn::Tensor get(mlir::func::FuncOp main, unsigned i,
                 mlir::RankedTensorType type);

  // Numbers of weights so far: read from their file, and made up.
  int64_t read() const { return count(true); }
  int64_t madeUp() const { return count(false); }

 private:
  int64_t count(bool was_read) const;

  std::string source_folder_;
  std::map<std::string, bool> read_;  // by name of the weight
};

// The largest difference of two tensors of one size, element by element in
// row-major order, divided by the largest magnitude of `expected` (or by
// `least`, if it is larger). NaN if an element is NaN in only one of them.
double distanceOf(const nn::Tensor& found, const nn::Tensor& expected,
                  double least = 0);
// The largest finite magnitude.
double largestOf(const nn::Tensor& tensor);

}  // namespace partita::driver

#endif  // PARTITA_COMPILER_DRIVER_VERIFY_VERIFY_VALUES_H_
