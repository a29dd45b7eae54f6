// Names of reductions.
#include "dialects/terms/reduction.h"

namespace partita::terms {

const char* NameOf(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return "sum";
    case Reduction::kProduct:
      return "prod";
    case Reduction::kMax:
      return "max";
    case Reduction::kMin:
      return "min";
    case Reduction::kAny:
      return "any";
    case Reduction::kAll:
      return "all";
  }
  return "";
}

}  // namespace partita::terms
