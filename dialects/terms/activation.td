// The enumeration of activation.h as a TableGen attribute parameter. Each dialect wraps it in its own attribute. No C++ is generated from this
// file alone, because all dialects share the C++ type of the header; symbols_test.cc compares the two.
#ifndef PARTITA_DIALECTS_TERMS_ACTIVATION_TD
#define PARTITA_DIALECTS_TERMS_ACTIVATION_TD

include "mlir/IR/EnumAttr.td"

def Terms_Activation : I32EnumAttr<"Activation", "activation that a library call applies to its result", [
    I32EnumAttrCase<"kNone", 0, "none">, I32EnumAttrCase<"kRelu", 1, "relu">, I32EnumAttrCase<"kGeluErf", 2, "gelu_erf">,
    I32EnumAttrCase<"kGeluTanh", 3, "gelu_tanh">, I32EnumAttrCase<"kSilu", 4, "silu">, I32EnumAttrCase<"kTanh", 5, "tanh">,
    I32EnumAttrCase<"kSigmoid", 6, "sigmoid">, I32EnumAttrCase<"kRelu6", 7, "relu6">, I32EnumAttrCase<"kHardSwish", 8, "hard_swish">]> {
  let cppNamespace = "::partita::terms";
  let genSpecializedAttr = 0;
}

#endif  // PARTITA_DIALECTS_TERMS_ACTIVATION_TD
