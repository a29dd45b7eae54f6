// The enumeration that is dist's own; its C++ gets it from this file alone. Reductions are dialects/terms'.
#ifndef PARTITA_DIALECTS_DIST_ENUMS_TD
#define PARTITA_DIALECTS_DIST_ENUMS_TD

include "mlir/IR/EnumAttr.td"

def Dist_Direction : I32EnumAttr<"Direction", "where propagation may pass", [
    I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"forward", 1>, I32EnumAttrCase<"backward", 2>]> {
  let cppNamespace = "::partita::dist";
  let genSpecializedAttr = 0;
}

#endif  // PARTITA_DIALECTS_DIST_ENUMS_TD
