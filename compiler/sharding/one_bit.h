// Packs tensors to one bit per element and a scale per chunk.
#ifndef PARTITA_COMPILER_SHARDING_ONE_BIT_H_
#define PARTITA_COMPILER_SHARDING_ONE_BIT_H_

#include <cstdint>

#include "dialects/nn/math_builder.h"

namespace partita::sharding {

// Signs and scales of tensors [..., chunk, element].
class OneBit {
 public:
  // `elements` is the total number, divided into `count` chunks.
  OneBit(mlir::OpBuilder& builder, mlir::Location loc, int64_t elements,
         int64_t count)
      : builder_(builder),
        loc_(loc),
        math_(builder, loc),
        elements_(elements),
        count_(count),
        chunk_(chunkOf(elements, count)) {}

  // Returns the elements per chunk, rounded up to whole words.
  static int64_t chunkOf(int64_t elements, int64_t count);
  int64_t chunk() const { return chunk_; }

  struct Packed {
    mlir::Value words;  // [..., chunk, word], i32; a set bit is a value >= 0
    mlir::Value scale;  // [..., chunk]
  };

  // Packs x; sets `error` to x minus its compressed value. x must be 0 in the
  // padding.
  Packed pack(mlir::Value x, mlir::Value& error);
  mlir::Value unpack(const Packed& packed);
  // Sets the padding to zero.
  mlir::Value inside(mlir::Value x);

 private:
  // Returns the type [..., chunk, word, bit].
  mlir::RankedTensorType bitsOf(mlir::RankedTensorType type);
  mlir::Value powers(mlir::RankedTensorType bits);
  // Returns the number of elements per chunk; 1 for chunks of padding alone, to
  // avoid a division by zero.
  mlir::Value sizes();
  mlir::Value signedScale(mlir::Value positive, mlir::Value scale);

  mlir::OpBuilder& builder_;
  const mlir::Location loc_;
  nn::MathBuilder math_;
  const int64_t elements_, count_, chunk_;
};

}  // namespace partita::sharding

#endif  // PARTITA_COMPILER_SHARDING_ONE_BIT_H_
