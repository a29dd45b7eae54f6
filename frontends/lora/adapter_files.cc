// Reads tensors by name from all safetensors files of a folder.
#include "frontends/lora/adapter_files.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "llvm/ADT/StringRef.h"
#include "runtime/base/status_macros.h"

namespace partita::lora {
namespace {

// The names that transformers, Partita's checkpoints and PEFT give to files of
// weights.
bool holdsWeights(llvm::StringRef file) {
  return file.ends_with(".safetensors") &&
         (file.starts_with("model") || file.starts_with("adapter_model") ||
          file == "weights.safetensors");
}

}  // namespace

namespace fs = std::filesystem;
using absl::InvalidArgumentError;
using absl::Status;
using absl::StatusOr;
using base::SafetensorsEntry;
using base::SafetensorsFile;
using llvm::StringRef;

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : ",") + std::to_string(size);
  return "[" + text + "]";
}

StatusOr<std::vector<SafetensorsFile>> OpenFolder(const std::string& folder) {
  std::error_code error;
  std::set<std::string> paths;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error))
    if (holdsWeights(entry->path().filename().string()))
      paths.insert(entry->path().string());
  if (error || paths.empty())
    return InvalidArgumentError(folder +
                                ": expected a folder with model*.safetensors, "
                                "weights.safetensors or "
                                "adapter_model.safetensors, found " +
                                (error ? error.message() : "none in it"));
  std::vector<SafetensorsFile> files;
  for (const std::string& path : paths) {
    PARTITA_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(path));
    files.push_back(std::move(file));
  }
  return files;
}

StatusOr<std::map<std::string, Pair>> PairsOf(
    const std::vector<SafetensorsFile>& files, const std::string& folder,
    bool only) {
  std::map<std::string, Pair> pairs;
  for (const SafetensorsFile& file : files)
    for (const auto& [name, entry] : file.header().tensors) {
      StringRef module = name;
      module.consume_front(kPeft);
      if (module.consume_back(kDown))
        pairs[module.str()].down = {&file, &entry};
      else if (module.consume_back(kUp))
        pairs[module.str()].up = {&file, &entry};
      else if (only)
        return InvalidArgumentError(
            file.path() + ": expected tensors that end with " + kDown + " or " +
            kUp + ", found " + name + ", which Partita does not know");
    }
  if (pairs.empty())
    return InvalidArgumentError(
        folder + ": expected adapters, found no tensor whose name ends with " +
        kDown + ": train with --lora, and name a checkpoint of that run");
  for (const auto& [module, pair] : pairs) {
    if (!pair.down.entry || !pair.up.entry)
      return InvalidArgumentError(folder + ": " + module + ": expected " +
                                  kDown + " and " + kUp +
                                  ", found one of them");
    const auto &down = pair.down.entry->shape, &up = pair.up.entry->shape;
    if (down.size() != 2 || up.size() != 2 || down[0] != up[1] || down[0] < 1)
      return InvalidArgumentError(
          folder + ": " + module +
          ": expected A [rank, in] and B [out, rank], found " +
          ShapeText(down) + " and " + ShapeText(up));
    for (const SafetensorsEntry* entry : {pair.down.entry, pair.up.entry})
      if (!entry->dtype || !base::IsFloat(*entry->dtype))
        return InvalidArgumentError(folder + ": " + module +
                                    ": expected floats, found " +
                                    entry->stored);
  }
  return pairs;
}

std::string HeaderOf(const std::vector<Part>& parts) {
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};
  uint64_t offset = 0;
  for (const Part& part : parts) {
    header[part.name] = {
        {"dtype", part.entry->stored},
        {"shape", part.entry->shape},
        {"data_offsets", {offset, offset + part.entry->bytes}}};
    offset += part.entry->bytes;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8)
    bytes.push_back(static_cast<char>(uint64_t{text.size()} >> shift & 255));
  return bytes + text;
}

Status FillNewFolder(const std::string& path,
                     const std::function<Status()>& fill) {
  std::error_code error;
  if (fs::exists(path, error))
    return InvalidArgumentError(
        "-o: expected the name of a new folder, found '" + path +
        "', which exists");
  fs::create_directories(path, error);
  if (error)
    return InvalidArgumentError("-o: cannot make the folder '" + path +
                                "': " + error.message());
  const Status status = fill();
  if (!status.ok()) fs::remove_all(path, error);
  return status;
}

}  // namespace partita::lora
