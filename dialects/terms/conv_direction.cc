// Names of convolution directions.
#include "dialects/terms/conv_direction.h"

namespace partita::terms {

const char* NameOf(ConvDirection direction) {
  switch (direction) {
    case ConvDirection::kForward:
      return "forward";
    case ConvDirection::kInputGrad:
      return "input_grad";
    case ConvDirection::kWeightGrad:
      return "weight_grad";
  }
  return "";
}

}  // namespace partita::terms
