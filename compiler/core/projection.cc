// Converts shardings of dimensions to shardings of factors, and back.
//
// In a dimension of factors f1 x f2, with f1 over n1 and f2 over n2 shards,
// shard (i1, i2) starts at row (i1 * b1) * f2 + i2 * b2. These are multiples of
// one block only if f2 is whole, or if b1 = 1 and n2 * b2 = f2.
#include "compiler/core/projection.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace partita::core {
namespace {

int64_t Even(int64_t size, int64_t shards) {
  return (size + shards - 1) / shards;
}

struct Cut {
  std::vector<AxisRef> front, rest;
};

// Cuts a list so that `rest` has exactly `shards` positions. Splits an axis if
// its size allows it.
std::optional<Cut> CutBefore(const std::vector<AxisRef>& axes, int64_t shards) {
  Cut cut{axes, {}};
  while (shards > 1 && !cut.front.empty()) {
    AxisRef& last = cut.front.back();
    const int64_t part = std::min(last.size, shards);
    if (shards % part != 0 || last.size % part != 0) return std::nullopt;
    last.size /= part;
    cut.rest.insert(cut.rest.begin(),
                    {last.axis, last.pre * last.size, part, last.priority});
    if (last.size == 1) cut.front.pop_back();
    shards /= part;
  }
  if (shards != 1) return std::nullopt;
  return cut;
}

}  // namespace

AxesMatch MatchAxes(const std::vector<AxisRef>& a,
                    const std::vector<AxisRef>& b) {
  AxesMatch match{{}, a, b};
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    AxisRef &left = match.rest_a[i], &right = match.rest_b[j];
    const int64_t part = std::min(left.size, right.size);
    if (left.axis != right.axis || left.pre != right.pre ||
        left.size % part != 0 || right.size % part != 0)
      break;
    match.common.push_back(
        {left.axis, left.pre, part, std::min(left.priority, right.priority)});
    const auto advance = [part](AxisRef& ref, size_t& index) {
      if (ref.size == part) {
        ++index;
      } else {
        ref = {ref.axis, ref.pre * part, ref.size / part, ref.priority};
      }
    };
    advance(left, i);
    advance(right, j);
  }
  match.rest_a.erase(match.rest_a.begin(), match.rest_a.begin() + i);
  match.rest_b.erase(match.rest_b.begin(), match.rest_b.begin() + j);
  return match;
}

std::vector<AxisRef> Before(const std::vector<AxisRef>& axes,
                            const std::vector<AxisRef>& taken) {
  std::vector<AxisRef> before;
  for (AxisRef ref : axes) {
    bool cut = false;
    for (const AxisRef& other : taken) {
      if (!Overlap(ref, other)) continue;
      const bool splits =
          other.pre % ref.pre == 0 && ref.size % (other.pre / ref.pre) == 0;
      ref.size = splits && other.pre > ref.pre ? other.pre / ref.pre : 1;
      cut = true;
      if (ref.size == 1) break;
    }
    if (!cut || ref.size > 1) before.push_back(ref);
    if (cut) break;
  }
  return before;
}

std::vector<AxisRef> BeforeBarred(const std::vector<AxisRef>& axes,
                                  const std::vector<int>& barred) {
  const auto end =
      std::find_if(axes.begin(), axes.end(), [&barred](const AxisRef& axis) {
        return std::count(barred.begin(), barred.end(), axis.priority) > 0;
      });
  return {axes.begin(), end};
}

