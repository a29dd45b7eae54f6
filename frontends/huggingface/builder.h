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

  // A weight: an f32 argument of the function.
  virtual Value weight(const std::string& name, ArrayRef<int64_t> shape,
                       Init init, StringRef kind = "parameter") = 0;

  ArrayRef<int64_t> shapeOf(Value value) const;
  int64_t rankOf(Value value) const { return shapeOf(value).size(); }

  // Constants and elementwise operations; binary ones want equal shapes.
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

  // Activations, by the names that configs use.
  Value activation(Value x, StringRef name);
  static ArrayRef<StringRef> activationNames();
  Value gelu(Value x) { return activation(x, "gelu"); }
  Value sigmoid(Value x);

  // When training: 0 in place of x with this probability, and what stays
  // multiplied so that the mean does too. Numbers differ from dropout to
  // dropout and from layer to layer.
  Value dropout(Value x, double probability);

  // Movement.
  Value reshape(Value x, ArrayRef<int64_t> shape);
  Value transpose(Value x, ArrayRef<int64_t> perm);
  Value broadcast(Value x, ArrayRef<int64_t> shape, ArrayRef<int64_t> dims);
  // `size` elements of dimension `dim` from `start` on.
  Value slice(Value x, int64_t dim, int64_t start, int64_t size);
  Value concat(ArrayRef<Value> values, int64_t axis);
  // Rows of a table [rows, ...] at integer indices of any shape.
  Value rows(Value table, Value indices);

  // Contraction and reduction.
  // x [..., in] with w [out, in], or [in, out] if `input_first`, plus bias
  // [out] if not null.
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
  // As GPT-2 stores it: [in, out].
  Value conv1d(Value x, const std::string& name, int64_t out,
               Init init = Init::normal());
  Value layerNorm(Value x, const std::string& name, double epsilon);
  Value rmsNorm(Value x, const std::string& name, double epsilon);
  // With stored statistics "<name>.running_mean" and "<name>.running_var", over
  // dimension `feature`; when training, with those of the batch.
  Value batchNorm(Value x, const std::string& name, double epsilon,
                  int64_t feature);

  // Attention. [B, L, N * h] to [B, N, L, h] and back.
  Value splitHeads(Value x, int64_t heads);
  Value mergeHeads(Value x);
  // Where training drops shares of what is attended to, scores are stored.
  Value attention(Value q, Value k, Value v, Value bias, double scale,
                  bool causal, double dropout = 0.0);
  // [B, S] of 0 and 1 to a bias [B, 1, 1, S] of 0 where the mask is 1 and -max
  // elsewhere.
  Value maskBias(Value mask);

  mlir::OpBuilder& ops() { return builder_; }
  mlir::Location loc() const { return loc_; }

 protected:
  Builder(mlir::MLIRContext* context, mlir::Location loc, bool training)
      : builder_(context), loc_(loc), training_(training) {}
  // Another seed, of this one alone.
  Value nextSeed(Value seed, int64_t factor, int64_t summand);
  Value attentionByScores(Value q, Value k, Value v, Value bias, double scale,
                          bool causal, double dropout);
  mlir::RankedTensorType f32(ArrayRef<int64_t> shape);
  mlir::RankedTensorType i64(ArrayRef<int64_t> shape);

  mlir::OpBuilder builder_;
  mlir::Location loc_;
  bool training_;
  Value seed_;  // of the next dropout; null: nothing is dropped
};

class ModelBuilder : public Builder {
 public:
  // `config` gives the location of errors; `dims` are the names of the sizes
  // that the model leaves open.
  ModelBuilder(mlir::MLIRContext* context, Config& config, Weights& weights,
               const HfOptions& options, ArrayRef<StringRef> dims,
               ArrayRef<StringRef> optional_inputs);

  Weights& weights() { return weights_; }
  // The size of a dimension that the user may choose.
  int64_t dim(const char* name, int64_t fallback) const;
  bool takes(StringRef optional_input, bool fallback) const;
  // Notes that a size is above a limit, and what sets the limit.
  void expectAtMost(const char* dim, int64_t size, int64_t limit,
                    const char* reason);

  // Inputs come before weights.
  Value input(const std::string& name, ArrayRef<int64_t> shape,
              bool integer = false);
  // With it, behind the other inputs, dropouts drop, if this trains and any of
  // the probabilities is not 0.
  void seedInput(ArrayRef<double> dropouts);
  Value weight(const std::string& name, ArrayRef<int64_t> shape, Init init,
               StringRef kind = "parameter") override;

  using Body = llvm::function_ref<ValueList(Builder&, ValueRange)>;
  // `variant` tells apart bodies that the kind and the inputs' types do not.
  ValueList layer(StringRef kind, const std::string& prefix,
                  ArrayRef<Value> inputs, Body body, StringRef variant = "");

  // Complaints about sizes so far; call it before building.
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
};

}  // namespace partita::huggingface

#endif  // PARTITA_FRONTENDS_HUGGINGFACE_BUILDER_H_
