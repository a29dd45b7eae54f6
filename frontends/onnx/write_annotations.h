// Adds device annotations to an ONNX file, in the form that annotations.h
// reads.
#ifndef PARTITA_FRONTENDS_ONNX_WRITE_ANNOTATIONS_H_
#define PARTITA_FRONTENDS_ONNX_WRITE_ANNOTATIONS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "frontends/onnx/device_configuration.h"

namespace partita::onnx {

// The key in a model's metadata under which a configuration has the plan's
// `attention`, for which ONNX has no words.
std::string attentionKey(std::string_view configuration);

// The annotations of a model's tensors. The tensor name inside each spec is
// ignored.
struct ModelAnnotations {
  std::string name;  // name of the configuration
  int64_t num_devices = 0;
  std::string attention;  // a plan's `attention`; empty: none
  std::map<std::string, ShardingSpec, std::less<>> tensors;
  // Shardings of uses that differ from the tensor's own, by (first output of
  // the node, input).
  std::map<std::pair<std::string, std::string>, ShardingSpec> uses;
};

// Counts of annotated nodes and tensors, and totals.
struct AnnotationCounts {
  int64_t nodes = 0, annotated_nodes = 0;
  int64_t tensors = 0, annotated_tensors = 0;  // tensors of the nodes, each
                                               // counted once
};

// Returns the file's bytes with a configuration of that name on every node of
// the graph (not of functions and branches) that has an annotated tensor. The
// IR version becomes at least 11. An existing configuration of the same name is
// replaced; everything else is unchanged. Fails with `error` set if `bytes` is
// not a model.
bool writeAnnotations(std::string_view bytes,
                      const ModelAnnotations& annotations, std::string& out,
                      AnnotationCounts& counts, WireError& error);

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_WRITE_ANNOTATIONS_H_