std::vector<FactorAxes> ProjectDim(const ShardingRule& rule,
                                   const DimFactors& factors, int64_t size,
                                   const DimSharding& dim) {
  std::vector<FactorAxes> projected(factors.size());
  if (dim.axes.empty() || factors.empty()) return projected;
  if (factors.size() == 1) {
    const bool halo = IsHalo(rule.factors[factors[0]].kind);
    projected[0] = {dim.axes, halo ? 0 : dim.block, true};
    if (dim.block == Even(size, SizeOf(dim.axes))) projected[0].block = 0;
    return projected;
  }
  const int64_t block = BlockOf(size, dim);
  std::vector<AxisRef> rest = dim.axes;
  int64_t minor = size;
  for (size_t k = 0; k < factors.size() && !rest.empty(); ++k) {
    const int64_t rows = rule.factors[factors[k]].size;
    minor /= std::max<int64_t>(rows, 1);
    if (minor > 0 && block % minor == 0) {
      const int64_t own = block / minor;
      projected[k] = {rest, own == Even(rows, SizeOf(rest)) ? 0 : own, true};
      return projected;
    }
    std::optional<Cut> cut;
    if (block > 0 && minor % block == 0) cut = CutBefore(rest, minor / block);
    if (cut) {
      projected[k].axes = std::move(cut->front);
      rest = std::move(cut->rest);
    } else if (rows > 1) {
      projected[k] = {rest, 0, false};
      return projected;
    }
  }
  return projected;
}

int AssembleDim(const Mesh& mesh, const ShardingRule& rule,
                const DimFactors& factors, int64_t size,
                const std::vector<FactorAxes>& by_factor, DimSharding& dim) {
  dim.axes.clear();
  dim.block = 0;
  if (factors.size() == 1) {
    const FactorAxes& only = by_factor[factors[0]];
    dim.axes = only.axes;
    dim.block = only.block;
    return -1;
  }
  // From the minor factor up: `shards` of `block` rows out of `rows`.
  int64_t rows = 1, block = 1, shards = 1;
  int inner = -1;
  for (size_t k = factors.size(); k-- > 0;) {
    const FactorAxes& own = by_factor[factors[k]];
    const int64_t own_rows = rule.factors[factors[k]].size;
    if (own_rows == 1 && own.axes.empty()) continue;
    const int64_t own_shards = SizeOf(own.axes);
    const int64_t own_block =
        own.axes.empty()
            ? own_rows
            : (own.block > 0 ? own.block : Even(own_rows, own_shards));
    if (inner >= 0) {
      if (own_block != 1 || shards * block != rows) return inner;
    } else {
      block = own_block * rows;
    }
    if (!own.axes.empty()) inner = factors[k];
    dim.axes.insert(dim.axes.begin(), own.axes.begin(), own.axes.end());
    rows *= own_rows;
    shards *= own_shards;
  }
  dim.axes = Normalize(mesh, dim.axes);
  dim.block = block == Even(size, shards) ? 0 : block;
  return -1;
}

int64_t BytesOf(const Value& value) {
  int64_t bytes = value.element_bytes;
  for (int64_t size : value.shape) bytes *= size;
  return bytes;
}

std::vector<OpTensor> TensorsOf(const Op& op) {
  std::vector<OpTensor> tensors;
  tensors.reserve(op.operands.size() + op.results.size());
  for (size_t i = 0; i < op.operands.size(); ++i)
    tensors.push_back(
        {op.operands[i], false, static_cast<int>(i), &op.rule.operands[i]});
  for (size_t i = 0; i < op.results.size(); ++i)
    tensors.push_back(
        {op.results[i], true, static_cast<int>(i), &op.rule.results[i]});
  return tensors;
}

TensorProjection ProjectTensor(const ShardingRule& rule,
                               const TensorFactors& factors,
                               const std::vector<int64_t>& shape,
                               const Sharding& sharding) {
  TensorProjection projection;
  projection.factors.resize(rule.factors.size());
  projection.dims.assign(rule.factors.size(), -1);
  for (size_t d = 0; d < factors.size(); ++d) {
    for (int factor : factors[d]) projection.dims[factor] = static_cast<int>(d);
    if (sharding.dims[d].axes.empty()) continue;
    std::vector<FactorAxes> projected =
        ProjectDim(rule, factors[d], shape[d], sharding.dims[d]);
    for (size_t k = 0; k < factors[d].size(); ++k)
      projection.factors[factors[d][k]] = std::move(projected[k]);
  }
  return projection;
}

}  // namespace partita::core
