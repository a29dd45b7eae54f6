// Launches of kernels: their geometry, pieces and tensor maps.
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/dtype.h"
#include "runtime/base/status_macros.h"
#include "runtime/program/piece_table.h"
#include "runtime/program/types.h"
#include "runtime/program/validate.h"
#include "runtime/program/validate_attention.h"
#include "runtime/program/validate_operation.h"

namespace partita::program {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 50;

absl::Status Bad(const std::string& message) {
  return absl::InvalidArgumentError(message);
}

// Limits that all GPUs share.
absl::Status CheckGrid(const Launch& launch) {
  if (SizeOrZero(launch.grid()) != 3 || SizeOrZero(launch.block()) != 3)
    return Bad(absl::StrCat(
        "launch on a GPU: expected a grid and a block of 3 sizes each, found ",
        SizeOrZero(launch.grid()), " and ", SizeOrZero(launch.block())));
  constexpr int kMostBlocks[] = {0x7fffffff, 65535, 65535};
  constexpr int kMostThreads[] = {1024, 1024, 64};
  int64_t threads = 1;
  for (unsigned i = 0; i < 3; ++i) {
    const int blocks = launch.grid()->Get(i);
    const int size = launch.block()->Get(i);
    if (blocks < 1 || blocks > kMostBlocks[i] || size < 1 ||
        size > kMostThreads[i])
      return Bad(absl::StrCat("launch on a GPU: ", blocks, " blocks of ", size,
                              " threads along ", std::string(1, "xyz"[i]),
                              " is out of range"));
    threads *= size;
  }
  if (threads > 1024 || launch.shared_bytes() < 0 ||
      launch.shared_bytes() > (1 << 20))
    return Bad(absl::StrCat("launch on a GPU: a block of ", threads,
                            " threads with ", launch.shared_bytes(),
                            " bytes of shared memory is out of range"));
  return absl::OkStatus();
}

// Checks a list with one number per dimension of a tensor map, or per dimension
// but the last.
absl::Status CheckMapSizes(const char* what,
                           const flatbuffers::Vector<int64_t>* sizes,
                           int64_t expected, int64_t most, int64_t unit) {
  if (!IsAligned(sizes)) return Bad(absl::StrCat(what, " is not aligned"));
  if (SizeOrZero(sizes) != expected)
    return Bad(absl::StrCat("expected ", expected, " sizes in its ", what,
                            ", found ", SizeOrZero(sizes)));
  for (int64_t i = 0; i < expected; ++i) {
    const int64_t size = sizes->Get(static_cast<unsigned>(i));
    if (size < 1 || size > most || size % unit != 0)
      return Bad(absl::StrCat(
          "its ", what, " has ", size, ", expected ",
          unit > 1 ? absl::StrCat("multiples of ", unit) : "numbers", " from ",
          unit, " to ", most));
  }
  return absl::OkStatus();
}

// The limits of cuTensorMapEncodeTiled, from the documentation of the CUDA
// driver API.
absl::Status CheckMap(const TensorMap& map, const Instruction& instruction) {
  const int64_t rank = SizeOrZero(map.shape()),
                inputs =
                    SizeOrZero(instruction.operands()) - instruction.outputs();
  if (map.operand() < 0 || map.operand() >= inputs)
    return Bad(absl::StrCat("operand ", map.operand(), " of ", inputs));
  if (!KnownDType(map.dtype()) || map.swizzle() < Swizzle::MIN ||
      map.swizzle() > Swizzle::MAX)
    return Bad("an unknown element type or swizzle");
  if (rank < 1 || rank > 5)
    return Bad(absl::StrCat("expected 1 to 5 dimensions, found ", rank));
  PARTITA_RETURN_IF_ERROR(
      CheckMapSizes("shape", map.shape(), rank, int64_t{1} << 32, 1));
  PARTITA_RETURN_IF_ERROR(CheckMapSizes("strides", map.strides(), rank - 1,
                                        (int64_t{1} << 40) - 16, 16));
  PARTITA_RETURN_IF_ERROR(CheckMapSizes("box", map.box(), rank, 256, 1));
  const unsigned last = static_cast<unsigned>(rank - 1);
  const int64_t size = base::SizeOf(ToBase(map.dtype())),
                row = map.box()->Get(last) * size;
  if (row % 16 != 0 || (map.swizzle() == Swizzle::bytes128 && row > 128))
    return Bad(absl::StrCat("rows of its box have ", row, " bytes, expected ",
                            "a multiple of 16, at most 128 if swizzled"));
  int64_t end = map.shape()->Get(last) * size;
  bool wraps = map.offset() < 0 || map.offset() % 16 != 0 ||
               __builtin_add_overflow(end, map.offset(), &end);
  for (unsigned i = 0; i < last; ++i) {
    int64_t reach = 0;
    wraps |= __builtin_mul_overflow(map.shape()->Get(i) - 1,
                                    map.strides()->Get(i), &reach) ||
             __builtin_add_overflow(end, reach, &end);
  }
  const int64_t bytes = instruction.operands()
                            ->Get(static_cast<unsigned>(map.operand()))
                            ->bytes();
  if (wraps || end > bytes)
    return Bad(
        absl::StrCat("expected it from a multiple of 16 on inside its "
                     "operand, of ",
                     bytes, " bytes; found offset ", map.offset(),
                     wraps ? "" : absl::StrCat(" and end ", end)));
  return absl::OkStatus();
}

absl::Status CheckMaps(const Launch& launch, const Instruction& instruction) {
  // This many fit into a kernel's parameters, beside its operands.
  constexpr int64_t kMostMaps = 16;
  if (SizeOrZero(launch.maps()) > kMostMaps)
    return Bad(absl::StrCat("launch: expected at most ", kMostMaps,
                            " tensor maps, found ", SizeOrZero(launch.maps())));
  for (int64_t i = 0; i < SizeOrZero(launch.maps()); ++i) {
    const absl::Status status =
        CheckMap(*launch.maps()->Get(static_cast<unsigned>(i)), instruction);
    if (!status.ok())
      return Bad(
          absl::StrCat("launch: tensor map ", i, ": ", status.message()));
  }
  return absl::OkStatus();
}

absl::Status CheckPieces(const Launch& launch, const Instruction& instruction) {
  const int64_t pieces = SizeOrZero(launch.ranges());
  const int64_t operands = SizeOrZero(instruction.operands());
  if (!IsAligned(launch.ranges()))
    return Bad("launch: its ranges are not aligned");
  const bool on_gpu = launch.grid() != nullptr;
  if (pieces < (on_gpu ? 1 : 2) || operands % pieces != 0 ||
      instruction.outputs() % pieces != 0 ||
      operands / pieces > kMaxPieceOperands) {
    return Bad(absl::StrCat("launch: ", pieces, " pieces with ", operands,
                            " operands, ", instruction.outputs(),
                            " of them written"));
  }
  if (on_gpu && (pieces > PiecesOfTable(operands / pieces) ||
                 launch.scratch_bytes() != 0 || launch.maps() != nullptr)) {
    return Bad(absl::StrCat("launch on a GPU: ", pieces, " pieces of ",
                            operands / pieces, " operands, ",
                            launch.scratch_bytes(),
                            " bytes of scratch or a tensor map do not fit a "
                            "table of ",
                            kPieceTableBytes, " bytes"));
  }
  int64_t left = launch.range();
  for (const int64_t range : *launch.ranges()) {
    if (range < 0 || range > left)
      return Bad("launch: pieces are more than the range");
    left -= range;
  }
  return left > 0 ? Bad("launch: pieces are less than the range")
                  : absl::OkStatus();
}

}  // namespace

