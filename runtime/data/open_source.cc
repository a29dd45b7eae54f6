// Chooses the source by the form of its text.
#include "runtime/data/open_source.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/data/array_source.h"
#include "runtime/data/batch_folder.h"
#include "runtime/data/token_source.h"

namespace partita::data {
namespace {

constexpr char kImages[] = "-images-idx3-ubyte";
constexpr char kLabels[] = "-labels-idx1-ubyte";

bool StartsWith(const std::string& text, const std::string& start) {
  return text.compare(0, start.size(), start) == 0;
}

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() &&
         text.compare(text.size() - end.size(), end.size(), end) == 0;
}

absl::StatusOr<std::unique_ptr<BatchSource>> Tokens(
    TokenFormat format, const std::string& path,
    const std::vector<base::TensorSpec>& specs, const SourceOptions& options) {
  TokenOptions tokens;
  tokens.format = format;
  tokens.vocabulary = options.vocabulary;
  tokens.from = options.from;
  tokens.to = options.to;
  tokens.order = options.order;
  tokens.rows = options.rows;
  return OpenTokens(path, specs, tokens);
}

absl::StatusOr<std::unique_ptr<BatchSource>> Arrays(
    const std::map<std::string, std::string>& files,
    const std::vector<base::TensorSpec>& specs, const SourceOptions& options) {
  ArrayOptions arrays;
  arrays.classes = options.vocabulary;
  arrays.mean = options.mean;
  arrays.deviation = options.deviation;
  arrays.order = options.order;
  arrays.rows = options.rows;
  return OpenArrays(files, specs, arrays);
}

// Images go to the input that is not "targets".
absl::StatusOr<std::unique_ptr<BatchSource>> Images(
    const std::string& path, const std::vector<base::TensorSpec>& specs,
    const SourceOptions& options) {
  std::map<std::string, std::string> files;
  const std::string stem =
      path.substr(0, path.size() - std::string(kImages).size());
  for (const base::TensorSpec& spec : specs)
    files[spec.name] = spec.name == "targets" ? stem + kLabels : path;
  return Arrays(files, specs, options);
}

// Parses "a=x,b=y"; a duplicate name is an error.
absl::StatusOr<std::map<std::string, std::string>> ParseNamed(
    const std::string& text) {
  std::map<std::string, std::string> files;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const size_t equals = part.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == part.size())
      return absl::InvalidArgumentError(absl::StrCat(
          "data '", text, "': expected INPUT=FILE,INPUT=FILE..., found '", part,
          "'"));
    if (!files.emplace(part.substr(0, equals), part.substr(equals + 1)).second)
      return absl::InvalidArgumentError(
          absl::StrCat("data '", text, "': input '", part.substr(0, equals),
                       "' is given twice"));
    begin = end + 1;
  }
  return files;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> OpenSource(
    const std::string& text, const std::vector<base::TensorSpec>& specs,
    const SourceOptions& options) {
  if (StartsWith(text, "text:"))
    return Tokens(TokenFormat::kBytes, text.substr(5), specs, options);
  if (StartsWith(text, "u16:"))
    return Tokens(TokenFormat::kU16, text.substr(4), specs, options);
  if (StartsWith(text, "u32:"))
    return Tokens(TokenFormat::kU32, text.substr(4), specs, options);
  std::error_code error;
  if (std::filesystem::is_directory(text, error) ||
      EndsWith(text, ".safetensors")) {
    FolderOptions folder;
    folder.order = options.order;
    folder.rows = options.rows;
    return OpenBatchFolder(text, specs, folder);
  }
  if (EndsWith(text, ".bin"))
    return Tokens(TokenFormat::kU16, text, specs, options);
  if (EndsWith(text, ".txt"))
    return Tokens(TokenFormat::kBytes, text, specs, options);
  if (EndsWith(text, kImages)) return Images(text, specs, options);
  if (text.find('=') != std::string::npos) {
    absl::StatusOr<std::map<std::string, std::string>> files = ParseNamed(text);
    if (!files.ok()) return files.status();
    return Arrays(*files, specs, options);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("data '", text, "': expected one of\n", SourceHelp()));
}

const char* SourceHelp() {
  return "  FILE.bin                  token ids of 16 bits (u16:FILE also)\n"
         "  u32:FILE                  token ids of 32 bits\n"
         "  FILE.txt                  text, a token per byte (text:FILE also)\n"
         "  FOLDER, FILE.safetensors  batches, tensors named as the inputs\n"
         "  INPUT=FILE,INPUT=FILE...  arrays, IDX or .npy, rows are samples\n"
         "  ...-images-idx3-ubyte     images, and the labels beside them\n";
}

}  // namespace partita::data
