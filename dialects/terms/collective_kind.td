// The enumeration of collective_kind.h as a TableGen attribute parameter. Each dialect wraps it in its own attribute. No C++ is generated from this
// file alone, because all dialects share the C++ type of the header; symbols_test.cc compares the two.
#ifndef PARTITA_DIALECTS_TERMS_COLLECTIVE_KIND_TD
#define PARTITA_DIALECTS_TERMS_COLLECTIVE_KIND_TD

include "mlir/IR/EnumAttr.td"

def Terms_CollectiveKind : I32EnumAttr<"CollectiveKind", "how tensors move between the devices of a group", [
    I32EnumAttrCase<"kAllReduce", 0, "all_reduce">, I32EnumAttrCase<"kAllGather", 1, "all_gather">,
    I32EnumAttrCase<"kReduceScatter", 2, "reduce_scatter">, I32EnumAttrCase<"kAllToAll", 3, "all_to_all">,
    I32EnumAttrCase<"kAllSlice", 4, "all_slice">, I32EnumAttrCase<"kExchange", 5, "exchange">,
    I32EnumAttrCase<"kPermute", 6, "permute">, I32EnumAttrCase<"kBroadcast", 7, "broadcast">,
    I32EnumAttrCase<"kSendRows", 8, "send_rows">, I32EnumAttrCase<"kReturnRows", 9, "return_rows">]> {
  let cppNamespace = "::partita::terms";
  let genSpecializedAttr = 0;
}

#endif  // PARTITA_DIALECTS_TERMS_COLLECTIVE_KIND_TD
