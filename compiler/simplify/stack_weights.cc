#include "compiler/simplify/stack_weights.h"

#include "compiler/simplify/index_map.h"
#include "compiler/simplify/view.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace partita::simplify {
namespace {

using mlir::ArrayRef;
using mlir::BlockArgument;
using mlir::SmallVector;
using mlir::Value;

// The tensor [count, ...] of which `value` is the slice at `index`; null if
// there is none.
Value stackOf(Value value, int64_t index, int64_t count) {
  Access access = {value, {}};
  for (auto [dim, size] : llvm::enumerate(tensorType(value).getShape()))
    access.dims.push_back(wholeRange(static_cast<int>(dim), size));
  const Index digits = access.digits();
  const Access stacked = peel(access);
  const auto type = tensorType(stacked.value);
  if (type.getRank() != static_cast<int64_t>(access.dims.size()) + 1 ||
      type.getShape().drop_front() != tensorType(value).getShape() ||
      type.getDimSize(0) != count)
    return {};
  const Access rest = {stacked.value,
                       SmallVector<Index>(llvm::drop_begin(stacked.dims))};
  const Index& first = stacked.dims[0];
  const bool is_index =
      count == 1 ||
      (first.size() == 1 && first[0].symbol < 0 && first[0].number == index);
  return is_index && rest.digits() == digits ? stacked.value : Value();
}

}  // namespace

std::string nameOfParts(ArrayRef<std::string> names) {
  const std::string& first = names.front();
  for (size_t at = first.find('0'); at != std::string::npos;
       at = first.find('0', at + 1)) {
    const std::string before = first.substr(0, at),
                      after = first.substr(at + 1);
    bool fits = true;
    for (auto [i, name] : llvm::enumerate(names))
      fits &= name == before + std::to_string(i) + after;
    if (fits) return before + "*" + after;
  }
  return first;
}

void WeightStacker::setReplaced(ArrayRef<Value> values) {
  results_.clear();
  results_.insert(values.begin(), values.end());
}

bool WeightStacker::becomesUnused(BlockArgument argument) const {
  SmallVector<Value> left = {argument};
  llvm::DenseSet<mlir::Operation*> seen;
  while (!left.empty()) {
    for (mlir::Operation* user : left.pop_back_val().getUsers()) {
      if (!seen.insert(user).second) continue;
      if (!mlir::wouldOpBeTriviallyDead(user)) return false;
      for (Value result : user->getResults()) {
        if (!results_.contains(result))
          left.push_back(result);
        else if (!result.hasOneUse())  // besides the sum
          return false;
      }
    }
  }
  return true;
}

bool WeightStacker::areParts(ArrayRef<Value> values) {
  mlir::DictionaryAttr first;
  for (Value value : values) {
    auto argument = mlir::dyn_cast<BlockArgument>(value);
    if (!argument || argument.getOwner() != &main_.front() ||
        !argument.hasOneUse() || !becomesUnused(argument))
      return false;
    const unsigned number = argument.getArgNumber();
    auto attributes = main_.getArgAttrDict(number);
    if (!mlir::isa_and_nonnull<nn::FileAttr>(attributes.get(nn::kSourceAttr)) ||
        !attributes.get(nn::kNameAttr) || attributes.get(nn::kPartsAttr))
      return false;
    mlir::NamedAttrList rest(attributes);
    rest.erase(nn::kSourceAttr);
    rest.erase(nn::kNameAttr);
    // Others, e.g. a sharding, are of one weight alone.
    for (mlir::NamedAttribute attribute : rest)
      if (attribute.getName() != nn::kKindAttr &&
          attribute.getName() != nn::kUnsignedAttr)
        return false;
    const auto common = rest.getDictionary(main_.getContext());
    if (first && common != first) return false;
    first = common;
  }
  return true;
}

Value WeightStacker::stack(mlir::OpBuilder& builder, mlir::Location loc,
                           ArrayRef<Value> values) {
  const int64_t count = values.size();
  Value whole;
  for (auto [i, value] : llvm::enumerate(values)) {
    const Value found = stackOf(value, i, count);
    if (!found || (whole && found != whole)) {
      whole = {};
      break;
    }
    whole = found;
  }
  if (whole) return whole;

  const mlir::RankedTensorType type = tensorType(values.front());
  SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin(), count);
  if (areParts(values)) {
    SmallVector<mlir::Attribute> sources;
    SmallVector<std::string> names;
    for (Value value : values) {
      const auto argument = mlir::cast<BlockArgument>(value);
      const unsigned number = argument.getArgNumber();
      sources.push_back(main_.getArgAttr(number, nn::kSourceAttr));
      names.push_back(
          main_.getArgAttrOfType<mlir::StringAttr>(number, nn::kNameAttr)
              .str());
      replaced_.push_back(argument);
    }
    const auto first = mlir::cast<BlockArgument>(values.front());
    const unsigned place = first.getArgNumber();
    const std::string name = nameOfParts(names);
    mlir::NamedAttrList attributes(main_.getArgAttrDict(place));
    attributes.set(nn::kNameAttr, builder.getStringAttr(name));
    attributes.set(nn::kSourceAttr, builder.getArrayAttr(sources));
    attributes.set(nn::kPartsAttr, builder.getUnitAttr());
    const mlir::Location named =
        mlir::NameLoc::get(builder.getStringAttr(name));
    if (mlir::succeeded(main_.insertArgument(
            place, type.clone(shape),
            attributes.getDictionary(builder.getContext()), named)))
      return main_.getArgument(place);
  }
  shape.front() = 1;
  SmallVector<Value> parts;
  for (Value value : values)
    parts.push_back(buildReshape(builder, loc, value, shape));
  if (count == 1) return parts.front();
  shape.front() = count;
  return nn::ConcatOp::create(builder, loc, type.clone(shape), parts, 0);
}

llvm::LogicalResult WeightStacker::eraseReplaced() {
  llvm::BitVector erased(main_.getNumArguments());
  for (BlockArgument argument : replaced_)
    if (argument.use_empty()) erased.set(argument.getArgNumber());
  replaced_.clear();
  return erased.none() ? mlir::success() : main_.eraseArguments(erased);
}

}  // namespace partita::simplify
