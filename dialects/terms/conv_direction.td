// The enumeration of conv_direction.h as a TableGen attribute parameter. Each dialect wraps it in its own attribute. No C++ is generated from this
// file alone, because all dialects share the C++ type of the header; symbols_test.cc compares the two.
#ifndef PARTITA_DIALECTS_TERMS_CONV_DIRECTION_TD
#define PARTITA_DIALECTS_TERMS_CONV_DIRECTION_TD

include "mlir/IR/EnumAttr.td"

def Terms_ConvDirection : I32EnumAttr<"ConvDirection", "the tensor of a convolution that a library call computes", [
    I32EnumAttrCase<"kForward", 0, "forward">, I32EnumAttrCase<"kInputGrad", 1, "input_grad">,
    I32EnumAttrCase<"kWeightGrad", 2, "weight_grad">]> {
  let cppNamespace = "::partita::terms";
  let genSpecializedAttr = 0;
}

#endif  // PARTITA_DIALECTS_TERMS_CONV_DIRECTION_TD
