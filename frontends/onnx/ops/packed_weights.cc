// onnxruntime's products with packed weights (domain com.microsoft).
#include "frontends/onnx/ops/ops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace partita::onnx {
namespace {

bool isBytes(Val value) {
  return value.element().isInteger(8) && value.is_unsigned;
}

// Zero points [rows * ceil(blocks / 2)], two per byte, as [rows, blocks] of i8.
Val unpackZeros(Emitter& e, Val zeros, int64_t rows, int64_t blocks) {
  const ElementType i32{e.builder().getI32Type()};
  const int64_t bytes = zeros.size() / rows;
  const Val wide = e.cast(e.reshape(zeros, {rows, bytes, 1}), i32);
  const Val fifteen = e.splatLike(15, wide), low = e.bitAnd(wide, fifteen),
            high = e.bitAnd(
                e.binary<mlir::arith::ShRUIOp>(wide, e.splatLike(4, wide)),
                fifteen);
  const Val all =
      e.reshape(e.concat({low, high}, /*axis=*/2), {rows, 2 * bytes});
  return e.cast(e.sliceDim(all, 1, 0, blocks),
                ElementType{e.builder().getI8Type()});
}

// The matrix [n, k] of floats that the inputs hold in blocks.
FailureOr<Val> unpackMatrix(NodeContext& n, int64_t rows, int64_t depth,
                            int64_t block) {
  Emitter& e = n.e;
  // The sum of K and block_size may overflow.
  const int64_t blocks = depth / block + (depth % block == 0 ? 0 : 1);
  if (!builder::elementCount({rows, blocks, block}))
    return n.error("expected a matrix of at most 2^48 numbers, found N=" +
                   llvm::Twine(rows) + ", K=" + llvm::Twine(depth) +
                   " and block_size=" + llvm::Twine(block));
  Val packed = n.in(1), scale = n.in(2);
  if (packed.size() != rows * blocks * block / 2 || !isBytes(packed) ||
      scale.size() != rows * blocks || !scale.isFloat())
    return n.error("expected B of uint8 [" + llvm::Twine(rows) + ", " +
                   llvm::Twine(blocks) + ", " + llvm::Twine(block / 2) +
                   "] and as many scales as blocks, found " +
                   builder::toString(packed.elementType()) + " " +
                   toString(packed.shape()) + " and " +
                   toString(scale.shape()));
  packed = e.reshape(packed, {rows, blocks, block / 2});
  scale = e.cast(e.reshape(scale, {rows, blocks}), e.f32());
  Val zero;
  if (n.has(3)) {
    zero = n.in(3);
    const int64_t bytes = (blocks + 1) / 2;
    if (zero.isFloat()) return n.unsupported("zero_points of floats");
    if (!isBytes(zero))
      return n.error("expected zero_points of uint8, found " +
                     builder::toString(zero.elementType()));
    if (zero.size() != rows * bytes)
      return n.error("expected zero_points of " + llvm::Twine(rows * bytes) +
                     " bytes, found " + toString(zero.shape()));
    zero = unpackZeros(e, zero, rows, blocks);
  }
  // Not folded, however small: products read the packed numbers.
  const Val numbers = {nn::DequantizeOp::create(
      e.builder(), e.loc(), e.tensor({rows, blocks, block}, e.f32()),
      packed.value, scale.value, zero.value)};
  if (e.failed()) return failure();
  return e.sliceDim(e.reshape(numbers, {rows, blocks * block}), 1, 0, depth);
}

}  // namespace

LogicalResult importMatMulNBits(NodeContext& n) {
  const int64_t rows = n.attrInt("N", 0), depth = n.attrInt("K", 0),
                block = n.attrInt("block_size", 0);
  const Val x = n.in(0);
  if (n.attrInt("bits", 4) != 4)
    return n.unsupported("bits=" + std::to_string(n.attrInt("bits", 4)));
  if (n.has(4)) return n.unsupported("g_idx");
  if (rows < 1 || depth < 1 || block < 16 || (block & (block - 1)) != 0)
    return n.error(
        "expected positive N and K and a block_size that is a power of 2, 16 "
        "or more, found N=" +
        llvm::Twine(rows) + ", K=" + llvm::Twine(depth) +
        " and block_size=" + llvm::Twine(block));
  if (!x.isFloat() || x.rank() < 1 || x.dim(x.rank() - 1) != depth)
    return n.error("expected A of floats with K=" + llvm::Twine(depth) +
                   " as its last size, found " + toString(x.shape()));
  auto w = unpackMatrix(n, rows, depth, block);
  if (failed(w)) return failure();
  const ElementType type = x.elementType();
  Val y = n.e.dot(n.e.cast(x, n.e.f32()), *w, {}, {}, {x.rank() - 1}, {1});
  if (n.has(5)) y = n.e.add(y, n.e.cast(n.in(5), n.e.f32()));
  return n.result(n.e.cast(y, type));
}

}  // namespace partita::onnx
