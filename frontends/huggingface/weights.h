// Sources of a model's weights: safetensors files or a seed.
#ifndef PARTITA_FRONTENDS_HUGGINGFACE_WEIGHTS_H_
#define PARTITA_FRONTENDS_HUGGINGFACE_WEIGHTS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Location.h"
#include "runtime/base/safetensors.h"

namespace partita::huggingface {

// The distribution of a seeded weight: kind and scale of #nn.init.
struct Init {
  const char* kind;
  double scale;

  static Init zeros() { return {"zeros", 0.0}; }
  static Init ones() { return {"ones", 1.0}; }
  static Init uniform(double bound) { return {"uniform", bound}; }
  static Init normal(double deviation = 0.02) { return {"normal", deviation}; }
};

// The weights of one folder. Complaints (missing, wrong shape or type,
// unexpected) are collected; `finish` reports them together.
class Weights {
 public:
  // Weights from a seed. Element i of a weight depends on the seed, the
  // weight's name and i.
  static Weights seeded(uint64_t seed);
  // Opens model.safetensors, weights.safetensors or the shards listed in
  // model.safetensors.index.json. Fails, after a diagnostic, if a file is
  // missing or malformed or a path leaves the folder.
  static mlir::FailureOr<Weights> open(const std::string& folder,
                                       mlir::MLIRContext* context);
  // Opens one safetensors file, e.g. of adapters.
  static mlir::FailureOr<Weights> openFile(const std::string& path,
                                           mlir::MLIRContext* context);
  // True if the folder has a file that `open` would read.
  static bool exist(const std::string& folder);

  bool isSeeded() const { return seeded_; }
  // All tensors, without prefixes that every name of the file has.
  std::vector<std::string> names() const;
  // True if the folder has a tensor of this name; always false for seeded
  // weights. Prefixes are handled as in `source`.
  bool has(llvm::StringRef name) const { return find(name) != tensors_.end(); }

  // Some checkpoints omit or add this prefix. Names are looked up with and
  // without it.
  void setBasePrefix(std::string prefix) { base_prefix_ = std::move(prefix); }
  // Glob patterns of tensors that the model may ignore.
  void ignore(llvm::ArrayRef<llvm::StringRef> patterns);

  struct Source {
    std::string name;      // the stored name: a key of the state dict
    mlir::Attribute data;  // #nn.file or #nn.init; null after a complaint
  };
  // The source of the f32 parameter `name` with this shape.
  Source source(llvm::StringRef name, llvm::ArrayRef<int64_t> shape, Init init,
                mlir::MLIRContext* context);

  // The source of a stored tensor of any type. Floats may have another float
  // type in the file; integers and booleans have the tensor's own.
  Source source(llvm::StringRef name, mlir::RankedTensorType type,
                bool is_unsigned, mlir::MLIRContext* context);

  // The source of a parameter that files hold in parts, one per index of
  // dimension 0; see base::PartName. `data` is a list of #nn.file, or #nn.init.
  Source parts(llvm::StringRef name, llvm::ArrayRef<int64_t> shape, Init init,
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
  // Renames tensors from old conventions to current names.
  void renameToday();
  Tensors::const_iterator find(llvm::StringRef name) const;
  // The source of a tensor that the file holds as `typeOf` accepts it: a null
  // type is a complaint, which lists the `accepted` ones.
  Source stored(llvm::StringRef name, llvm::ArrayRef<int64_t> shape,
                llvm::function_ref<mlir::Type(base::DType)> typeOf,
                const std::string& accepted, mlir::MLIRContext* context);

  bool seeded_ = false;
  uint64_t seed_ = 0;
  std::string base_prefix_;
  std::vector<std::string> ignored_;
  Tensors tensors_;  // by current name
  std::map<std::string, std::string>
      stored_names_;  // The names in the file, where they differ.
  std::set<std::string, std::less<>> used_;
  std::vector<std::string> missing_, misshaped_;
};

}  // namespace partita::huggingface

#endif  // PARTITA_FRONTENDS_HUGGINGFACE_WEIGHTS_H_
