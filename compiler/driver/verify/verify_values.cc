// Reads weights from their files; makes up other values from a hash of the
// name.
#include "compiler/driver/verify/verify_values.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "dialects/nn/dialect.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/xxhash.h"

namespace partita::driver {
namespace {

using mlir::RankedTensorType;
using mlir::func::FuncOp;
using nn::Tensor;

Tensor fromFormula(RankedTensorType type, llvm::StringRef name, double scale) {
  Tensor tensor(type);
  uint64_t state = llvm::xxh3_64bits(name);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t random = state >> 33;
    if (tensor.isFloat())
      tensor.setFloat(
          i, (static_cast<double>(random % 4096) / 4096 - 0.5) * scale);
    else
      tensor.setInt(i, random % (type.getElementTypeBitWidth() == 1 ? 2 : 3));
  }
  return tensor;
}

// The width of the interval of made-up weights, for the deviation that the
// model's initializer has. Wide models overflow with other deviations.
double scaleOf(mlir::Attribute source) {
  auto init = llvm::dyn_cast_or_null<nn::InitAttr>(source);
  if (!init || init.getScale().getValueAsDouble() <= 0) return 1;
  const double scale = init.getScale().getValueAsDouble();
  if (init.getKind() == "normal") return scale * std::sqrt(12.0);
  return init.getKind() == "uniform" ? 2 * scale : 1;
}

// True for the names of variances, which must be positive.
bool isVariance(llvm::StringRef name) {
  return name.contains("var") || name.contains("scale");
}

// Makes a mask of tokens, of 0 and 1. For other numbers, models may add terms
// to attention scores that are so large that scores are rounded to thousandths
// (bert_mlm adds 10000 for 2). No row has only zeros.
void makeMask(Tensor& tensor) {
  const int64_t row =
      tensor.type().getRank() == 0 ? 1 : tensor.type().getShape().back();
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.setInt(i, i % row == 0 || tensor.getInt(i) > 0 ? 1 : 0);
}

llvm::StringRef textOf(FuncOp main, unsigned i, llvm::StringRef name) {
  auto attr = main.getArgAttrOfType<mlir::StringAttr>(i, name);
  return attr ? attr.getValue() : llvm::StringRef();
}

// A value that a trainer passes to a step.
Tensor ofRole(llvm::StringRef role, RankedTensorType type) {
  Tensor tensor(type);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (tensor.isFloat())
      tensor.setFloat(i, role == "learning_rate" ? 0.01 : 1);
    else
      tensor.setInt(i, 3);
  }
  return tensor;
}

std::optional<Tensor> fromFile(nn::FileAttr file, RankedTensorType type,
                               const std::string& folder) {
  std::filesystem::path path(file.getPath().str());
  if (path.is_relative()) path = folder / path;
  auto buffer = llvm::MemoryBuffer::getFileSlice(path.string(), file.getBytes(),
                                                 file.getOffset());
  if (!buffer) return std::nullopt;
  auto stored = Tensor::fromBytes(
      RankedTensorType::get(type.getShape(), file.getStored()),
      llvm::ArrayRef<char>((*buffer)->getBufferStart(),
                           (*buffer)->getBufferSize()));
  if (mlir::failed(stored) ||
      stored->isFloat() != llvm::isa<mlir::FloatType>(type.getElementType()))
    return std::nullopt;
  if (stored->type() == type) return *std::move(stored);
  Tensor converted(type);
  for (int64_t i = 0; i < converted.size(); ++i) {
    if (converted.isFloat())
      converted.setFloat(i, stored->getFloat(i));
    else
      converted.setInt(i, stored->getInt(i));
  }
  return converted;
}

// A tensor whose parts along the first dimension lie in different places.
std::optional<Tensor> fromParts(mlir::ArrayAttr files, RankedTensorType type,
                                const std::string& folder) {
  Tensor whole(type);
  const int64_t count = static_cast<int64_t>(files.size());
  if (count == 0 || whole.size() % count != 0) return std::nullopt;
  const int64_t size = whole.size() / count;
  const auto part_type = RankedTensorType::get({size}, type.getElementType());
  int64_t next = 0;
  for (auto file : files.getAsRange<nn::FileAttr>()) {
    auto part = fromFile(file, part_type, folder);
    if (!part) return std::nullopt;
    for (int64_t i = 0; i < size; ++i, ++next) {
      if (whole.isFloat())
        whole.setFloat(next, part->getFloat(i));
      else
        whole.setInt(next, part->getInt(i));
    }
  }
  return whole;
}

}  // namespace

Tensor ArgumentValues::get(FuncOp main, unsigned i, RankedTensorType type) {
  auto attr = main.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr);
  const std::string name = attr ? attr.str() : std::to_string(i);
  mlir::Attribute source = main.getArgAttr(i, nn::kSourceAttr);
  std::optional<Tensor> stored;
  if (auto file = llvm::dyn_cast_or_null<nn::FileAttr>(source))
    stored = fromFile(file, type, source_folder_);
  if (auto parts = llvm::dyn_cast_or_null<mlir::ArrayAttr>(source))
    stored = fromParts(parts, type, source_folder_);
  if (stored) {
    read_[name] = true;
    return *std::move(stored);
  }
  const llvm::StringRef role = textOf(main, i, nn::kRoleAttr);
  if (!role.empty()) return ofRole(role, type);
  const bool state = textOf(main, i, nn::kKindAttr) == "state";
  if (source && !state) read_[name] = false;
  Tensor tensor = fromFormula(type, name, state ? 1 : scaleOf(source));
  if (!tensor.isFloat() && !state && llvm::StringRef(name).contains("mask"))
    makeMask(tensor);
  if (tensor.isFloat() && (state || isVariance(name)))
    for (int64_t j = 0; j < tensor.size(); ++j)
      tensor.setFloat(j, std::abs(tensor.getFloat(j)) + 0.5);
  return tensor;
}

int64_t ArgumentValues::count(bool was_read) const {
  return std::count_if(read_.begin(), read_.end(), [&](const auto& entry) {
    return entry.second == was_read;
  });
}

namespace {
double valueOf(const Tensor& tensor, int64_t i) {
  return tensor.isFloat() ? tensor.getFloat(i) : tensor.getInt(i);
}
}  // namespace

double largestOf(const Tensor& tensor) {
  double largest = 0;
  for (int64_t i = 0; i < tensor.size(); ++i)
    if (const double value = valueOf(tensor, i); std::isfinite(value))
      largest = std::max(largest, std::abs(value));
  return largest;
}

double distanceOf(const Tensor& found, const Tensor& expected, double least) {
  double distance = 0;
  for (int64_t i = 0; i < found.size(); ++i) {
    const double f = valueOf(found, i), e = valueOf(expected, i);
    if (f == e || (std::isnan(f) && std::isnan(e))) continue;
    if (std::isnan(f) || std::isnan(e)) return std::nan("");
    distance = std::max(distance, std::abs(f - e));
  }
  return distance / std::max({largestOf(expected), least, 1e-30});
}

}  // namespace partita::driver
