// Stores parts as a list of dictionaries.
#include "dialects/exec/kernel_parts.h"

#include <utility>

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace partita::exec {
namespace {

constexpr char kPartsAttr[] = "kernel.parts";
constexpr char kCode[] = "code";

// The numbers of a part and their names, for both writing and reading.
constexpr std::pair<const char*, int64_t KernelPart::*> kNumbers[] = {
    {"blocks", &KernelPart::blocks},
    {"scratch", &KernelPart::scratch},
    {"shared", &KernelPart::shared},
    {"products_of_keys", &KernelPart::products_of_keys},
    {"products_of_values", &KernelPart::products_of_values},
    {"untouched", &KernelPart::untouched}};

}  // namespace

void setKernelParts(mlir::Operation* kernel, llvm::ArrayRef<KernelPart> parts) {
  if (parts.empty()) {
    kernel->removeAttr(kPartsAttr);
    return;
  }
  mlir::Builder builder(kernel->getContext());
  llvm::SmallVector<mlir::Attribute> list;
  for (const KernelPart& part : parts) {
    llvm::SmallVector<mlir::NamedAttribute> words = {
        builder.getNamedAttr(kCode, builder.getStringAttr(part.code))};
    for (const auto& [name, number] : kNumbers)
      words.push_back(
          builder.getNamedAttr(name, builder.getI64IntegerAttr(part.*number)));
    list.push_back(builder.getDictionaryAttr(words));
  }
  kernel->setAttr(kPartsAttr, builder.getArrayAttr(list));
}

bool hasKernelParts(mlir::Operation* kernel) {
  return kernel->hasAttr(kPartsAttr);
}

llvm::SmallVector<KernelPart> kernelParts(mlir::Operation* kernel) {
  llvm::SmallVector<KernelPart> parts;
  auto list = kernel->getAttrOfType<mlir::ArrayAttr>(kPartsAttr);
  if (!list) return parts;
  for (auto words : list.getAsRange<mlir::DictionaryAttr>()) {
    KernelPart& part = parts.emplace_back();
    part.code = words.getAs<mlir::StringAttr>(kCode).getValue().str();
    for (const auto& [name, number] : kNumbers)
      part.*number = words.getAs<mlir::IntegerAttr>(name).getInt();
  }
  return parts;
}

}  // namespace partita::exec
