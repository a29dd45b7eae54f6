#include "frontends/stablehlo/names.h"

#include "llvm/ADT/StringExtras.h"

namespace partita::stablehlo {

std::string dottedPath(llvm::StringRef path) {
  std::string name;
  for (const char c : path) {
    if (llvm::isAlnum(c) || c == '_' || c == '-') {
      name += c;
    } else if (c == '[' || c == '.' || c == '/') {
      if (!name.empty() && name.back() != '.') name += '.';
    } else if (c != ']' && c != '\'' && c != '"' && c != '<' && c != '>') {
      name += '_';
    }
  }
  while (!name.empty() && name.back() == '.') name.pop_back();
  return name;
}

}  // namespace partita::stablehlo
