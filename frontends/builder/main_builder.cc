#include "frontends/builder/main_builder.h"

#include "llvm/ADT/STLExtras.h"

namespace partita::builder {
namespace {

mlir::Location locationOf(mlir::func::FuncOp main, llvm::StringRef name) {
  return mlir::NameLoc::get(mlir::StringAttr::get(main.getContext(), name));
}

}  // namespace

Val MainBuilder::addInput(llvm::StringRef name, mlir::RankedTensorType type,
                          bool is_unsigned) {
  Val value = {main_.front().addArgument(type, locationOf(main_, name)),
               is_unsigned};
  inputs_.emplace_back(name.str(), value);
  return value;
}

Val MainBuilder::addWeight(llvm::StringRef name, mlir::RankedTensorType type,
                           bool is_unsigned, llvm::StringRef kind,
                           nn::FileAttr source) {
  mlir::BlockArgument argument =
      main_.front().addArgument(type, locationOf(main_, name));
  weights_.push_back({argument, name.str(), is_unsigned, kind.str(), source});
  return {argument, is_unsigned};
}

Val MainBuilder::addState(llvm::StringRef name, mlir::RankedTensorType type,
                          bool is_unsigned) {
  mlir::Builder builder(main_.getContext());
  mlir::BlockArgument argument =
      main_.front().addArgument(type, locationOf(main_, name));
  weights_.push_back({argument, name.str(), is_unsigned, "state",
                      nn::InitAttr::get(main_.getContext(), "zeros",
                                        builder.getF64FloatAttr(0), 0)});
  return {argument, is_unsigned};
}

// Knuth's linear congruential generator (MMIX). Unlike a counter, it is the
// same operation in each layer, also after folding.
Val MainBuilder::nextSeed() {
  if (!seed_) {
    mlir::Builder builder(main_.getContext());
    seed_ = {main_.front().insertArgument(
                 static_cast<unsigned>(inputs_.size()),
                 mlir::RankedTensorType::get({}, builder.getI64Type()),
                 main_.getLoc()),
             false};
    std::string name = "seed";
    while (
        llvm::any_of(inputs_, [&](auto& input) { return input.first == name; }))
      name += "_";
    inputs_.emplace_back(name, seed_);
    next_seed_ = seed_;
  }
  const auto scalar = [&](int64_t value) {
    return emitter_.constant(mlir::DenseElementsAttr::get(seed_.type(), value),
                             false);
  };
  Val own = next_seed_;
  next_seed_ = emitter_.add(emitter_.mul(own, scalar(6364136223846793005)),
                            scalar(1442695040888963407));
  return own;
}

void MainBuilder::eraseUnused() {
  mlir::Block& body = main_.front();
  for (mlir::Operation& op : llvm::make_early_inc_range(llvm::reverse(body))) {
    if (mlir::isOpTriviallyDead(&op)) op.erase();
  }
  llvm::erase_if(weights_, [&](Weight& weight) {
    // A state that is not read is updated all the same.
    if (!weight.argument.use_empty() || weight.kind == "state") return false;
    weight.argument.getOwner()->eraseArgument(weight.argument.getArgNumber());
    return true;
  });
}

void MainBuilder::annotateArguments() {
  mlir::Builder builder(main_.getContext());
  auto set = [&](mlir::Value argument, llvm::StringRef name,
                 llvm::StringRef kind, bool is_unsigned) {
    unsigned index = mlir::cast<mlir::BlockArgument>(argument).getArgNumber();
    main_.setArgAttr(index, nn::kKindAttr, builder.getStringAttr(kind));
    main_.setArgAttr(index, nn::kNameAttr, builder.getStringAttr(name));
    if (is_unsigned)
      main_.setArgAttr(index, nn::kUnsignedAttr, builder.getUnitAttr());
  };
  for (auto& [name, input] : inputs_)
    set(input.value, name, "input", input.is_unsigned);
  if (seed_)
    main_.setArgAttr(
        mlir::cast<mlir::BlockArgument>(seed_.value).getArgNumber(),
        nn::kRoleAttr, builder.getStringAttr("seed"));
  for (const Weight& weight : weights_) {
    set(weight.argument, weight.name, weight.kind, weight.is_unsigned);
    main_.setArgAttr(weight.argument.getArgNumber(), nn::kSourceAttr,
                     weight.source);
  }
}

void MainBuilder::finish(llvm::ArrayRef<Result> results) {
  mlir::OpBuilder& builder = emitter_.builder();
  llvm::SmallVector<mlir::Value> values;
  llvm::SmallVector<mlir::Attribute> attributes;
  for (const Result& result : results) {
    values.push_back(result.value.value);
    llvm::SmallVector<mlir::NamedAttribute> named = {builder.getNamedAttr(
        result.is_update ? nn::kUpdatesAttr : nn::kNameAttr,
        builder.getStringAttr(result.name))};
    if (result.value.is_unsigned)
      named.push_back(
          builder.getNamedAttr(nn::kUnsignedAttr, builder.getUnitAttr()));
    attributes.push_back(builder.getDictionaryAttr(named));
  }
  mlir::func::ReturnOp::create(builder, main_.getLoc(), values);
  eraseUnused();
  main_.setFunctionType(builder.getFunctionType(
      main_.front().getArgumentTypes(), mlir::TypeRange(values)));
  main_.setAllResultAttrs(attributes);
  annotateArguments();
}

}  // namespace partita::builder
