// A small language for writing models down.
//
// A `Builder` writes into one function. `ModelBuilder` is the builder of @main:
// it declares inputs, then weights as they are named, and calls layers.
// `layer(kind, prefix, inputs, body)` runs `body` once per kind and input
// types, into a private function; every call gives the function its own
// weights, whose names are `prefix` + the names used inside.
//
//   Value x = main.input("x", {2, 8});
//   for (int i = 0; i < 3; ++i)
//     x = main.layer("mlp", "h." + std::to_string(i) + ".", {x}, [](Builder &b,
//     ValueRange in) {
//       return ValueList{b.add(in[0], b.linear(b.gelu(b.linear(in[0], "up",
//       32)), "down", 8))};
//     })[0];
//   return main.finish({{x, "y"}});
//
// Activations are f32, batch first. Sizes are checked by the operations'
// verifiers.
#ifndef PARTITA_FRONTENDS_HUGGINGFACE_BUILDER_H_
#define PARTITA_FRONTENDS_HUGGINGFACE_BUILDER_H_

#include <optional>
#include <string>
#include <vector>

#include "dialects/nn/dialect.h"
#include "frontends/huggingface/config.h"
#include "frontends/huggingface/huggingface.h"
#include "frontends/huggingface/weights.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace partita::huggingface {

using llvm::ArrayRef;
using llvm::StringRef;
using mlir::Value;
using mlir::ValueRange;
using Shape = llvm::SmallVector<int64_t>;
using ValueList = llvm::SmallVector<Value>;

class Builder {
 public:
  virtual ~Builder() = default;

  // A weight: an f32 argument of the function. If the name contains `*`, files
  // hold a tensor per index of dimension 0, whose name has the index there.
  virtual Value weight(const std::string& name, ArrayRef<int64_t> shape,
                       Init init, StringRef kind = "parameter") = 0;

  ArrayRef<int64_t> shapeOf(Value value) const;
  int64_t rankOf(Value value) const { return shapeOf(value).size(); }

  // Constants and elementwise operations. Operands of binary operations must
  // have equal shapes.
  Value splat(ArrayRef<int64_t> shape, double value);
  Value floats(ArrayRef<int64_t> shape, ArrayRef<float> values);
  Value integers(ArrayRef<int64_t> shape, ArrayRef<int64_t> values);
  Value integerSplat(ArrayRef<int64_t> shape, int64_t value);
  Value iota(ArrayRef<int64_t> shape, int64_t dim);
  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value div(Value a, Value b);
  Value addIntegers(Value a, Value b);
  Value subIntegers(Value a, Value b);
  Value mulIntegers(Value a, Value b);
  Value scale(Value x, double factor);
  Value atLeast(Value x, double bound);
  Value toFloat(Value integers);

  // Activation functions, by their names in configs.
  Value activation(Value x, StringRef name);
  static ArrayRef<StringRef> activationNames();
  Value gelu(Value x) { return activation(x, "gelu"); }
  Value sigmoid(Value x);

  // Dropout in training: sets elements of x to 0 with this probability and
  // scales the others to keep the mean. Each dropout and each layer has
  // different random numbers.
  Value dropout(Value x, double probability);

  // Data movement.
  Value reshape(Value x, ArrayRef<int64_t> shape);
  Value transpose(Value x, ArrayRef<int64_t> perm);
  Value broadcast(Value x, ArrayRef<int64_t> shape, ArrayRef<int64_t> dims);
  // Takes `size` elements of dimension `dim`, beginning at `start`.
  Value slice(Value x, int64_t dim, int64_t start, int64_t size);
  Value concat(ArrayRef<Value> values, int64_t axis);
  // Looks up rows of a table [rows, ...] by integer indices of any shape.
  Value rows(Value table, Value indices);

  // Contraction and reduction.
  // `project` multiplies x [..., in] by w [out, in], or by w [in, out] with
  // `input_first`, and adds bias [out] unless it is null.
  Value project(Value x, Value w, Value bias, bool input_first = false);
  Value sum(Value x, ArrayRef<int64_t> dims);
  // x / sqrt(sum(x * x)) along the last dimension.
  Value unitLength(Value x);
  Value conv(Value x, Value w, int64_t stride, int64_t padding, int64_t groups);
  // Adds a bias per channel of [B, C, H, W].
  Value addChannelBias(Value x, Value bias);

  // Layers with weights "<name>.weight" and "<name>.bias".
  Value linear(Value x, const std::string& name, int64_t out, bool bias = true,
               Init init = Init::normal());
  // GPT-2's linear layer with a weight [in, out].
  Value conv1d(Value x, const std::string& name, int64_t out,
               Init init = Init::normal());
  Value layerNorm(Value x, const std::string& name, double epsilon);
  Value rmsNorm(Value x, const std::string& name, double epsilon);
  // Batch norm over dimension `feature`, with the stored statistics
  // "<name>.running_mean" and "<name>.running_var" or, in training, the
  // batch's.
  Value batchNorm(Value x, const std::string& name, double epsilon,
                  int64_t feature);

