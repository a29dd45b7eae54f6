// Origins are numbered in the order of the steps, so the first maker has the
// smallest number.
#include "runtime/executor/nan_trace.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/program/types.h"

namespace partita::executor {
namespace {

// Above every step index.
constexpr int64_t kSent = int64_t{1} << 40;

const char* NameOf(NumberKind kind) {
  return kind == NumberKind::kNan ? "NaN" : "an infinite number";
}

template <typename T, typename ToNumber>
NanTrace::Look LookAt(const void* data, int64_t count,
                      const ToNumber& to_number) {
  const T* values = static_cast<const T*>(data);
  NanTrace::Look look;
  for (int64_t i = 0; i < count; ++i) {
    const auto value = to_number(values[i]);
    if (std::isfinite(value)) continue;
    if (std::isnan(value)) return {NumberKind::kNan, i};
    if (look.kind == NumberKind::kFinite) look = {NumberKind::kInfinite, i};
  }
  return look;
}

// "element [0, 3] of f32[4,8]"
std::string Place(const program::TensorType& type, int64_t element) {
  std::vector<int64_t> shape = program::ShapeOf(type), index(shape.size());
  for (size_t dim = shape.size(); dim-- > 0;) {
    const int64_t size = std::max<int64_t>(shape[dim], 1);
    index[dim] = element % size;
    element /= size;
  }
  return absl::StrCat("element [", absl::StrJoin(index, ", "), "] of ",
                      base::TypeName(program::ToBase(type.dtype()), shape));
}

}  // namespace

NanTrace::Look NanTrace::At(base::DType dtype, const void* data,
                            int64_t count) {
  switch (dtype) {
    case base::DType::kF32:
      return LookAt<float>(data, count, [](float x) { return x; });
    case base::DType::kF64:
      return LookAt<double>(data, count, [](double x) { return x; });
    case base::DType::kF16:
      return LookAt<uint16_t>(data, count, base::HalfToFloat);
    case base::DType::kBF16:
      return LookAt<uint16_t>(data, count, base::BFloat16ToFloat);
    case base::DType::kF8E4M3:
      return LookAt<uint8_t>(data, count, base::Float8E4M3ToFloat);
    case base::DType::kF8E5M2:
      return LookAt<uint8_t>(data, count, base::Float8E5M2ToFloat);
    default:
      return {};
  }
}

void NanTrace::Begin() {
  origins_.clear();
  regions_.clear();
  roots_.clear();
  worst_ = NumberKind::kFinite;
}

std::vector<int> NanTrace::OriginsIn(const void* data, int64_t bytes) const {
  const char* begin = static_cast<const char*>(data);
  std::vector<int> found;
  for (const Region& region : regions_)
    if (region.begin < begin + bytes && begin < region.end)
      found.push_back(region.origin);
  return found;
}

void NanTrace::Overwrite(const void* data, int64_t bytes) {
  const char* begin = static_cast<const char*>(data);
  regions_.erase(std::remove_if(regions_.begin(), regions_.end(),
                                [&](const Region& region) {
                                  return region.begin < begin + bytes &&
                                         begin < region.end;
                                }),
                 regions_.end());
}

void NanTrace::AddSource(const std::string& name, const void* data,
                         int64_t bytes, const Look& look) {
  if (look.kind == NumberKind::kFinite) return;
  const char* begin = static_cast<const char*>(data);
  regions_.push_back({begin, begin + bytes, static_cast<int>(origins_.size())});
  Origin origin;
  origin.what = name;
  origin.kind = look.kind;
  origins_.push_back(std::move(origin));
}

void NanTrace::AddStep(int64_t index, const program::Instruction& instruction,
                       void* const* operands) {
  const int64_t count = program::SizeOrZero(instruction.operands());
  const int64_t inputs = count - instruction.outputs();
  const bool collective =
      instruction.operation_type() == program::Operation::Collective ||
      instruction.operation_type() == program::Operation::Send ||
      instruction.operation_type() == program::Operation::Receive;
  const auto bytes_of = [&](int64_t i) {
    return instruction.operands()->Get(static_cast<unsigned>(i))->bytes();
  };
  std::vector<int> bad;
  for (int64_t i = 0; !regions_.empty() && i < inputs; ++i)
    for (int origin : OriginsIn(operands[i], bytes_of(i)))
      bad.push_back(origin);
  if (collective) roots_.insert(roots_.end(), bad.begin(), bad.end());
  const int64_t typed = program::SizeOrZero(instruction.output_types());
  for (int64_t i = inputs; i < count; ++i) {
    Overwrite(operands[i], bytes_of(i));
    if (i - inputs >= typed) continue;
    const program::TensorType& type =
        *instruction.output_types()->Get(static_cast<unsigned>(i - inputs));
    const base::DType dtype = program::ToBase(type.dtype());
    const Look look = At(dtype, operands[i], bytes_of(i) / base::SizeOf(dtype));
    if (look.kind == NumberKind::kFinite) continue;
    const char* begin = static_cast<const char*>(operands[i]);
    regions_.push_back(
        {begin, begin + bytes_of(i), static_cast<int>(origins_.size())});
    origins_.push_back(
        {index, Place(type, look.element), look.kind, collective, bad});
  }
}

void NanTrace::AddCopy(const void* from, const void* to, int64_t bytes) {
  const std::vector<int> origins = OriginsIn(from, bytes);
  Overwrite(to, bytes);
  const char* begin = static_cast<const char*>(to);
  for (int origin : origins) regions_.push_back({begin, begin + bytes, origin});
}

void NanTrace::AddOutcome(const void* data, int64_t bytes, NumberKind kind) {
  worst_ = std::max(worst_, kind);
  if (kind == NumberKind::kFinite) return;
  for (int origin : OriginsIn(data, bytes)) roots_.push_back(origin);
}

int NanTrace::FirstMaker(std::vector<int> roots, NumberKind kind) const {
  std::vector<bool> seen(origins_.size());
  int first = -1;
  while (!roots.empty()) {
    const int index = roots.back();
    roots.pop_back();
    const Origin& origin = origins_[static_cast<size_t>(index)];
    if (seen[static_cast<size_t>(index)] || origin.kind < kind) continue;
    seen[static_cast<size_t>(index)] = true;
    bool made = true;
    for (int input : origin.inputs)
      made = made && origins_[static_cast<size_t>(input)].kind < kind;
    roots.insert(roots.end(), origin.inputs.begin(), origin.inputs.end());
    if (!made) continue;
    // A collective's output may come from another rank.
    const auto rank = [&](int i) {
      return std::pair(origins_[static_cast<size_t>(i)].collective, i);
    };
    if (first < 0 || rank(index) < rank(first)) first = index;
  }
  return first;
}

std::string NanTrace::Describe(const Origin& origin) const {
  if (origin.step < 0)
    return absl::StrCat(origin.what, " holds ", NameOf(origin.kind),
                        " before the step");
  return absl::StrCat(describe_(origin.step), " made ", NameOf(origin.kind),
                      ", first in ", origin.what);
}

std::optional<NonFinite> NanTrace::Find(NumberKind kind) const {
  const int first = FirstMaker(roots_, kind);
  if (first < 0) return std::nullopt;
  const Origin& origin = origins_[static_cast<size_t>(first)];
  NonFinite found;
  found.order = origin.step + (origin.collective ? kSent : 0);
  found.text = Describe(origin);
  const int infinite = FirstMaker(origin.inputs, NumberKind::kInfinite);
  if (infinite >= 0)
    absl::StrAppend(&found.text, ", of an infinite number: ",
                    Describe(origins_[static_cast<size_t>(infinite)]));
  return found;
}

}  // namespace partita::executor
