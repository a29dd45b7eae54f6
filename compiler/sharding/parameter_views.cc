// A dimension that was split is the product of its parts, and has the axes of
// all parts.
#include "compiler/sharding/parameter_views.h"

#include <numeric>

#include "compiler/core/projection.h"
#include "compiler/sharding/dim_groups.h"
#include "dialects/nn/dialect.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita::sharding {
namespace {

using llvm::ArrayRef;

// Formats sizes as "3 x 32".
std::string product(ArrayRef<int64_t> sizes) {
  std::string text;
  for (int64_t size : sizes)
    text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text.empty() ? "1" : text;
}

std::string toString(mlir::Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return "'" + text + "'";
}

// A rule for one dimension that is the product of the given sizes.
core::ShardingRule ruleOf(ArrayRef<int64_t> sizes) {
  core::ShardingRule rule;
  for (int64_t size : sizes) rule.factors.push_back({size});
  return rule;
}

core::DimFactors allOf(size_t count) {
  core::DimFactors factors(count);
  std::iota(factors.begin(), factors.end(), 0);
  return factors;
}

// Splits one dimension into `to`. Returns an error text; empty on success.
std::string split(int64_t size, const core::DimSharding& dim,
                  ArrayRef<int64_t> to, core::DimSharding* viewed) {
  const std::vector<core::FactorAxes> factors =
      core::ProjectDim(ruleOf(to), allOf(to.size()), size, dim);
  if (to.empty() && !dim.axes.empty())
    return "a dimension of one row is divided, which the compiler leaves out";
  for (size_t i = 0; i < factors.size(); ++i) {
    if (!factors[i].exact)
      return "a dimension of " + std::to_string(size) +
             " rows is divided into shards of " +
             std::to_string(core::BlockOf(size, dim)) +
             ", where the compiler views it as " + product(to) +
             ", which they would cut through; divide it into shards that are "
             "multiples of " +
             std::to_string(productOf(to, 1, to.size())) +
             " rows, or write the override for the view";
    viewed[i].axes = factors[i].axes;
    viewed[i].block = factors[i].block;
    viewed[i].open = dim.open;
  }
  return "";
}

// Merges several dimensions into one. Returns an error text; empty on success.
std::string merge(const core::Mesh& mesh, ArrayRef<int64_t> from,
                  ArrayRef<core::DimSharding> dims, int64_t size,
                  core::DimSharding& viewed) {
  std::vector<core::FactorAxes> factors;
  for (const core::DimSharding& dim : dims)
    factors.push_back({dim.axes, dim.block, true});
  if (core::AssembleDim(mesh, ruleOf(from), allOf(from.size()), size, factors,
                        viewed) >= 0)
    return "dimensions of " + product(from) +
           " rows are divided, which the compiler views as one of " +
           std::to_string(size) +
           "; divide the first of them alone, or write the override for the "
           "view";
  viewed.open =
      llvm::all_of(dims, [](const core::DimSharding& dim) { return dim.open; });
  return "";
}

}  // namespace

std::string viewSharding(const core::Mesh& mesh, ArrayRef<int64_t> from,
                         ArrayRef<int64_t> to, const core::Sharding& sharding,
                         core::Sharding& viewed) {
  viewed = core::Replicated(static_cast<int>(to.size()));
  viewed.replicated = sharding.replicated;
  viewed.unreduced = sharding.unreduced;
  const auto groups = groupDims(from, to);
  if (!groups) return "its view has another number of elements";
  for (const DimGroup& group : *groups) {
    const auto old_sizes =
        from.slice(group.from_begin, group.from_end - group.from_begin);
    const auto new_sizes =
        to.slice(group.to_begin, group.to_end - group.to_begin);
    const auto dims =
        ArrayRef(sharding.dims).slice(group.from_begin, old_sizes.size());
    if (old_sizes.empty()) continue;
    std::string wrong;
    if (old_sizes.size() == 1) {
      wrong = split(old_sizes[0], dims[0], new_sizes,
                    viewed.dims.data() + group.to_begin);
    } else if (new_sizes.size() == 1) {
      wrong = merge(mesh, old_sizes, dims, new_sizes[0],
                    viewed.dims[group.to_begin]);
    } else {
      for (const core::DimSharding& dim : dims) {
        if (!dim.axes.empty())
          wrong = "dimensions of " + product(old_sizes) +
                  " rows are divided, which the compiler views as " +
                  product(new_sizes) + "; write the override for the view";
        for (int64_t i = group.to_begin; i < group.to_end; ++i)
          viewed.dims[i].open = viewed.dims[i].open && dim.open;
      }
    }
    if (!wrong.empty()) return wrong;
  }
  return "";
}

std::string viewOverride(const core::Mesh& mesh, mlir::BlockArgument argument,
                         const core::Sharding& sharding,
                         core::Sharding& viewed) {
  auto function =
      mlir::cast<mlir::func::FuncOp>(argument.getOwner()->getParentOp());
  const auto type = mlir::cast<mlir::RankedTensorType>(argument.getType());
  const auto attr = function.getArgAttrOfType<mlir::TypeAttr>(
      argument.getArgNumber(), nn::kViewOfAttr);
  const auto original =
      attr ? mlir::cast<mlir::RankedTensorType>(attr.getValue()) : type;
  const auto rank = static_cast<int64_t>(sharding.dims.size());
  if (attr && rank == original.getRank()) {
    const std::string wrong = viewSharding(mesh, original.getShape(),
                                           type.getShape(), sharding, viewed);
    return wrong.empty() ? "" : wrong + " (" + toString(type) + ")";
  }
  viewed = sharding;
  if (rank == type.getRank()) return "";
  return "expected " + std::to_string(original.getRank()) +
         " dimensions, as in the model's " + toString(original) +
         (attr ? ", or those of " + toString(type) +
                     ", the compiler's view of it"
               : "") +
         ", found " + std::to_string(rank);
}

}  // namespace partita::sharding
