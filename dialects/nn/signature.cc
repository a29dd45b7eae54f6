// Keeps lists of attribute dictionaries, one per argument and per result.
#include "dialects/nn/signature.h"

#include "dialects/nn/dialect.h"

namespace partita::nn {

using mlir::Attribute;
using mlir::DictionaryAttr;
using mlir::func::FuncOp;

Signature::Signature(FuncOp function) : function_(function) {
  // FuncOp returns null if there are no attributes.
  const auto known = [&](DictionaryAttr attributes) {
    return attributes ? attributes : DictionaryAttr::get(function.getContext());
  };
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    arguments_.push_back(known(function.getArgAttrDict(i)));
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    results_.push_back(known(function.getResultAttrDict(i)));
}

Attribute Signature::resultAttr(unsigned i, llvm::StringRef name) const {
  return results_[i].get(name);
}

void Signature::set(DictionaryAttr& attributes, llvm::StringRef name,
                    Attribute value) {
  mlir::NamedAttrList list(attributes);
  if (value)
    list.set(name, value);
  else
    list.erase(name);
  attributes = list.getDictionary(attributes.getContext());
}

void Signature::setArgument(unsigned i, llvm::StringRef name, Attribute value) {
  set(arguments_[i], name, value);
  sets_arguments_ = true;
}

void Signature::setResult(unsigned i, llvm::StringRef name, Attribute value) {
  set(results_[i], name, value);
  sets_results_ = true;
}

mlir::Value Signature::addArgument(mlir::Type type, DictionaryAttr attributes,
                                   mlir::Location location) {
  arguments_.push_back(attributes);
  sets_arguments_ = sets_type_ = true;
  return function_.front().addArgument(type, location);
}

void Signature::insertResult(unsigned index, mlir::Value value,
                             DictionaryAttr attributes) {
  results_.insert(results_.begin() + index, attributes);
  function_.front().getTerminator()->insertOperands(index, value);
  sets_results_ = sets_type_ = true;
}

void Signature::eraseResult(unsigned index) {
  results_.erase(results_.begin() + index);
  function_.front().getTerminator()->eraseOperand(index);
  sets_results_ = sets_type_ = true;
}

void Signature::write() {
  if (sets_type_) {
    mlir::Block& body = function_.front();
    function_.setFunctionType(
        mlir::FunctionType::get(function_.getContext(), body.getArgumentTypes(),
                                body.getTerminator()->getOperandTypes()));
  }
  if (sets_arguments_) function_.setAllArgAttrs(arguments_);
  if (sets_results_) function_.setAllResultAttrs(results_);
  sets_arguments_ = sets_results_ = sets_type_ = false;
}

llvm::StringMap<unsigned> argumentsByName(FuncOp function) {
  llvm::StringMap<unsigned> arguments;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto name =
            function.getArgAttrOfType<mlir::StringAttr>(i, nn::kNameAttr))
      arguments.try_emplace(name.getValue(), i);
  return arguments;
}

}  // namespace partita::nn
