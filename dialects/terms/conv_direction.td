// The enumeration of conv_direction.h as a parameter of attributes. Each dialect wraps it in an attribute of its own; C++ has one type for
// all dialects, so no C++ is generated from this file alone. symbols_test.cc compares it with the header.
#ifndef PARTITA_DIALECTS_TERMS_CONV_DIRECTION_TD
#define PARTITA_DIALECTS_TERMS_CONV_DIRECTION_TD

include "mlir/IR/EnumAttr.td"

def Terms_ConvDirection : I32EnumAttr<"ConvDirection", "which of a convolution's three tensors a library call computes", [
    I32EnumAttrCase<"kForward", 0, "forward">, I32EnumAttrCase<"kInputGrad", 1, "input_grad">,
    I32EnumAttrCase<"kWeightGrad", 2, "weight_grad">]> {
  let cppNamespace = "::partita::terms";
  let genSpecializedAttr = 0;
}

#endif  // PARTITA_DIALECTS_TERMS_CONV_DIRECTION_TD
