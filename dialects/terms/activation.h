// Activations that a library call applies to its result.
#ifndef PARTITA_DIALECTS_TERMS_ACTIVATION_H_
#define PARTITA_DIALECTS_TERMS_ACTIVATION_H_

#include <cstdint>

namespace partita::terms {

// kGeluErf is x * Phi(x), and kGeluTanh its approximation with tanh; kSilu is x
// * sigmoid(x); kRelu6 is min(relu(x), 6), and kHardSwish x * relu6(x + 3) / 6.
enum class Activation : uint32_t {
  kNone,
  kRelu,
  kGeluErf,
  kGeluTanh,
  kSilu,
  kTanh,
  kSigmoid,
  kRelu6,
  kHardSwish
};

// All values in numeric order.
inline constexpr Activation kActivations[] = {
    Activation::kNone,     Activation::kRelu,  Activation::kGeluErf,
    Activation::kGeluTanh, Activation::kSilu,  Activation::kTanh,
    Activation::kSigmoid,  Activation::kRelu6, Activation::kHardSwish};

// The name in IR and in programs, e.g. "gelu_tanh".
const char* NameOf(Activation activation);

}  // namespace partita::terms

#endif  // PARTITA_DIALECTS_TERMS_ACTIVATION_H_
