// Names for layer functions, from the names that exporters gave operations.
// Plain strings.
#ifndef PARTITA_COMPILER_SIMPLIFY_LAYER_NAMES_H_
#define PARTITA_COMPILER_SIMPLIFY_LAYER_NAMES_H_

#include <string>
#include <utility>
#include <vector>

namespace partita::simplify {

// A name for the function of which these are the names of corresponding
// operations in its first and second use, such as "/model/h.0/mlp/Add" and
// "/model/h.1/mlp/Add" (or with dots for slashes): what most of them count,
// here "h". General words get the word before them: "encoder_layer". "layer"
// where the names say nothing.
std::string layerName(
    const std::vector<std::pair<std::string, std::string>>& names);

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_LAYER_NAMES_H_
