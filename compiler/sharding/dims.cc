// Reads and writes the text of named dimensions.
#include "compiler/sharding/dims.h"

#include "llvm/ADT/StringExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

namespace partita::sharding {
namespace {

bool isName(llvm::StringRef text) {
  const llvm::StringRef name = text.rtrim('\'');
  return !name.empty() && llvm::isAlpha(name.front()) &&
         llvm::all_of(name,
                      [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

}  // namespace

bool Dim::isNamed(llvm::StringRef name) const {
  return role == name || (!segments.empty() && segments.front().name == name);
}

std::string print(const Dim& dim) {
  std::string text = dim.role.empty() ? "" : dim.role + "=";
  if (dim.segments.empty()) return text + "1";
  for (const DimSegment& segment : dim.segments) {
    if (&segment != dim.segments.begin()) text += "*";
    text += segment.name.empty() ? std::to_string(segment.size) : segment.name;
  }
  return text;
}

std::optional<Dim> parseDim(llvm::StringRef text, int64_t size) {
  Dim dim;
  if (text.contains('=')) {
    auto [role, rest] = text.split('=');
    if (!isName(role)) return std::nullopt;
    dim.role = role.str();
    text = rest;
  }
  int64_t known = 1, unknown = 0;
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, '*');
  for (llvm::StringRef part : parts) {
    DimSegment segment;
    if (isName(part)) {
      segment.name = part.str();
      ++unknown;
    } else if (part.getAsInteger(10, segment.size) || segment.size < 1) {
      return std::nullopt;
    } else {
      known *= segment.size;
      if (segment.size == 1) continue;
    }
    dim.segments.push_back(segment);
  }
  if (size % known != 0 || (unknown == 0 && size != known)) return std::nullopt;
  if (unknown == 1)
    for (DimSegment& segment : dim.segments)
      if (!segment.name.empty()) segment.size = size / known;
  return dim;
}

std::optional<llvm::SmallVector<Dim>> dimsOf(mlir::Value value) {
  mlir::ArrayAttr names;
  if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(value)) {
    auto function =
        mlir::dyn_cast<mlir::func::FuncOp>(argument.getOwner()->getParentOp());
    if (function)
      names = function.getArgAttrOfType<mlir::ArrayAttr>(
          argument.getArgNumber(), kDimsAttr);
  } else {
    auto result = mlir::cast<mlir::OpResult>(value);
    auto all = result.getOwner()->getAttrOfType<mlir::ArrayAttr>(kDimsAttr);
    if (all && result.getResultNumber() < all.size())
      names = mlir::dyn_cast<mlir::ArrayAttr>(all[result.getResultNumber()]);
  }
  auto type = mlir::dyn_cast<mlir::RankedTensorType>(value.getType());
  if (!names || !type || static_cast<int64_t>(names.size()) != type.getRank())
    return std::nullopt;
  llvm::SmallVector<Dim> dims;
  for (auto [index, name] : llvm::enumerate(names)) {
    auto text = mlir::dyn_cast<mlir::StringAttr>(name);
    std::optional<Dim> dim =
        text ? parseDim(text.getValue(), type.getDimSize(index)) : std::nullopt;
    if (!dim) return std::nullopt;
    dims.push_back(std::move(*dim));
  }
  return dims;
}

}  // namespace partita::sharding
