// The tensor that a convolution call computes.
#ifndef PARTITA_DIALECTS_TERMS_CONV_DIRECTION_H_
#define PARTITA_DIALECTS_TERMS_CONV_DIRECTION_H_

#include <cstdint>

namespace partita::terms {

// kForward computes the output; the others the gradient of the loss with
// respect to the input or the weight.
enum class ConvDirection : uint32_t { kForward, kInputGrad, kWeightGrad };

// All values in numeric order.
inline constexpr ConvDirection kConvDirections[] = {ConvDirection::kForward,
                                                    ConvDirection::kInputGrad,
                                                    ConvDirection::kWeightGrad};

// The name in IR and in programs, e.g. "input_grad".
const char* NameOf(ConvDirection direction);

}  // namespace partita::terms

#endif  // PARTITA_DIALECTS_TERMS_CONV_DIRECTION_H_
