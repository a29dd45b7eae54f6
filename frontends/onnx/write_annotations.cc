// Copies all fields, and replaces references to the configuration in the model
// and in its graph's nodes.
#include "frontends/onnx/write_annotations.h"

#include <algorithm>
#include <set>
#include <vector>

#include "frontends/onnx/wire_writer.h"

namespace partita::onnx {
namespace {

// The first IR version with device configurations.
constexpr uint64_t kIrVersion = 11;

std::string encode(const ShardedDim& dim) {
  WireWriter message;
  message.varint(1, static_cast<uint64_t>(dim.axis));
  for (const SimpleSharding& factor : dim.factors) {
    WireWriter part;
    if (factor.size >= 0) part.varint(1, static_cast<uint64_t>(factor.size));
    if (!factor.param.empty()) part.bytes(2, factor.param);
    part.varint(3, static_cast<uint64_t>(factor.shards));
    message.bytes(2, part.encoded());
  }
  return message.encoded();
}

std::string encode(std::string_view tensor, const ShardingSpec& spec) {
  WireWriter message;
  message.bytes(1, tensor);
  for (int64_t device : spec.devices)
    message.varint(2, static_cast<uint64_t>(device));
  for (const auto& [key, members] : spec.groups) {
    WireWriter entry;
    entry.varint(1, static_cast<uint64_t>(key));
    for (int64_t device : members)
      entry.varint(2, static_cast<uint64_t>(device));
    message.bytes(3, entry.encoded());
  }
  for (const ShardedDim& dim : spec.dims) message.bytes(4, encode(dim));
  return message.encoded();
}

class Writer {
 public:
  Writer(const ModelAnnotations& annotations, WireError& error)
      : annotations_(annotations), error_(error) {}

  std::string model(std::string_view bytes) {
    WireWriter out;
    uint64_t version = kIrVersion;
    WireReader reader(bytes, 0, error_);
    for (Field field; reader.next(field);) {
      if (field.number == 1 && field.type == WireType::kVarint)
        version = std::max(version, field.value);
      else if (field.number == 7 && field.type == WireType::kBytes)
        out.bytes(7, graph(field));
      else if ((field.number != 26 || !isOurs(field)) &&
               (field.number != 14 || !isAttention(field)))
        out.copy(field);
    }
    out.varint(1, version);
    if (!annotations_.attention.empty()) {
      WireWriter entry;
      entry.bytes(1, attentionKey(annotations_.name));
      entry.bytes(2, annotations_.attention);
      out.bytes(14, entry.encoded());
    }
    WireWriter configuration;
    configuration.bytes(1, annotations_.name);
    configuration.varint(2, static_cast<uint64_t>(annotations_.num_devices));
    out.bytes(26, configuration.encoded());
    return out.encoded();
  }

  AnnotationCounts counts() const {
    AnnotationCounts counts = counts_;
    counts.tensors = static_cast<int64_t>(seen_.size());
    counts.annotated_tensors = std::count_if(
        seen_.begin(), seen_.end(), [&](const std::string& tensor) {
          return annotations_.tensors.count(tensor) > 0;
        });
    return counts;
  }

 private:
  // Both configuration messages begin with the name.
  bool isOurs(const Field& field) {
    return beginsWith(field, annotations_.name);
  }
  bool isAttention(const Field& field) {
    return beginsWith(field, attentionKey(annotations_.name));
  }
  bool beginsWith(const Field& field, std::string_view name) {
    if (field.type != WireType::kBytes) return false;
    WireReader reader(field.bytes, field.offset, error_);
    for (Field part; reader.next(part);)
      if (part.number == 1 && part.bytes == name) return true;
    return false;
  }

  std::string graph(const Field& field) {
    WireWriter out;
    WireReader reader(field.bytes, field.offset, error_);
    for (Field part; reader.next(part);) {
      if (part.number == 1 && part.type == WireType::kBytes)
        out.bytes(1, node(part));
      else
        out.copy(part);
    }
    return out.encoded();
  }

  std::string node(const Field& field) {
    WireWriter out;
    std::vector<std::string> inputs, outputs;
    WireReader reader(field.bytes, field.offset, error_);
    for (Field part; reader.next(part);) {
      if (part.number == 1) inputs.emplace_back(part.bytes);
      if (part.number == 2) outputs.emplace_back(part.bytes);
      if (part.number != 10 || !isOurs(part)) out.copy(part);
    }
    WireWriter configuration;
    configuration.bytes(1, annotations_.name);
    std::set<std::string> said;
    const std::string first = outputs.empty() ? std::string() : outputs[0];
    for (const std::vector<std::string>* names : {&inputs, &outputs})
      for (const std::string& tensor : *names) {
        if (tensor.empty() || !said.insert(tensor).second) continue;
        seen_.insert(tensor);
        if (const ShardingSpec* spec = find(first, tensor))
          configuration.bytes(2, encode(tensor, *spec));
        else
          said.erase(tensor);
      }
    ++counts_.nodes;
    if (said.empty()) return out.encoded();
    ++counts_.annotated_nodes;
    out.bytes(10, configuration.encoded());
    return out.encoded();
  }

  const ShardingSpec* find(const std::string& node,
                           const std::string& tensor) const {
    const auto use = annotations_.uses.find({node, tensor});
    if (use != annotations_.uses.end()) return &use->second;
    const auto own = annotations_.tensors.find(tensor);
    return own == annotations_.tensors.end() ? nullptr : &own->second;
  }

  const ModelAnnotations& annotations_;
  WireError& error_;
  AnnotationCounts counts_;
  std::set<std::string> seen_;
};

}  // namespace

std::string attentionKey(std::string_view configuration) {
  return "partita.attention." + std::string(configuration);
}

bool writeAnnotations(std::string_view bytes,
                      const ModelAnnotations& annotations, std::string& out,
                      AnnotationCounts& counts, WireError& error) {
  Writer writer(annotations, error);
  out = writer.model(bytes);
  counts = writer.counts();
  return !error.isSet();
}

}  // namespace partita::onnx
