// A checkpoint that is there, opened to be read.
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
  kChecksums,  // Reads every byte once.
  kSizes       // For ranks that open what another has verified.
};

// Logical tensors, mapped: any plan on any number of devices takes its blocks
// out of them. Movable.
class Checkpoint {
 public:
  // DataLoss or InvalidArgument where it is not whole: a file is missing, cut,
  // or has another checksum.
  static absl::StatusOr<Checkpoint> Open(const std::string& path,
                                         Verify verify);

  const std::string& path() const { return path_; }
  const State& state() const { return state_; }
  // Names, types and shapes of all tensors, sorted by name.
  std::vector<base::TensorSpec> tensors() const;
  bool Has(const std::string& name) const { return places_.count(name) > 0; }
  // Data is valid as long as this object lives. NotFound.
  absl::StatusOr<base::ConstTensor> Find(const std::string& name) const;
  // InvalidArgument unless there is exactly one tensor for each of `wanted`, of
  // its type and shape; says which differ. Those that `may_differ` says so of
  // may be missing, others, or not wanted.
  absl::Status Match(const std::vector<base::TensorSpec>& wanted,
                     const std::function<bool(const std::string& name)>&
                         may_differ = nullptr) const;
  // Whether there is this tensor, of its type and shape.
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

// The newest whole checkpoint in a folder. For each newer one that is not
// whole, a line that says so and why is added to `skipped`. NotFound if there
// is no checkpoint at all, DataLoss if none is whole.
absl::StatusOr<Checkpoint> OpenLatest(const std::string& folder, Verify verify,
                                      std::vector<std::string>* skipped);

}  // namespace partita::checkpoint

#endif  // PARTITA_RUNTIME_CHECKPOINT_CHECKPOINT_H_
