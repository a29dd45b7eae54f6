// Reads an existing checkpoint.
#ifndef PARTITA_RUNTIME_CHECKPOINT_CHECKPOINT_H_
#define PARTITA_RUNTIME_CHECKPOINT_CHECKPOINT_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/safetensors.h"
#include "runtime/base/tensor.h"
#include "runtime/checkpoint/manifest.h"

namespace partita::checkpoint {

enum class Verify {
  kChecksums,  // reads every byte once
  kSizes       // for ranks that open a checkpoint verified by another rank
};

// Logical tensors, mapped, so that any plan on any number of devices can take
// its blocks from them. Movable.
class Checkpoint {
 public:
  // DataLoss or InvalidArgument if it is not complete: a file is missing, cut,
  // or has a different checksum.
  static absl::StatusOr<Checkpoint> Open(const std::string& path,
                                         Verify verify);

  const std::string& path() const { return path_; }
  const State& state() const { return state_; }
  // Names, types and shapes of all tensors, sorted by name.
  std::vector<base::TensorSpec> tensors() const;
  bool Has(const std::string& name) const { return places_.count(name) > 0; }
  // The data is valid as long as this object lives. NotFound.
  absl::StatusOr<base::ConstTensor> Find(const std::string& name) const;
  // Finds the parts of a tensor (base::PartsOf) as one tensor. InvalidArgument
  // if they do not lie one after the other in one file, as the writer puts
  // them.
  absl::StatusOr<base::ConstTensor> FindParts(
      const base::TensorSpec& whole) const;
  // InvalidArgument unless there is exactly one tensor for each of `wanted`, of
  // its type and shape; the message names the differences. Tensors for which
  // `may_differ` returns true may be missing, extra, or of another type or
  // shape.
  absl::Status Match(const std::vector<base::TensorSpec>& wanted,
                     const std::function<bool(const std::string& name)>&
                         may_differ = nullptr) const;
  // True if there is a tensor of this name, type and shape.
  bool Matches(const base::TensorSpec& wanted) const;

 private:
  struct Place {
    size_t file;
    base::SafetensorsEntry entry;
  };

  std::string path_;
  State state_;
  std::vector<base::SafetensorsFile> files_;
  std::map<std::string, Place> places_;
};

// Opens the newest complete checkpoint in a folder. For each newer incomplete
// one, adds a line with the reason to `skipped`. NotFound if there is no
// checkpoint at all, DataLoss if none is complete.
absl::StatusOr<Checkpoint> OpenLatest(const std::string& folder, Verify verify,
                                      std::vector<std::string>* skipped);

}  // namespace partita::checkpoint

#endif  // PARTITA_RUNTIME_CHECKPOINT_CHECKPOINT_H_
