// Derives names of layer functions from exporters' names of operations. Works
// on plain strings.
#ifndef PARTITA_COMPILER_SIMPLIFY_LAYER_NAMES_H_
#define PARTITA_COMPILER_SIMPLIFY_LAYER_NAMES_H_

#include <string>
#include <utility>
#include <vector>

namespace partita::simplify {

// Returns a name for a function. `names` holds the names of corresponding
// operations in its first and second use, such as "/model/h.0/mlp/Add" and
// "/model/h.1/mlp/Add" (dots may replace slashes). The result is the word that
// most pairs number, here "h". A general word is prefixed by the word before
// it: "encoder_layer". Returns "layer" if the names have no number.
std::string layerName(
    const std::vector<std::pair<std::string, std::string>>& names);

}  // namespace partita::simplify

#endif  // PARTITA_COMPILER_SIMPLIFY_LAYER_NAMES_H_
