// Writes an ONNX file again, with device annotations: what annotations.h reads.
#ifndef PARTITA_FRONTENDS_ONNX_WRITE_ANNOTATIONS_H_
#define PARTITA_FRONTENDS_ONNX_WRITE_ANNOTATIONS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "frontends/onnx/device_configuration.h"

namespace partita::onnx {

// What is to be said of a model's tensors. A spec's own name of the tensor does
// not count.
struct ModelAnnotations {
  std::string name;  // of the configuration
  int64_t num_devices = 0;
  std::map<std::string, ShardingSpec, std::less<>> tensors;
  // Where a node uses an input otherwise: by the node's first output and the
  // input.
  std::map<std::pair<std::string, std::string>, ShardingSpec> uses;
};

// What was written and what was not.
struct AnnotationCounts {
  int64_t nodes = 0, annotated_nodes = 0;
  int64_t tensors = 0, annotated_tensors = 0;  // of the nodes, each once
};

// The bytes of the file with a configuration of that name, on every node of the
// graph (not of functions and branches) that has such a tensor, and IR version
// 11 at least. A configuration of the same name that it had is replaced; all
// else stays as it is. False with `error` set if `bytes` is no model.
bool writeAnnotations(std::string_view bytes,
                      const ModelAnnotations& annotations, std::string& out,
                      AnnotationCounts& counts, WireError& error);

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_WRITE_ANNOTATIONS_H_
