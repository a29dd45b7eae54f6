// The enumeration of reduction.h as a TableGen attribute parameter. Each dialect wraps it in its own attribute. No C++ is generated from this
// file alone, because all dialects share the C++ type of the header; symbols_test.cc compares the two.
#ifndef PARTITA_DIALECTS_TERMS_REDUCTION_TD
#define PARTITA_DIALECTS_TERMS_REDUCTION_TD

include "mlir/IR/EnumAttr.td"

def Terms_Reduction : I32EnumAttr<"Reduction", "how the elements of several devices are combined", [
    I32EnumAttrCase<"kSum", 0, "sum">, I32EnumAttrCase<"kProduct", 1, "prod">, I32EnumAttrCase<"kMax", 2, "max">,
    I32EnumAttrCase<"kMin", 3, "min">, I32EnumAttrCase<"kAny", 4, "any">, I32EnumAttrCase<"kAll", 5, "all">]> {
  let cppNamespace = "::partita::terms";
  let genSpecializedAttr = 0;
}

#endif  // PARTITA_DIALECTS_TERMS_REDUCTION_TD
