// The enumerations that are exec's own; its C++ gets them from this file alone. What collectives do is said in dialects/terms.
#ifndef PARTITA_DIALECTS_EXEC_ENUMS_TD
#define PARTITA_DIALECTS_EXEC_ENUMS_TD

include "mlir/IR/EnumAttr.td"

def Exec_Activation : I32EnumAttr<"Activation", "what a library call applies to its result", [
    I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"relu", 1>, I32EnumAttrCase<"gelu_erf", 2>, I32EnumAttrCase<"gelu_tanh", 3>,
    I32EnumAttrCase<"silu", 4>, I32EnumAttrCase<"tanh", 5>, I32EnumAttrCase<"sigmoid", 6>]> {
  let cppNamespace = "::partita::exec";
  let genSpecializedAttr = 0;
}

def Exec_ConvDirection : I32EnumAttr<"ConvDirection", "which of a convolution's three tensors a library call computes", [
    I32EnumAttrCase<"forward", 0>, I32EnumAttrCase<"input_grad", 1>, I32EnumAttrCase<"weight_grad", 2>]> {
  let cppNamespace = "::partita::exec";
  let genSpecializedAttr = 0;
}

#endif  // PARTITA_DIALECTS_EXEC_ENUMS_TD
