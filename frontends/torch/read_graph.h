// Reads graphs and arguments from JSON.
#ifndef PARTITA_FRONTENDS_TORCH_READ_GRAPH_H_
#define PARTITA_FRONTENDS_TORCH_READ_GRAPH_H_

#include "frontends/torch/json_reader.h"
#include "frontends/torch/program.h"

namespace partita::torch {

bool readGraph(JsonReader& reader, const Json& json, Graph& graph);
bool readArgument(JsonReader& reader, const Json& json, Argument& argument);
bool readTensorMeta(JsonReader& reader, const Json& json, TensorMeta& meta);

}  // namespace partita::torch

#endif  // PARTITA_FRONTENDS_TORCH_READ_GRAPH_H_