  // Attention. These two convert [B, L, N * h] to [B, N, L, h] and back.
  Value splitHeads(Value x, int64_t heads);
  Value mergeHeads(Value x);
  // With a window, which requires `causal`, queries see that many keys at most.
  // Stores the scores if training applies dropout to the attention weights.
  Value attention(Value q, Value k, Value v, Value bias, double scale,
                  bool causal, double dropout = 0.0,
                  std::optional<int64_t> window = std::nullopt);
  // Converts a mask [B, S] of 0 and 1 to a bias [B, 1, 1, S]: 0 where the mask
  // is 1, -max elsewhere.
  Value maskBias(Value mask);

  mlir::OpBuilder& ops() { return builder_; }
  mlir::Location loc() const { return loc_; }

 protected:
  Builder(mlir::MLIRContext* context, mlir::Location loc, bool training)
      : builder_(context), loc_(loc), training_(training) {}
  // Derives another seed from `seed` alone.
  Value nextSeed(Value seed, int64_t factor, int64_t summand);
  Value attentionByScores(Value q, Value k, Value v, Value bias, double scale,
                          bool causal, double dropout,
                          std::optional<int64_t> window);
  mlir::RankedTensorType f32(ArrayRef<int64_t> shape);
  mlir::RankedTensorType i64(ArrayRef<int64_t> shape);

  mlir::OpBuilder builder_;
  mlir::Location loc_;
  bool training_;
  Value seed_;  // seed of the next dropout; null: no dropout
};

class ModelBuilder : public Builder {
 public:
  // `config` gives the location of errors. `dims` names the sizes that the
  // model leaves open.
  ModelBuilder(mlir::MLIRContext* context, Config& config, Weights& weights,
               const HfOptions& options, ArrayRef<StringRef> dims,
               ArrayRef<StringRef> optional_inputs);

  Weights& weights() { return weights_; }
  // The size of a dimension that the user may choose.
  int64_t dim(const char* name, int64_t fallback) const;
  bool takes(StringRef optional_input, bool fallback) const;
  // Adds a complaint if a size exceeds a limit; the complaint names the reason
  // for the limit.
  void expectAtMost(const char* dim, int64_t size, int64_t limit,
                    const char* reason);

  // Adds an input of @main. Inputs must be declared before weights.
  Value input(const std::string& name, ArrayRef<int64_t> shape,
              bool integer = false);
  // Adds the input `seed` after the other inputs if this is training and a
  // probability in `dropouts` is not 0. Dropouts are active only with it.
  void seedInput(ArrayRef<double> dropouts);
  Value weight(const std::string& name, ArrayRef<int64_t> shape, Init init,
               StringRef kind = "parameter") override;

  // A tensor that outlives runs, zero at first, and its value after this run.
  // A null `element` is f32.
  Value state(const std::string& name, ArrayRef<int64_t> shape,
              mlir::Type element = {});
  void update(const std::string& name, Value value);

  using Body = llvm::function_ref<ValueList(Builder&, ValueRange)>;
  // `variant` distinguishes bodies with the same kind and input types.
  ValueList layer(StringRef kind, const std::string& prefix,
                  ArrayRef<Value> inputs, Body body, StringRef variant = "");

  // Reports complaints about sizes so far. Call it before building.
  mlir::LogicalResult check() { return config_.finish(); }
  // The finished module; null after an error.
  mlir::OwningOpRef<mlir::ModuleOp> finish(
      ArrayRef<std::pair<Value, const char*>> results);

 private:
  struct WeightSpec {
    std::string name;
    Shape shape;
    Init init;
    std::string kind;
  };
  struct Layer {
    mlir::func::FuncOp func;
    std::vector<WeightSpec> weights;
  };
  class LayerBuilder;

  Layer define(StringRef kind, ArrayRef<Value> inputs, Body body);
  Value argument(mlir::RankedTensorType type, StringRef kind, StringRef name,
                 mlir::Attribute source);

  Config& config_;
  Weights& weights_;
  const HfOptions& options_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  mlir::func::FuncOp main_;
  std::vector<mlir::DictionaryAttr> argument_attributes_;
  std::map<std::string, Layer> layers_;
  std::map<std::string, int> kinds_;
  std::vector<std::pair<std::string, Value>> updates_;
};

}  // namespace partita::huggingface

#endif  // PARTITA_FRONTENDS_HUGGINGFACE_BUILDER_H_
