// Mixtures of experts and grouped products whose gradients are tested.
#ifndef PARTITA_COMPILER_AUTODIFF_EXPERT_CASES_FIXTURE_H_
#define PARTITA_COMPILER_AUTODIFF_EXPERT_CASES_FIXTURE_H_

#include <vector>

#include "compiler/autodiff/gradient_fixture.h"

namespace partita::autodiff {

// Indices from 0 to 9: those from the number of matrices on contribute 0.
inline std::vector<Case> expertCases() {
  return {
      {{"tensor<7x3xf64>", "tensor<7xi64>", "tensor<6x4x3xf64>"},
       {"tensor<7x4xf64>"},
       "%r = nn.grouped_dot %a[%b], %c : tensor<7x3xf64>, tensor<7xi64>, "
       "tensor<6x4x3xf64> -> tensor<7x4xf64>"},
      {{"tensor<7x3xf64>", "tensor<7xi64>", "tensor<6x3x4xf64>"},
       {"tensor<7x4xf64>"},
       "%r = nn.grouped_dot %a[%b], %c transposed : tensor<7x3xf64>, "
       "tensor<7xi64>, tensor<6x3x4xf64> -> tensor<7x4xf64>"},
      {{"tensor<2x3x2xf64>", "tensor<2x3x2xi64>", "tensor<2x3x2xf64>",
        "tensor<7x3x2xf64>", "tensor<7x3x2xf64>", "tensor<7x2x3xf64>"},
       {"tensor<2x3x2xf64>"},
       "%r = nn.experts %a[%b], %c gate(%d : tensor<7x3x2xf64>) up(%e : "
       "tensor<7x3x2xf64>) down(%f : tensor<7x2x3xf64>) activation = silu : "
       "tensor<2x3x2xf64>, tensor<2x3x2xi64>, tensor<2x3x2xf64> -> "
       "tensor<2x3x2xf64>",
       -1,
       1},
      {{"tensor<4x2xf64>", "tensor<4x2xi64>", "tensor<4x2xf64>",
        "tensor<7x2x2xf64>", "tensor<7x2x2xf64>", "tensor<7x3x2xf64>",
        "tensor<7x2xf64>", "tensor<7x2xf64>", "tensor<7x3xf64>"},
       {"tensor<4x3xf64>"},
       "%r = nn.experts %a[%b], %c gate(%d : tensor<7x2x2xf64>) up(%e : "
       "tensor<7x2x2xf64>) down(%f : tensor<7x3x2xf64>) gate_bias(%g : "
       "tensor<7x2xf64>) up_bias(%h : tensor<7x2xf64>) down_bias(%i : "
       "tensor<7x3xf64>) activation = gelu_tanh : tensor<4x2xf64>, "
       "tensor<4x2xi64>, tensor<4x2xf64> -> tensor<4x3xf64>",
       -1,
       1},
      {{"tensor<4x3xf64>", "tensor<4x1xi64>", "tensor<4x1xf64>",
        "tensor<5x2x3xf64>", "tensor<5x3x2xf64>", "tensor<5x2xf64>",
        "tensor<5x3xf64>"},
       {"tensor<4x3xf64>"},
       "%r = nn.experts %a[%b], %c up(%d : tensor<5x2x3xf64>) down(%e : "
       "tensor<5x3x2xf64>) up_bias(%f : tensor<5x2xf64>) down_bias(%g : "
       "tensor<5x3xf64>) activation = gelu : tensor<4x3xf64>, "
       "tensor<4x1xi64>, tensor<4x1xf64> -> tensor<4x3xf64>",
       -1,
       1},
      {{"tensor<4x3xf64>", "tensor<4x2xi64>", "tensor<4x2xf64>",
        "tensor<8x4x3xf64>", "tensor<8x3x4xf64>"},
       {"tensor<4x3xf64>"},
       "%r = nn.experts %a[%b], %c up(%d : tensor<8x4x3xf64>) down(%e : "
       "tensor<8x3x4xf64>) activation = relu : tensor<4x3xf64>, "
       "tensor<4x2xi64>, tensor<4x2xf64> -> tensor<4x3xf64>",
       -1,
       1},
  };
}

}  // namespace partita::autodiff

#endif  // PARTITA_COMPILER_AUTODIFF_EXPERT_CASES_FIXTURE_H_