absl::Status ValidateLaunch(const Program& program, const Launch& launch,
                            const Instruction& instruction) {
  if (launch.ranges() != nullptr)
    PARTITA_RETURN_IF_ERROR(CheckPieces(launch, instruction));
  if (launch.kernel() < 0 || launch.kernel() >= SizeOrZero(program.kernels()))
    return Bad(absl::StrCat("kernel ", launch.kernel(), " of ",
                            SizeOrZero(program.kernels())));
  const bool for_gpus = IsForGpus(program);
  if (for_gpus) PARTITA_RETURN_IF_ERROR(CheckGrid(launch));
  if (!for_gpus && (launch.grid() != nullptr || launch.block() != nullptr ||
                    launch.maps() != nullptr))
    return Bad("launch: a grid, block or tensor map in a program for no GPU");
  PARTITA_RETURN_IF_ERROR(CheckMaps(launch, instruction));
  if (launch.attention() != nullptr) {
    if (!for_gpus || launch.ranges() != nullptr)
      return Bad("launch: an attention of several pieces or not on a GPU");
    PARTITA_RETURN_IF_ERROR(
        ValidateAttention(*launch.attention(), instruction));
  }
  if (launch.range() < 0 || (launch.grain() < 1 && !for_gpus) ||
      launch.scratch_bytes() < 0 || launch.scratch_bytes() > kMaxBytes) {
    return Bad(absl::StrCat("launch: range ", launch.range(), ", grain ",
                            launch.grain(), " or scratch of ",
                            launch.scratch_bytes(), " bytes is out of range"));
  }
  return absl::OkStatus();
}

}  // namespace partita::program
