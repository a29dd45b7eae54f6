// Where a model's weights are: in safetensors files, or in a seed.
#ifndef PARTITA_FRONTENDS_HUGGINGFACE_WEIGHTS_H_
#define PARTITA_FRONTENDS_HUGGINGFACE_WEIGHTS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "mlir/IR/Attributes.h"
#include "mlir/IR/Location.h"
#include "runtime/base/safetensors.h"

namespace partita::huggingface {

// How a seeded weight is distributed: kind and scale of #nn.init.
struct Init {
  const char* kind;
  double scale;

  static Init zeros() { return {"zeros", 0.0}; }
  static Init ones() { return {"ones", 1.0}; }
  static Init normal(double deviation = 0.02) { return {"normal", deviation}; }
};

// The weights of one folder. Complaints (missing, of another shape or type,
// unexpected) are collected and reported together by `finish`.
class Weights {
 public:
  // Weights from a seed: element i of a weight depends on the seed, the
  // weight's name and i.
  static Weights seeded(uint64_t seed);
  // model.safetensors, weights.safetensors or the shards that
  // model.safetensors.index.json lists. Fails, after a diagnostic, where a file
  // is missing or malformed or a path leaves the folder.
  static mlir::FailureOr<Weights> open(const std::string& folder,
                                       mlir::MLIRContext* context);
  // Whether `open` would find something.
  static bool exist(const std::string& folder);

  bool isSeeded() const { return seeded_; }
  // Whether the folder has a tensor of this name (never, if seeded). Prefixes
  // as in `source`.
  bool has(llvm::StringRef name) const { return find(name) != tensors_.end(); }

  // Old checkpoints and other tools leave out (or add) this prefix: a name is
  // looked up with it and without.
  void setBasePrefix(std::string prefix) { base_prefix_ = std::move(prefix); }
  // Tensors that the model may ignore, as glob patterns.
  void ignore(llvm::ArrayRef<llvm::StringRef> patterns);

  struct Source {
    std::string name;      // As stored: a key of the state dict.
    mlir::Attribute data;  // #nn.file or #nn.init; null after a complaint.
  };
  // Where the f32 parameter `name` of this shape comes from.
  Source source(llvm::StringRef name, llvm::ArrayRef<int64_t> shape, Init init,
                mlir::MLIRContext* context);

  // Reports all complaints in one diagnostic at `loc`.
  mlir::LogicalResult finish(mlir::Location loc);

 private:
  struct Tensor {
    std::string path;
    base::SafetensorsEntry entry;
  };
  using Tensors = std::map<std::string, Tensor, std::less<>>;

  mlir::LogicalResult addFile(const std::string& path,
                              mlir::MLIRContext* context);
  mlir::LogicalResult addShards(const std::string& folder,
                                const std::string& index,
                                mlir::MLIRContext* context);
  void rename(llvm::function_ref<std::string(llvm::StringRef)> shorten);
  // Gives tensors the names that today's code uses.
  void renameToday();
  Tensors::const_iterator find(llvm::StringRef name) const;

  bool seeded_ = false;
  uint64_t seed_ = 0;
  std::string base_prefix_;
  std::vector<std::string> ignored_;
  Tensors tensors_;  // By today's name.
  std::map<std::string, std::string>
      stored_names_;  // The names in the file, where they differ.
  std::set<std::string, std::less<>> used_;
  std::vector<std::string> missing_, misshaped_;
};

}  // namespace partita::huggingface

#endif  // PARTITA_FRONTENDS_HUGGINGFACE_WEIGHTS_H_
