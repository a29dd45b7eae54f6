// Computes shards, their safetensors headers, and the indexes.
#include "runtime/checkpoint/layout.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/tensor_parts.h"

namespace partita::checkpoint {
namespace {

using base::DType;

const char* StoredName(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "F32";
    case DType::kF64:
      return "F64";
    case DType::kF16:
      return "F16";
    case DType::kBF16:
      return "BF16";
    case DType::kI1:
      return "BOOL";
    case DType::kI8:
      return "I8";
    case DType::kI16:
      return "I16";
    case DType::kI32:
      return "I32";
    case DType::kI64:
      return "I64";
    case DType::kU8:
      return "U8";
    case DType::kU16:
      return "U16";
    case DType::kU32:
      return "U32";
    case DType::kU64:
      return "U64";
    case DType::kF8E4M3:
      return "F8_E4M3";
    case DType::kF8E5M2:
      return "F8_E5M2";
  }
  return "";
}

std::string Dump(const nlohmann::json& json, int indent) {
  return json.dump(indent, ' ', false,
                   nlohmann::json::error_handler_t::replace);
}

// The tensors of an entry in the files.
std::vector<base::TensorSpec> TensorsOf(const Entry& entry) {
  if (entry.in_parts && !entry.spec.shape.empty())
    return base::PartsOf(entry.spec);
  return {entry.spec};
}

absl::Status CheckEntries(const std::vector<Entry>& entries) {
  std::set<std::string> names;
  for (const Entry& entry : entries) {
    const base::TensorSpec& spec = entry.spec;
    if (!base::ByteCount(spec.dtype, spec.shape))
      return absl::InvalidArgumentError(
          absl::StrCat("checkpoint: tensor '", spec.name,
                       "': expected a size below 2^63 bytes, found ",
                       base::TypeName(spec.dtype, spec.shape)));
    for (const base::TensorSpec& tensor : TensorsOf(entry)) {
      const bool is_reserved = tensor.name == "__metadata__";
      if (is_reserved || !names.insert(tensor.name).second)
        return absl::InvalidArgumentError(absl::StrCat(
            "checkpoint: expected another name for each tensor, found '",
            tensor.name, "' ", is_reserved ? "(reserved)" : "twice",
            "; name the model's weights differently"));
    }
  }
  return absl::OkStatus();
}

int64_t BytesOf(const Entry& entry) {
  return *base::ByteCount(entry.spec.dtype, entry.spec.shape);
}

// Entries of a group, divided into files.
std::vector<std::vector<size_t>> CutShards(const std::vector<Entry>& entries,
                                           Group group, int64_t shard_bytes) {
  std::vector<std::vector<size_t>> shards;
  int64_t used = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].group != group) continue;
    const int64_t bytes = BytesOf(entries[i]);
    if (shards.empty() || (used > 0 && bytes > shard_bytes - used)) {
      shards.emplace_back();
      used = 0;
    }
    shards.back().push_back(i);
    used += bytes;
  }
  return shards;
}

// Sets the file and the places of a shard's tensors. Wide elements come first,
// so that every element is aligned; data begins at a multiple of 64.
void PlaceShard(const std::vector<Entry>& entries, std::vector<size_t> shard,
                Layout& layout) {
  std::sort(shard.begin(), shard.end(), [&](size_t a, size_t b) {
    return std::pair(-base::SizeOf(entries[a].spec.dtype), a) <
           std::pair(-base::SizeOf(entries[b].spec.dtype), b);
  });
  // Hugging Face's loader reads from here which framework's conventions apply.
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};
  int64_t offset = 0;
  for (size_t i : shard) {
    layout.places[i] = {layout.files.size() - 1, offset};
    for (const base::TensorSpec& tensor : TensorsOf(entries[i])) {
      const int64_t end = offset + *base::ByteCount(tensor.dtype, tensor.shape);
      header[tensor.name] = {{"dtype", StoredName(tensor.dtype)},
                             {"shape", tensor.shape},
                             {"data_offsets", {offset, end}}};
      offset = end;
    }
  }
  std::string json = Dump(header, -1);
  json.resize((json.size() + 8 + 63) / 64 * 64 - 8, ' ');
  Layout::File& file = layout.files.back();
  for (int shift = 0; shift < 64; shift += 8)
    file.header.push_back(static_cast<char>(json.size() >> shift & 255));
  file.header += json;
  const int64_t start = static_cast<int64_t>(file.header.size());
  for (size_t i : shard) layout.places[i].offset += start;
  file.bytes = start + offset;
}

void PlaceGroup(const std::vector<Entry>& entries, Group group,
                const std::string& stem, int64_t shard_bytes, Layout& layout) {
  const std::vector<std::vector<size_t>> shards =
      CutShards(entries, group, shard_bytes);
  if (shards.empty()) return;
  nlohmann::json weight_map = nlohmann::json::object();
  int64_t total = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    char number[64];
    std::snprintf(number, sizeof(number), "-%05zu-of-%05zu", i + 1,
                  shards.size());
    layout.files.push_back({absl::StrCat(stem, number, ".safetensors"), "", 0});
    PlaceShard(entries, shards[i], layout);
    for (size_t entry : shards[i]) {
      for (const base::TensorSpec& tensor : TensorsOf(entries[entry]))
        weight_map[tensor.name] = layout.files.back().name;
      total += BytesOf(entries[entry]);
    }
  }
  const nlohmann::json index = {{"metadata", {{"total_size", total}}},
                                {"weight_map", weight_map}};
  layout.indexes.push_back(
      {absl::StrCat(stem, ".safetensors.index.json"), Dump(index, 2) + "\n"});
}

}  // namespace

absl::StatusOr<Layout> MakeLayout(const std::vector<Entry>& entries,
                                  int64_t shard_bytes) {
  PARTITA_RETURN_IF_ERROR(CheckEntries(entries));
  Layout layout;
  layout.places.resize(entries.size());
  PlaceGroup(entries, Group::kModel, "model", shard_bytes, layout);
  PlaceGroup(entries, Group::kOptimizer, "optimizer", shard_bytes, layout);
  return layout;
}

}  // namespace partita::checkpoint
