// Lays out the memory of attention's gradient on tensor cores.
#include "compiler/kernels/emit_mma_grad_parts.h"
#include "compiler/kernels/emit_warpgroup.h"

namespace partita::kernels {
namespace {

// Shared memory that a block has by default.
constexpr int64_t kMostBytes = 48 * 1024;

}  // namespace

KeysPlan::KeysPlan(nn::AttentionGradOp op, bool with_queries) {
  const int64_t size = shapeOf(op.getQ())[3],
                value_size = shapeOf(op.getV())[3];
  const mlir::Type element = elementOf(op.getQ());
  const int64_t padding = paddingOf(element), width = bytesOf(element);
  resident = with_queries || width * std::max(size, value_size) > 128;
  key = {0, kGradRows, size, padding};
  value = {key.elements(), kGradRows, value_size, padding};
  const int64_t pair = key.elements() + value.elements();
  const int64_t kept = resident ? pair : 0;
  // Scores of 64 queries leave too few registers for larger heads.
  const int64_t most = std::max(size, value_size) <= 32 ? 64 : 32;
  const std::pair<int64_t, int64_t> choices[] = {
      {most, 2}, {16, 2}, {32, 1}, {16, 1}};
  for (auto [rows, count] : choices) {
    query = {kept, rows, size, padding};
    given = {kept + query.elements(), rows, value_size, padding};
    buffer = query.elements() + given.elements();
    buffers = count;
    int64_t end =
        kept + (resident ? count * buffer : buffer + std::max(buffer, pair));
    grads = {end, kGradRows, rows, padding};
    if (with_queries) end += grads.elements();
    bytes = width * end;
    if (bytes <= kMostBytes) break;
  }
  if (resident) return;
  key.first += buffer;
  value.first += buffer;
}

GradMemory::GradMemory(nn::AttentionGradOp op, bool with_queries,
                       bool warpgroups) {
  const llvm::ArrayRef<int64_t> q = shapeOf(op.getQ());
  const int64_t pairs = q[0] * q[1];
  blocks = (q[2] + kGradRows - 1) / kGradRows;
  tile = warpgroups ? kGroupRows : KeysPlan(op, with_queries).query.rows;
  tiles = blocks * kGradRows / tile;
  statistics = pairs * blocks * kGradRows;
  sums = turns = floats = 2 * statistics;
  if (!with_queries) return;
  turns = sums + statistics * q[3];
  floats = turns + Turns::floats(pairs * tiles);
}

}  // namespace partita::kernels
