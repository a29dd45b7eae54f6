// Stores an attention as a dictionary.
#include "dialects/exec/attention.h"

#include <iterator>
#include <utility>

#include "dialects/exec/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace partita::exec {
namespace {

constexpr char kScale[] = "scale";
constexpr char kCausalOffset[] = "causal_offset";

// The numbers and tensors and their names, for both writing and reading.
constexpr std::pair<const char*, int64_t Attention::*> kNumbers[] = {
    {"batch", &Attention::batch},
    {"heads", &Attention::heads},
    {"groups", &Attention::groups},
    {"queries", &Attention::queries},
    {"keys", &Attention::keys},
    {"size", &Attention::size},
    {"value_size", &Attention::value_size},
    {"lse", &Attention::lse}};
constexpr std::pair<const char*, Attention::Tensor Attention::*> kTensors[] = {
    {"q", &Attention::q},
    {"k", &Attention::k},
    {"v", &Attention::v},
    {"out", &Attention::out}};
constexpr int64_t Attention::Tensor::* kTensorNumbers[] = {
    &Attention::Tensor::operand, &Attention::Tensor::offset,
    &Attention::Tensor::batch, &Attention::Tensor::head,
    &Attention::Tensor::position};

}  // namespace

mlir::LogicalResult verifyAttention(mlir::Operation* op,
                                    mlir::Attribute value) {
  auto words = llvm::dyn_cast<mlir::DictionaryAttr>(value);
  bool is_valid =
      llvm::isa<LaunchOp>(op) && words && words.getAs<mlir::FloatAttr>(kScale);
  for (const auto& [name, number] : kNumbers)
    is_valid = is_valid && words.getAs<mlir::IntegerAttr>(name);
  const int64_t inputs = op->getNumOperands();
  for (const auto& [name, tensor] : kTensors) {
    auto numbers = is_valid ? words.getAs<mlir::DenseI64ArrayAttr>(name)
                            : mlir::DenseI64ArrayAttr();
    const bool is_result = tensor == &Attention::out;
    const int64_t first = is_result ? inputs : 0;
    const int64_t end = is_result ? inputs + op->getNumResults() : inputs;
    is_valid = numbers && numbers.size() == std::size(kTensorNumbers) &&
               numbers[0] >= first && numbers[0] < end;
  }
  if (is_valid) return mlir::success();
  return op->emitOpError()
         << "expected '" << kAttentionAttr
         << "' on a launch, with sizes, a scale, and five numbers for each of "
            "q, k, v and out, of which the first is an operand, a result for "
            "out; found "
         << value;
}

void setAttention(mlir::Operation* launch, const Attention& attention) {
  mlir::Builder builder(launch->getContext());
  llvm::SmallVector<mlir::NamedAttribute> words;
  for (const auto& [name, number] : kNumbers)
    words.push_back(builder.getNamedAttr(
        name, builder.getI64IntegerAttr(attention.*number)));
  for (const auto& [name, tensor] : kTensors) {
    llvm::SmallVector<int64_t> numbers;
    for (const auto number : kTensorNumbers)
      numbers.push_back(attention.*tensor.*number);
    words.push_back(
        builder.getNamedAttr(name, builder.getDenseI64ArrayAttr(numbers)));
  }
  words.push_back(
      builder.getNamedAttr(kScale, builder.getF64FloatAttr(attention.scale)));
  if (attention.causal)
    words.push_back(builder.getNamedAttr(
        kCausalOffset, builder.getI64IntegerAttr(attention.causal_offset)));
  launch->setAttr(kAttentionAttr, builder.getDictionaryAttr(words));
}

std::optional<Attention> attentionOf(mlir::Operation* launch) {
  auto words = launch->getAttrOfType<mlir::DictionaryAttr>(kAttentionAttr);
  if (!words) return std::nullopt;
  Attention attention;
  for (const auto& [name, number] : kNumbers)
    attention.*number = words.getAs<mlir::IntegerAttr>(name).getInt();
  for (const auto& [name, tensor] : kTensors) {
    auto numbers = words.getAs<mlir::DenseI64ArrayAttr>(name);
    for (auto [number, value] :
         llvm::zip_equal(kTensorNumbers, numbers.asArrayRef()))
      attention.*tensor.*number = value;
  }
  attention.scale = words.getAs<mlir::FloatAttr>(kScale).getValueAsDouble();
  if (auto offset = words.getAs<mlir::IntegerAttr>(kCausalOffset)) {
    attention.causal = true;
    attention.causal_offset = offset.getInt();
  }
  return attention;
}

}  // namespace partita::exec
