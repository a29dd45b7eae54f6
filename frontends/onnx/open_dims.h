// Finds the sizes that a model leaves open.
#ifndef PARTITA_FRONTENDS_ONNX_OPEN_DIMS_H_
#define PARTITA_FRONTENDS_ONNX_OPEN_DIMS_H_

#include <string>
#include <vector>

#include "frontends/onnx/model.h"

namespace partita::onnx {

// The name of an input's dimension: its name in the file, or the input's name
// and the dimension's index ("x.0").
std::string dimName(const ValueInfo& input, size_t i);

// The names of all input dimensions without a size, in order and without
// duplicates.
std::vector<std::string> openDims(const Graph& graph);
// The same for the model in a file. Empty if the file cannot be read; the
// import reports that error.
std::vector<std::string> openDims(const std::string& path);

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_OPEN_DIMS_H_
