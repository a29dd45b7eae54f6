// Matches numbers that DequantizeLinear computes from integers of 8 bits.
#ifndef PARTITA_COMPILER_SIMPLIFY_DEQUANTIZED_H_
#define PARTITA_COMPILER_SIMPLIFY_DEQUANTIZED_H_

#include <optional>

#include "compiler/simplify/view.h"

namespace partita::simplify {

// scale * (integer - zero)
struct Dequantized {
  mlir::Value integer;  // of i8
  bool is_unsigned = false;
  // One element of i32, perhaps a larger constant that repeats it; null: 0.
  mlir::Value zero;
  mlir::Value steps;  // integer - zero, as floats of f32
  View scale;
};

// Matches integer - zero as f32; leaves `scale` alone.
bool matchSteps(mlir::Value value, Dequantized& found);

std::optional<Dequantized> matchDequantized(mlir::Value value);

// A large constant that repeats one number as one element; other values as they
// are.
mlir::Value shrunk(mlir::OpBuilder& builder, mlir::Location loc,
                   mlir::Value value);

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_DEQUANTIZED_H_
