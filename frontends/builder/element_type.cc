#include "frontends/builder/element_type.h"

#include "llvm/Support/raw_ostream.h"

namespace partita::builder {

std::string toString(ElementType type) {
  if (!type.type) return "an unknown type";
  if (type.type.isInteger(1)) return "bool";
  std::string text;
  llvm::raw_string_ostream(text) << type.type;
  if (type.is_unsigned) text.front() = 'u';
  return text;
}

std::optional<uint64_t> elementCount(llvm::ArrayRef<int64_t> dims) {
  uint64_t count = 1;
  bool is_empty = false;
  for (int64_t dim : dims) {
    if (dim < 0) return std::nullopt;
    if (dim == 0) {
      is_empty = true;
    } else if (count > (uint64_t{1} << 48) / static_cast<uint64_t>(dim)) {
      return std::nullopt;
    } else {
      count *= dim;
    }
  }
  return is_empty ? 0 : count;
}

}  // namespace partita::builder
