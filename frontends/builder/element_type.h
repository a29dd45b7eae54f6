// Element types of imported tensors, and checks of shapes that files give.
#ifndef PARTITA_FRONTENDS_BUILDER_ELEMENT_TYPE_H_
#define PARTITA_FRONTENDS_BUILDER_ELEMENT_TYPE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "mlir/IR/BuiltinTypes.h"

namespace partita::builder {

// An element type. Integers in nn are signless, so `is_unsigned` holds the
// sign.
struct ElementType {
  mlir::Type type;  // null: nn has no such type (strings, complex numbers)
  bool is_unsigned = false;

  bool operator==(const ElementType& other) const {
    return type == other.type && is_unsigned == other.is_unsigned;
  }
};

// E.g. "f32", "i64", "u8" or "bool".
std::string toString(ElementType type);

// The number of elements of a shape. Nothing if a size is negative or the
// product is 2^48 or more.
std::optional<uint64_t> elementCount(llvm::ArrayRef<int64_t> dims);

}  // namespace partita::builder

#endif  // PARTITA_FRONTENDS_BUILDER_ELEMENT_TYPE_H_
