// Reads the offsets of exec operations as places.
#include "compiler/memory/places.h"

#include "compiler/memory/lifetimes.h"
#include "dialects/exec/dialect.h"
#include "llvm/ADT/DenseMap.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::memory {
namespace {

// Argument and result attributes of the nn dialect.
constexpr char kNameAttr[] = "nn.name";
constexpr char kUpdatesAttr[] = "nn.updates";

}  // namespace

std::optional<Place> placeOf(mlir::Value value, mlir::func::FuncOp function) {
  const mlir::Value root = rootOf(value);
  Place place;
  place.bytes =
      exec::bufferBytes(llvm::cast<mlir::RankedTensorType>(root.getType()));
  if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(root)) {
    place.space = Place::Space::kArgument;
    place.value = argument.getArgNumber();
    return place;
  }
  auto result = llvm::cast<mlir::OpResult>(root);
  if (llvm::isa<mlir::arith::ConstantOp>(result.getOwner())) {
    place.space = Place::Space::kConstant;
    return place;
  }
  auto offsets = result.getOwner()->getAttrOfType<mlir::DenseI64ArrayAttr>(
      exec::kOffsetsAttr);
  if (!offsets) return std::nullopt;
  const int64_t offset = offsets[result.getResultNumber()];
  if (offset < 0) {
    place.space = Place::Space::kArgument;
    place.value = function.getNumArguments() + (-1 - offset);
  } else {
    place.value = offset;
  }
  return place;
}

bool updatesStored(mlir::func::FuncOp function) {
  return llvm::any_of(llvm::seq(function.getNumResults()), [&](unsigned i) {
    return function.getResultAttr(i, kUpdatesAttr) != nullptr;
  });
}

std::vector<std::optional<unsigned>> updatedArguments(
    mlir::func::FuncOp function) {
  llvm::DenseMap<mlir::Attribute, unsigned> by_name;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (mlir::Attribute name = function.getArgAttr(i, kNameAttr))
      by_name.try_emplace(name, i);
  std::vector<std::optional<unsigned>> updated(function.getNumResults());
  for (unsigned i = 0; i < updated.size(); ++i)
    if (mlir::Attribute name = function.getResultAttr(i, kUpdatesAttr))
      if (auto found = by_name.find(name); found != by_name.end())
        updated[i] = found->second;
  return updated;
}

}  // namespace partita::memory
