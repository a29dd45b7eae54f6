// The enumeration of activation.h as a parameter of attributes. Each dialect wraps it in an attribute of its own; C++ has one type for
// all dialects, so no C++ is generated from this file alone. symbols_test.cc compares it with the header.
#ifndef PARTITA_DIALECTS_TERMS_ACTIVATION_TD
#define PARTITA_DIALECTS_TERMS_ACTIVATION_TD

include "mlir/IR/EnumAttr.td"

def Terms_Activation : I32EnumAttr<"Activation", "what a library call applies to its result", [
    I32EnumAttrCase<"kNone", 0, "none">, I32EnumAttrCase<"kRelu", 1, "relu">, I32EnumAttrCase<"kGeluErf", 2, "gelu_erf">,
    I32EnumAttrCase<"kGeluTanh", 3, "gelu_tanh">, I32EnumAttrCase<"kSilu", 4, "silu">, I32EnumAttrCase<"kTanh", 5, "tanh">,
    I32EnumAttrCase<"kSigmoid", 6, "sigmoid">]> {
  let cppNamespace = "::partita::terms";
  let genSpecializedAttr = 0;
}

#endif  // PARTITA_DIALECTS_TERMS_ACTIVATION_TD
