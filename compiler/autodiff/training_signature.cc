// Adds arguments and results with the attributes that later phases read.
#include "compiler/autodiff/training_signature.h"

#include "dialects/nn/dialect.h"

namespace partita::autodiff {
namespace {

using mlir::RankedTensorType;
using mlir::Value;
using mlir::func::FuncOp;

mlir::Attribute zeros(mlir::MLIRContext* context) {
  return nn::InitAttr::get(context, "zeros",
                           mlir::Builder(context).getF64FloatAttr(0), 0);
}

Value addState(nn::Signature& main, const Trained& trained,
               const std::string& state, mlir::Type type,
               mlir::NamedAttrList& attributes) {
  mlir::Builder builder(type.getContext());
  attributes.set(nn::kKindAttr, builder.getStringAttr("state"));
  attributes.set(nn::kNameAttr,
                 builder.getStringAttr(trained.name + "/" + state));
  return main.addArgument(type, attributes.getDictionary(type.getContext()),
                          trained.parameter.getLoc());
}

}  // namespace

llvm::ArrayRef<int64_t> Trained::modelShape() const {
  auto viewed = llvm::dyn_cast_if_present<mlir::TypeAttr>(
      attributes.get(nn::kViewOfAttr));
  return llvm::cast<RankedTensorType>(viewed ? viewed.getValue()
                                             : parameter.getType())
      .getShape();
}

Value addInput(FuncOp main, llvm::StringRef name, llvm::StringRef role,
               RankedTensorType type) {
  unsigned index = 0;
  while (index < main.getNumArguments()) {
    auto kind = main.getArgAttrOfType<mlir::StringAttr>(index, nn::kKindAttr);
    if (kind && kind.getValue() != "input") break;
    ++index;
  }
  mlir::Builder builder(main.getContext());
  const auto named = [&](llvm::StringRef key, llvm::StringRef value) {
    return builder.getNamedAttr(key, builder.getStringAttr(value));
  };
  (void)main.insertArgument(
      index, type,
      builder.getDictionaryAttr({named(nn::kKindAttr, "input"),
                                 named(nn::kNameAttr, name),
                                 named(nn::kRoleAttr, role)}),
      main.getLoc());
  return main.getArgument(index);
}

Value addState(nn::Signature& main, const Trained& trained,
               const std::string& state, mlir::Type type) {
  mlir::NamedAttrList attributes(trained.attributes);
  if (state != kMaster)
    attributes.set(nn::kSourceAttr, zeros(type.getContext()));
  return addState(main, trained, state, type, attributes);
}

Value addStepState(nn::Signature& main, llvm::StringRef name,
                   mlir::Type element, mlir::Location location) {
  mlir::Builder builder(element.getContext());
  return main.addArgument(
      RankedTensorType::get({}, element),
      builder.getDictionaryAttr(
          {builder.getNamedAttr(nn::kKindAttr, builder.getStringAttr("state")),
           builder.getNamedAttr(nn::kNameAttr, builder.getStringAttr(name)),
           builder.getNamedAttr(nn::kSourceAttr, zeros(element.getContext()))}),
      location);
}

Value addReducedState(nn::Signature& main, const Trained& trained,
                      const State& state, RankedTensorType type) {
  mlir::NamedAttrList attributes;
  attributes.set(nn::kSourceAttr, zeros(type.getContext()));
  if (trained.attributes.get(nn::kViewOfAttr) && !state.is_scalar) {
    llvm::SmallVector<int64_t> shape(trained.modelShape());
    shape.erase(shape.begin() + state.model_without);
    attributes.set(nn::kViewOfAttr, mlir::TypeAttr::get(type.clone(shape)));
  }
  return addState(main, trained, state.name, type, attributes);
}

void addResult(nn::Signature& main, Value value, llvm::StringRef attribute,
               const std::string& text, unsigned index) {
  mlir::Builder builder(value.getContext());
  main.insertResult(index, value,
                    builder.getDictionaryAttr(builder.getNamedAttr(
                        attribute, builder.getStringAttr(text))));
}

void addUpdate(nn::Signature& main, Value value, const std::string& name) {
  addResult(main, value, nn::kUpdatesAttr, name, main.numResults());
}

unsigned firstUpdate(const nn::Signature& main) {
  unsigned index = 0;
  while (index < main.numResults() && !main.resultAttr(index, nn::kUpdatesAttr))
    ++index;
  return index;
}

}  // namespace partita::autodiff
