// Names of activations.
#include "dialects/terms/activation.h"

namespace partita::terms {

const char* NameOf(Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return "none";
    case Activation::kRelu:
      return "relu";
    case Activation::kGeluErf:
      return "gelu_erf";
    case Activation::kGeluTanh:
      return "gelu_tanh";
    case Activation::kSilu:
      return "silu";
    case Activation::kTanh:
      return "tanh";
    case Activation::kSigmoid:
      return "sigmoid";
    case Activation::kRelu6:
      return "relu6";
    case Activation::kHardSwish:
      return "hard_swish";
  }
  return "";
}

}  // namespace partita::terms
