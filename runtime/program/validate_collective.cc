// Checks that shapes of collectives match the kind and the group.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/dtype.h"
#include "runtime/base/status_macros.h"
#include "runtime/program/types.h"
#include "runtime/program/validate.h"
#include "runtime/program/validate_mesh.h"
#include "runtime/program/validate_operation.h"

namespace partita::program {
namespace {

constexpr int64_t kMaxRows = int64_t{1} << 40;

// A collective, its shapes and its group.
struct Parts {
  const Collective& op;
  std::string name;
  std::vector<int64_t> input, output;
  int64_t group = 1;

  absl::Status Bad(const std::string& message) const {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", message));
  }
};

bool Has(const Parts& parts, int dim) {
  return dim >= 0 && dim < static_cast<int>(parts.input.size());
}

// Checks a dimension that is divided or gathered: `whole` rows over the group
// in blocks of `block`.
absl::Status CheckBlocks(const Parts& parts, int dim, int64_t whole,
                         int64_t block) {
  if (whole > kMaxRows || block > kMaxRows)
    return parts.Bad(absl::StrCat("dimension ", dim, " is too big"));
  if (whole <= block * parts.group) return absl::OkStatus();
  return parts.Bad(absl::StrCat("dimension ", dim, ": ", parts.group,
                                " blocks of ", block, " rows do not hold ",
                                whole));
}

absl::Status CheckReduction(const Parts& parts) {
  const Reduction reduction = parts.op.reduction();
  if (reduction < Reduction::MIN || reduction > Reduction::MAX)
    return parts.Bad(
        absl::StrCat("unknown reduction ", static_cast<int>(reduction)));
  const bool logical =
      reduction == Reduction::any || reduction == Reduction::all;
  const bool narrow =
      parts.op.dtype() == DType::f8e4m3 || parts.op.dtype() == DType::f8e5m2;
  if (logical == (parts.op.dtype() == DType::i1) && !narrow)
    return absl::OkStatus();
  return parts.Bad(absl::StrCat("reduction ", EnumNameReduction(reduction),
                                " of ",
                                base::NameOf(ToBase(parts.op.dtype()))));
}

// The digits of a list of axes, as merged intervals (axis, from, to) of
// divisors.
std::vector<std::vector<int64_t>> Covered(const AxisList* axes) {
  std::vector<std::vector<int64_t>> parts;
  for (int64_t i = 0; i < SizeOrZero(axes); ++i) {
    const AxisPart& part = *axes->Get(static_cast<unsigned>(i));
    if (part.size() > 1)
      parts.push_back({part.axis(), part.pre(), part.pre() * part.size()});
  }
  std::sort(parts.begin(), parts.end());
  std::vector<std::vector<int64_t>> joined;
  for (const std::vector<int64_t>& part : parts) {
    if (!joined.empty() && joined.back()[0] == part[0] &&
        joined.back()[2] == part[1]) {
      joined.back()[2] = part[2];
    } else {
      joined.push_back(part);
    }
  }
  return joined;
}

absl::Status CheckPermute(const Mesh* mesh, const Parts& parts) {
  const absl::StatusOr<int64_t> size =
      ValidateAxes(mesh, parts.op.source_axes());
  if (!size.ok()) return parts.Bad(std::string(size.status().message()));
  if (Covered(parts.op.axes()) != Covered(parts.op.source_axes()))
    return parts.Bad("its axes and source axes are not the same parts");
  if (parts.op.offset() <= -*size || parts.op.offset() >= *size)
    return parts.Bad(
        absl::StrCat("offset ", parts.op.offset(), " in a group of ", *size));
  return absl::OkStatus();
}

absl::Status CheckExchange(const Parts& parts) {
  const Collective& op = parts.op;
  const size_t dim = static_cast<size_t>(op.dim());
  if (op.size() < 0 || op.step() < -kMaxRows || op.step() > kMaxRows ||
      op.offset() < -kMaxRows || op.offset() > kMaxRows ||
      parts.output[dim] > kMaxRows) {
    return parts.Bad(absl::StrCat("size ", op.size(), ", step ", op.step(),
                                  " or offset ", op.offset(),
                                  " is out of range"));
  }
  return CheckBlocks(parts, op.dim(), op.size(), parts.input[dim]);
}

bool MovesRows(CollectiveKind kind) {
  return kind == CollectiveKind::send_rows ||
         kind == CollectiveKind::return_rows;
}

// Rows and their destinations. The number of destinations is a multiple of the
// rows that are sent, and the number of rows that come back.
absl::Status CheckRows(const Parts& parts) {
  const int64_t size = parts.op.size();
  if (parts.input.size() != 2 || parts.op.dim() != 0 || size < 0 ||
      size > kMaxRows)
    return parts.Bad(absl::StrCat(parts.input.size(),
                                  " dimensions, rows along ", parts.op.dim(),
                                  " or ", size, " destinations"));
  if (parts.input[1] != parts.output[1])
    return parts.Bad(absl::StrCat("rows of ", parts.input[1], " and ",
                                  parts.output[1], " elements"));
  const bool sends = parts.op.kind() == CollectiveKind::send_rows;
  const int64_t rows = sends ? parts.input[0] : parts.output[0];
  const bool fits =
      sends ? (rows == 0 ? size == 0 : size % rows == 0) : size == rows;
  if (fits) return absl::OkStatus();
  return parts.Bad(absl::StrCat(size, " destinations of ", rows, " rows"));
}

// Dimensions that the kind does not change must agree.
absl::Status CheckOthers(const Parts& parts, int dim, int other_dim) {
  for (int i = 0; i < static_cast<int>(parts.input.size()); ++i) {
    const size_t index = static_cast<size_t>(i);
    if (i == dim || i == other_dim || parts.input[index] == parts.output[index])
      continue;
    return parts.Bad(absl::StrCat("shapes [", absl::StrJoin(parts.input, ","),
                                  "] and [", absl::StrJoin(parts.output, ","),
                                  "] differ in dimension ", i));
  }
  return absl::OkStatus();
}

absl::Status CheckKind(const Mesh* mesh, const Parts& parts) {
  const Collective& op = parts.op;
  const CollectiveKind kind = op.kind();
  const bool same_shape = kind == CollectiveKind::all_reduce ||
                          kind == CollectiveKind::permute ||
                          kind == CollectiveKind::broadcast;
  const bool reduces = kind == CollectiveKind::all_reduce ||
                       kind == CollectiveKind::reduce_scatter;
  if (reduces) PARTITA_RETURN_IF_ERROR(CheckReduction(parts));
  if (MovesRows(kind)) return CheckRows(parts);
  if (same_shape) {
    PARTITA_RETURN_IF_ERROR(CheckOthers(parts, -1, -1));
    if (kind == CollectiveKind::permute) return CheckPermute(mesh, parts);
    if (kind != CollectiveKind::broadcast ||
        (op.root() >= 0 && op.root() < parts.group))
      return absl::OkStatus();
    return parts.Bad(
        absl::StrCat("root ", op.root(), " of a group of ", parts.group));
  }
  const bool two = kind == CollectiveKind::all_to_all;
  if (!Has(parts, op.dim()) ||
      (two && (!Has(parts, op.other_dim()) || op.dim() == op.other_dim()))) {
    return parts.Bad(absl::StrCat("dimensions ", op.dim(), " and ",
                                  op.other_dim(), " of ", parts.input.size()));
  }
  PARTITA_RETURN_IF_ERROR(
      CheckOthers(parts, op.dim(), two ? op.other_dim() : -1));
  const size_t dim = static_cast<size_t>(op.dim());
  const size_t other = static_cast<size_t>(two ? op.other_dim() : 0);
  if (kind == CollectiveKind::exchange) return CheckExchange(parts);
  if (kind == CollectiveKind::all_gather)
    return CheckBlocks(parts, op.dim(), parts.output[dim], parts.input[dim]);
  PARTITA_RETURN_IF_ERROR(
      CheckBlocks(parts, op.dim(), parts.input[dim], parts.output[dim]));
  return two ? CheckBlocks(parts, op.other_dim(), parts.output[other],
                           parts.input[other])
             : absl::OkStatus();
}

// A device reads and writes at the same time, so only all_reduce works in
// place.
absl::Status CheckApart(const Parts& parts, const Buffer& in,
                        const Buffer& out) {
  if (in.space() != out.space()) return absl::OkStatus();
  const bool same = in.value() == out.value();
  if (same && parts.op.kind() == CollectiveKind::all_reduce)
    return absl::OkStatus();
  const bool apart = in.space() == Space::argument
                         ? !same
                         : in.value() + in.bytes() <= out.value() ||
                               out.value() + out.bytes() <= in.value();
  return apart ? absl::OkStatus() : parts.Bad("its operands overlap");
}

absl::Status CheckOverlap(const Parts& parts, const Instruction& instruction) {
  const auto* operands = instruction.operands();
  const Buffer& out = *operands->Get(operands->size() - 1);
  for (unsigned i = 0; i + 1 < operands->size(); ++i)
    PARTITA_RETURN_IF_ERROR(CheckApart(parts, *operands->Get(i), out));
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateCollective(const Mesh* mesh, const Collective& collective,
                                const Instruction& instruction) {
  Parts parts = {collective, "collective", {}, {}, 1};
  if (collective.kind() < CollectiveKind::MIN ||
      collective.kind() > CollectiveKind::MAX)
    return parts.Bad(
        absl::StrCat("unknown kind ", static_cast<int>(collective.kind())));
  parts.name = EnumNameCollectiveKind(collective.kind());
  if (collective.dtype() < DType::MIN || collective.dtype() > DType::MAX)
    return parts.Bad(absl::StrCat("unknown element type ",
                                  static_cast<int>(collective.dtype())));
  if (!IsAligned(collective.input_shape()) ||
      !IsAligned(collective.output_shape()))
    return parts.Bad("a shape is not aligned");
  parts.input = ToVector(collective.input_shape());
  parts.output = ToVector(collective.output_shape());
  if (parts.input.size() != parts.output.size() ||
      parts.input.size() > static_cast<size_t>(kMaxRank)) {
    return parts.Bad(absl::StrCat("shapes of ", parts.input.size(), " and ",
                                  parts.output.size(), " dimensions"));
  }
  const auto input = base::ByteCount(ToBase(collective.dtype()), parts.input);
  const auto output = base::ByteCount(ToBase(collective.dtype()), parts.output);
  if (!input || !output) return parts.Bad("a shape is negative or too big");
  const absl::StatusOr<int64_t> group = ValidateAxes(mesh, collective.axes());
  if (!group.ok()) return parts.Bad(std::string(group.status().message()));
  parts.group = *group;
  PARTITA_RETURN_IF_ERROR(CheckKind(mesh, parts));
  std::vector<int64_t> bytes = {*input, *output};
  if (MovesRows(collective.kind()))
    bytes.insert(bytes.begin() + 1, collective.size() * int64_t{8});
  PARTITA_RETURN_IF_ERROR(
      ValidateOperands(parts.name.c_str(), instruction, bytes));
  return CheckOverlap(parts, instruction);
}

}  // namespace partita::program
