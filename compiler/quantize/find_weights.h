// Finds the weights of matrix products and convolutions, and the tables of
// embeddings: parameters of @main, also where layer functions read them.
#ifndef PARTITA_COMPILER_QUANTIZE_FIND_WEIGHTS_H_
#define PARTITA_COMPILER_QUANTIZE_FIND_WEIGHTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::quantize {

// An argument of @main with data of f32 and at least two dimensions.
struct Weight {
  unsigned argument = 0;
  std::string name;
  // Dimensions that no product or convolution sums over, increasing: the output
  // channels. The rows of a table.
  llvm::SmallVector<int64_t> channels;
  bool is_multiplied = false;  // by a product or a convolution
  bool is_table = false;       // rows of it are looked up
  // The reason why it cannot be quantized; empty if it can.
  std::string obstacle;
  // Numbers along the last dimension that is summed over which share a scale,
  // of weights of 4 bits. 0: 8 bits, with a scale per output channel.
  int64_t group = 0;
  bool has_zeros = false;  // a zero point per group
  bool is_float8 = false;  // e4m3 instead of integers of 8 bits

  // Its dimensions, first channels, then those that are summed over.
  llvm::SmallVector<int64_t> order(int64_t rank) const;
};

// Weights whose numbers are not in a file have an obstacle, unless
// `needs_file` is false. Weights of convolutions have one unless
// `convolutions` is true.
std::vector<Weight> findWeights(mlir::func::FuncOp main, bool needs_file = true,
                                bool convolutions = false);

// Names of the options that have `keep` and `embeddings`.
struct KeepOptionNames {
  const char* keep = "--keep";
  const char* embeddings = "--embeddings";
};
inline constexpr KeepOptionNames kFakeOptionNames = {"--fake-quantize: keep",
                                                     "embeddings=y"};

// Gives obstacles to weights that match a pattern of `keep`, and to tables that
// no product reads unless `embeddings` is true. A pattern is a glob of the
// parameter's name or its module's (without ".weight"); one without a glob's
// characters also matches the end of a name. InvalidArgument if a pattern
// matches no weight; messages have the names of the options.
absl::Status keepWeights(std::vector<Weight>& weights,
                         const std::vector<std::string>& keep, bool embeddings,
                         const KeepOptionNames& names = {});

// The dimensions of the input that a reshape keeps, if it only drops dimensions
// of size 1; empty otherwise.
llvm::SmallVector<int64_t> keptDims(nn::ReshapeOp reshape);

}  // namespace partita::quantize

#endif  // PARTITA_COMPILER_QUANTIZE_FIND_WEIGHTS_H_
