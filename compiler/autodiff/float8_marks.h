// Marks on the products whose factors are rounded to 8 bits. They live from
// `choose_float8_products.cc` to `round_float8_factors.cc`; gradients are made
// in between.
#ifndef PARTITA_COMPILER_AUTODIFF_FLOAT8_MARKS_H_
#define PARTITA_COMPILER_AUTODIFF_FLOAT8_MARKS_H_

namespace partita::autodiff {

// String on nn.dot_general: one of the three below.
inline constexpr char kFloat8Attr[] = "nn.float8";

// A product of the model: both factors are e4m3.
inline constexpr char kFloat8Forward[] = "forward";

// A product of a gradient, which is lhs or rhs: this factor is e5m2.
inline constexpr char kFloat8GradientLhs[] = "gradient_lhs";
inline constexpr char kFloat8GradientRhs[] = "gradient_rhs";

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_FLOAT8_MARKS_H_
