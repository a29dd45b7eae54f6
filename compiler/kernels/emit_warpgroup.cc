// Emits products of warpgroups: descriptors of tiles, and calls.
#include "compiler/kernels/emit_warpgroup.h"

#include "compiler/kernels/emit_team.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::kernels {

using namespace mlir;

namespace {

constexpr int64_t kRowBytes = 2 * kPanel;
constexpr int64_t kEightRows = 8 * kRowBytes;  // that the swizzle permutes
constexpr uint64_t kSwizzle128 = 1;

// Bytes from one panel to the next.
int64_t panelBytes(const Tile& tile) { return tile.rows * kRowBytes; }

}  // namespace

Warpgroup::Warpgroup(ImplicitLocOpBuilder& builder, Type element, Value base)
    : builder_(builder), element_(element), base_(base) {}

uint64_t Warpgroup::layout(int64_t leading, int64_t stride) const {
  return static_cast<uint64_t>(leading / 16) << 16 |
         static_cast<uint64_t>(stride / 16) << 32 | kSwizzle128 << 62;
}

Values Warpgroup::steps(Value shift, int64_t first, int64_t step,
                        uint64_t layout) {
  Type i64 = builder_.getI64Type();
  const auto constant = [&](uint64_t value) -> Value {
    return arith::ConstantOp::create(
        builder_, builder_.getIntegerAttr(i64, static_cast<int64_t>(value)));
  };
  Value at = callTarget(builder_, kSharedAddress, i64, base_)[0];
  if (shift) {
    Value bytes = arith::IndexCastOp::create(builder_, i64, shift);
    bytes = arith::MulIOp::create(builder_, bytes, constant(2));
    at = arith::AddIOp::create(builder_, at, bytes);
  }
  at = arith::AndIOp::create(builder_, at, constant(0x3ffff));
  at = arith::ShRUIOp::create(builder_, at, constant(4));
  at = arith::OrIOp::create(builder_, at, constant(layout));
  Values descriptors;
  for (int64_t i = 0; i < 4; ++i)
    descriptors.push_back(
        arith::AddIOp::create(builder_, at, constant((first + i * step) / 16)));
  return descriptors;
}

std::string Warpgroup::nameOf(StringRef function) const {
  return (function + (element_.isBF16() ? "_bf16" : "_f16")).str();
}

Values Warpgroup::call(const std::string& function, size_t sums,
                       ValueRange arguments) {
  const SmallVector<Type> types(sums,
                                VectorType::get({4}, builder_.getF32Type()));
  return Values(callTarget(builder_, function, types, arguments));
}

Values Warpgroup::timesTransposed(const Tile& left, int64_t row,
                                  const Tile& right, Value shift) {
  // Columns are contiguous; the leading offset has no meaning.
  const uint64_t rows = layout(16, kEightRows);
  Values sums;
  for (int64_t panel = 0; panel < left.columns / kPanel; ++panel) {
    const int64_t first_left = 2 * left.first + panel * panelBytes(left) +
                               row * kRowBytes,
                  first_right = 2 * right.first + panel * panelBytes(right);
    Values arguments = steps(Value(), first_left, 32, rows);
    llvm::append_range(arguments, steps(shift, first_right, 32, rows));
    llvm::append_range(arguments, sums);
    sums = call(nameOf(panel == 0 ? kGroupStart : kGroupAdd), right.rows / 8,
                arguments);
  }
  return sums;
}

Values Warpgroup::addTimes(ArrayRef<Fragment> left, const Tile& right,
                           Value shift, ArrayRef<Value> sums) {
  Values arguments;
  for (const Fragment& fragment : left) arguments.push_back(fragment.halves[0]);
  // The sum runs over rows. The offsets are from 64 columns to the next, and
  // from 8 rows to the next.
  llvm::append_range(arguments, steps(shift, 2 * right.first, 2 * kEightRows,
                                      layout(panelBytes(right), kEightRows)));
  llvm::append_range(arguments, sums);
  return call(nameOf(kGroupAddTimes) + "_" + std::to_string(right.columns),
              sums.size(), arguments);
}

Values Warpgroup::addTiles(const Side& left, int64_t band, const Side& right,
                           Value shift, ArrayRef<Value> sums) {
  const auto stepsOf = [&](const Side& side, int64_t rows) {
    const int64_t first = 2 * side.tile.first;
    // Down a tile, the next 64 rows of the operand are the next panel.
    return side.down ? steps(shift, first + rows * panelBytes(side.tile),
                             2 * kEightRows,
                             layout(panelBytes(side.tile), kEightRows))
                     : steps(shift, first + rows * kGroupRows * kRowBytes, 32,
                             layout(16, kEightRows));
  };
  Values arguments = stepsOf(left, band);
  llvm::append_range(arguments, stepsOf(right, 0));
  for (bool down : {left.down, right.down})
    arguments.push_back(
        arith::ConstantOp::create(builder_, builder_.getI32IntegerAttr(down)));
  llvm::append_range(arguments, sums);
  return call(nameOf(kGroupAddTiles) + "_" + std::to_string(8 * sums.size()),
              sums.size(), arguments);
}

void Warpgroup::commit() {
  callTarget(builder_, kGroupCommit, TypeRange(), {});
}

Values Warpgroup::wait(int64_t pending, ArrayRef<Value> sums) {
  Values arguments = {arith::ConstantOp::create(
      builder_, builder_.getI32IntegerAttr(static_cast<int32_t>(pending)))};
  llvm::append_range(arguments, sums);
  return call(std::string(kGroupWait) + "_" + std::to_string(8 * sums.size()),
              sums.size(), arguments);
}

}  // namespace partita::kernels
