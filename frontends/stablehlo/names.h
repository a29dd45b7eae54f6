// Names of arguments and results from paths in pytrees.
#ifndef PARTITA_FRONTENDS_STABLEHLO_NAMES_H_
#define PARTITA_FRONTENDS_STABLEHLO_NAMES_H_

#include <string>

#include "llvm/ADT/StringRef.h"

namespace partita::stablehlo {

// A path as JAX prints it, with dots: "p['blocks'][0]['w']" is "p.blocks.0.w",
// and "state.params['w']" is "state.params.w". Other characters than letters,
// digits and ._- become "_".
std::string dottedPath(llvm::StringRef path);

}  // namespace partita::stablehlo

#endif  // PARTITA_FRONTENDS_STABLEHLO_NAMES_H_
