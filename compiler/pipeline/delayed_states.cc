// Arguments and results that hold values of earlier steps.
#include "compiler/pipeline/delayed_states.h"

#include <algorithm>

#include "compiler/pipeline/placement.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"

namespace partita::pipeline {

using llvm::SmallVector;
using mlir::Value;

Value DelayedStates::delayed(Value value, int64_t steps, int64_t stage) {
  if (steps == 0) return value;
  auto [entry, is_new] = delayed_.try_emplace({value, steps});
  if (!is_new) return entry->second;
  const std::string name = std::to_string(std::max<int64_t>(stage, 0)) + "." +
                           std::to_string(delayed_.size());
  Value state = add(value.getType(), name);
  delayed_[{value, steps}] = state;
  update(name, delayed(value, steps - 1, stage));
  return state;
}

// Arguments and results are declared together at the end.
Value DelayedStates::add(mlir::Type type, const std::string& name) {
  mlir::Builder builder(main_.getContext());
  mlir::NamedAttrList attributes;
  attributes.set(nn::kKindAttr, builder.getStringAttr("state"));
  attributes.set(nn::kNameAttr, builder.getStringAttr(kDelayedPrefix + name));
  attributes.set(nn::kSourceAttr,
                 nn::InitAttr::get(main_.getContext(), "zeros",
                                   builder.getF64FloatAttr(0), 0));
  arguments_.push_back(attributes.getDictionary(main_.getContext()));
  return main_.front().addArgument(type, main_.getLoc());
}

void DelayedStates::update(const std::string& name, Value value) {
  mlir::Builder builder(main_.getContext());
  results_.push_back(builder.getDictionaryAttr(builder.getNamedAttr(
      nn::kUpdatesAttr, builder.getStringAttr(kDelayedPrefix + name))));
  returned_.push_back(value);
}

void DelayedStates::declare() {
  mlir::Operation* terminator = main_.front().getTerminator();
  terminator->insertOperands(terminator->getNumOperands(), returned_);
  SmallVector<mlir::DictionaryAttr> arguments, results;
  main_.getAllArgAttrs(arguments);
  main_.getAllResultAttrs(results);
  llvm::append_range(arguments, arguments_);
  llvm::append_range(results, results_);
  main_.setFunctionType(mlir::FunctionType::get(
      main_.getContext(), main_.front().getArgumentTypes(),
      terminator->getOperandTypes()));
  main_.setAllArgAttrs(arguments);
  main_.setAllResultAttrs(results);
}

}  // namespace partita::pipeline
