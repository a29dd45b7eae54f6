// The enumeration of collective_kind.h as a parameter of attributes. Each dialect wraps it in an attribute of its own; C++ has one type for
// all dialects, so no C++ is generated from this file alone. symbols_test.cc compares it with the header.
#ifndef PARTITA_DIALECTS_TERMS_COLLECTIVE_KIND_TD
#define PARTITA_DIALECTS_TERMS_COLLECTIVE_KIND_TD

include "mlir/IR/EnumAttr.td"

def Terms_CollectiveKind : I32EnumAttr<"CollectiveKind", "what moves between the devices of a group", [
    I32EnumAttrCase<"kAllReduce", 0, "all_reduce">, I32EnumAttrCase<"kAllGather", 1, "all_gather">,
    I32EnumAttrCase<"kReduceScatter", 2, "reduce_scatter">, I32EnumAttrCase<"kAllToAll", 3, "all_to_all">,
    I32EnumAttrCase<"kAllSlice", 4, "all_slice">, I32EnumAttrCase<"kExchange", 5, "exchange">,
    I32EnumAttrCase<"kPermute", 6, "permute">, I32EnumAttrCase<"kBroadcast", 7, "broadcast">]> {
  let cppNamespace = "::partita::terms";
  let genSpecializedAttr = 0;
}

#endif  // PARTITA_DIALECTS_TERMS_COLLECTIVE_KIND_TD
