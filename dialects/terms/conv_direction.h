// Which of a convolution's three tensors is computed.
#ifndef PARTITA_DIALECTS_TERMS_CONV_DIRECTION_H_
#define PARTITA_DIALECTS_TERMS_CONV_DIRECTION_H_

#include <cstdint>

namespace partita::terms {

// kForward the output, the others a gradient of the loss: of the input or of
// the weight.
enum class ConvDirection : uint32_t { kForward, kInputGrad, kWeightGrad };

// All values, in the order of their numbers.
inline constexpr ConvDirection kConvDirections[] = {ConvDirection::kForward,
                                                    ConvDirection::kInputGrad,
                                                    ConvDirection::kWeightGrad};

// The name in IR and in programs, e.g. "input_grad".
const char* NameOf(ConvDirection direction);

}  // namespace partita::terms

#endif  // PARTITA_DIALECTS_TERMS_CONV_DIRECTION_H_
