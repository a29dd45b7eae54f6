// Converts state.json to and from text.
#include "runtime/checkpoint/manifest.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/checksum.h"
#include "runtime/base/status_macros.h"

namespace partita::checkpoint {
namespace {

using Json = nlohmann::json;

constexpr char kFormat[] = "partita-checkpoint";
constexpr int kVersion = 1;

std::string Dump(const Json& json) {
  return json.dump(2, ' ', true, Json::error_handler_t::replace);
}

absl::Status Damaged(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": the state of a checkpoint is damaged: ", what));
}

// Reads a field that is a number of at most `limit`.
absl::StatusOr<uint64_t> Number(const Json& object, const char* name,
                                uint64_t limit, const std::string& path) {
  const auto field = object.find(name);
  if (field == object.end() || !field->is_number_unsigned() ||
      field->get<uint64_t>() > limit)
    return Damaged(
        path, absl::StrCat("expected '", name, "', a number from 0 to ", limit,
                           field == object.end() ? ", found none"
                                                 : ", found " + Dump(*field)));
  return field->get<uint64_t>();
}

absl::StatusOr<Json> ParseObject(const std::string& text,
                                 const std::string& path) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object())
    return Damaged(path, "expected a JSON object, found something else");
  if (json.value("format", Json()) != kFormat)
    return Damaged(path, absl::StrCat("expected the format '", kFormat, "'"));
  if (json.value("version", Json()) != kVersion)
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected a checkpoint of version ", kVersion,
                     ", found ", Dump(json.value("version", Json())),
                     "; read it with the Partita that wrote it"));
  return json;
}

absl::Status ParseFiles(const Json& files, const std::string& path,
                        Manifest& manifest) {
  if (!files.is_object()) return Damaged(path, "expected 'files', an object");
  for (const auto& [name, file] : files.items()) {
    // Files must be in the checkpoint's own folder.
    if (name.empty() || name == "." || name == ".." ||
        name.find('/') != std::string::npos || !file.is_object())
      return Damaged(path, absl::StrCat("file '", name, "'"));
    PARTITA_ASSIGN_OR_RETURN(
        const uint64_t bytes,
        Number(file, "bytes", std::numeric_limits<int64_t>::max(), path));
    PARTITA_ASSIGN_OR_RETURN(
        const uint64_t crc32,
        Number(file, "crc32", std::numeric_limits<uint32_t>::max(), path));
    manifest.files[name] = {static_cast<int64_t>(bytes),
                            static_cast<uint32_t>(crc32)};
  }
  return absl::OkStatus();
}

}  // namespace

std::string WriteManifest(const Manifest& manifest) {
  Json files = Json::object();
  for (const auto& [name, file] : manifest.files)
    files[name] = {{"bytes", file.bytes}, {"crc32", file.crc32}};
  const State& state = manifest.state;
  Json json = {{"format", kFormat},  {"version", kVersion},
               {"step", state.step}, {"seed", state.seed},
               {"data", state.data}, {"extra", state.extra},
               {"files", files}};
  json["crc32"] = base::Crc32(Dump(json));
  return Dump(json) + "\n";
}

absl::StatusOr<Manifest> ParseManifest(const std::string& text,
                                       const std::string& path) {
  constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
  PARTITA_ASSIGN_OR_RETURN(Json json, ParseObject(text, path));
  PARTITA_ASSIGN_OR_RETURN(
      const uint64_t crc32,
      Number(json, "crc32", std::numeric_limits<uint32_t>::max(), path));
  json.erase("crc32");
  if (base::Crc32(Dump(json)) != crc32)
    return Damaged(path, absl::StrCat("expected the checksum ", crc32,
                                      ", found ", base::Crc32(Dump(json))));
  Manifest manifest;
  PARTITA_ASSIGN_OR_RETURN(const uint64_t step,
                           Number(json, "step", kMax, path));
  manifest.state.step = static_cast<int64_t>(step);
  PARTITA_ASSIGN_OR_RETURN(
      manifest.state.seed,
      Number(json, "seed", std::numeric_limits<uint64_t>::max(), path));
  const Json data = json.value("data", Json());
  if (!data.is_string()) return Damaged(path, "expected 'data', a text");
  manifest.state.data = data.get<std::string>();
  const Json extra = json.value("extra", Json());
  if (!extra.is_object()) return Damaged(path, "expected 'extra', an object");
  for (const auto& [name, value] : extra.items()) {
    if (!value.is_string())
      return Damaged(path, absl::StrCat("expected '", name, "', a text"));
    manifest.state.extra[name] = value.get<std::string>();
  }
  PARTITA_RETURN_IF_ERROR(
      ParseFiles(json.value("files", Json()), path, manifest));
  return manifest;
}

}  // namespace partita::checkpoint
