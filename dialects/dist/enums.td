// The enumeration that only dist uses; its C++ is generated from this file alone. Reductions are defined in dialects/terms.
#ifndef PARTITA_DIALECTS_DIST_ENUMS_TD
#define PARTITA_DIALECTS_DIST_ENUMS_TD

include "mlir/IR/EnumAttr.td"

def Dist_Direction : I32EnumAttr<"Direction", "directions in which propagation may pass", [
    I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"forward", 1>, I32EnumAttrCase<"backward", 2>]> {
  let cppNamespace = "::partita::dist";
  let genSpecializedAttr = 0;
}

#endif  // PARTITA_DIALECTS_DIST_ENUMS_TD
