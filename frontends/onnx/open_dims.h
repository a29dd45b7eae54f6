// Which sizes a model leaves open.
#ifndef PARTITA_FRONTENDS_ONNX_OPEN_DIMS_H_
#define PARTITA_FRONTENDS_ONNX_OPEN_DIMS_H_

#include <string>
#include <vector>

#include "frontends/onnx/model.h"

namespace partita::onnx {

// What a dimension of an input is called: its name in the file, or the input's
// and its place ("x.0").
std::string dimName(const ValueInfo& input, size_t i);

// The names of all dimensions of inputs without a size, each once, in order.
std::vector<std::string> openDims(const Graph& graph);
// Of the model in a file; empty where it cannot be read, which an import says.
std::vector<std::string> openDims(const std::string& path);

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_OPEN_DIMS_H_
