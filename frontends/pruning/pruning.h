// Pruning: sets the smallest weights of products and convolutions to zero, and
// writes the model's weights with these zeros.
#ifndef PARTITA_FRONTENDS_PRUNING_PRUNING_H_
#define PARTITA_FRONTENDS_PRUNING_PRUNING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mlir/IR/BuiltinOps.h"

namespace partita::pruning {

struct Options {
  double sparsity = 0;  // the share of zeros; used if there is no pattern
  bool global = false;  // the share of all weights together, not of each
  // Of each `group` consecutive elements of a sum, `keep` remain; 0: no
  // pattern.
  int64_t keep = 0, group = 0;
  bool permute = false;    // reorder sums first, so that more magnitude remains
  std::string left_alone;  // weights, as for nn::GlobList
};

struct PrunedTensor {
  std::string name;
  std::vector<int64_t> shape;
  int64_t elements = 0, zeros = 0;
  // The share of the sum of all magnitudes that remains.
  double kept_magnitude = 1;
  bool is_permuted = false;
};

struct Report {
  std::vector<PrunedTensor> pruned;
  // Weights with two and more dimensions that are as before, and why.
  std::vector<std::pair<std::string, std::string>> left_alone;
  int64_t bytes = 0;  // written
};

// Parses "2:4". InvalidArgument if this is no pattern.
absl::Status parsePattern(const std::string& text, Options& options);

// InvalidArgument if `left_alone` has a malformed glob.
absl::Status checkLeftAlone(const Options& options);

// Prunes the imported model `module`, whose weights are in files, and writes
// the new folder `output`: model.safetensors with the stored tensors that the
// model reads, under their names and in their types, and the files of `folder`
// without weights if the model is one (else it is empty). Elements that are not
// pruned keep their bytes. Relative paths of weights are relative to
// `source_folder`. InvalidArgument if a weight to prune is not finite.
absl::StatusOr<Report> pruneModel(mlir::ModuleOp module, const Options& options,
                                  const std::string& source_folder,
                                  const std::string& folder,
                                  const std::string& output);

}  // namespace partita::pruning

#endif  // PARTITA_FRONTENDS_PRUNING_PRUNING_H_
