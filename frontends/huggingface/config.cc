// Reads config.json and answers typed queries about it.
#include "frontends/huggingface/config.h"

#include <cmath>

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "mlir/IR/Diagnostics.h"
#include "runtime/base/checked_json.h"
#include "runtime/base/mapped_file.h"

namespace partita::huggingface {
namespace {

using mlir::FailureOr;
using nlohmann::json;

constexpr size_t kMaxJsonBytes = size_t{64} << 20;
constexpr int64_t kMaxSize = int64_t{1} << 31;

std::string found(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 40) + "...";
  return text;
}

}  // namespace

FailureOr<json> readJsonFile(const std::string& path,
                             mlir::MLIRContext* context, json::value_t kind) {
  const auto at = [&](unsigned line, unsigned column) {
    return mlir::FileLineColLoc::get(context, path, line, column);
  };
  auto file = base::MappedFile::Open(path);
  if (!file.ok())
    return mlir::emitError(at(0, 0)) << std::string(file.status().message());
  const std::string_view text = file->bytes();
  if (text.size() > kMaxJsonBytes)
    return mlir::emitError(at(0, 0)) << "expected at most " << kMaxJsonBytes
                                     << " bytes of JSON, found " << text.size();
  base::JsonError error;
  json value = base::ParseJson(text, error);
  if (value.is_discarded()) {
    const std::string_view before =
        text.substr(0, error.position > 0 ? error.position - 1 : 0);
    const size_t line_start = before.rfind('\n');
    const unsigned line = 1 + static_cast<unsigned>(std::count(
                                  before.begin(), before.end(), '\n'));
    const unsigned column =
        1 + static_cast<unsigned>(line_start == std::string_view::npos
                                      ? before.size()
                                      : before.size() - line_start - 1);
    return mlir::emitError(at(line, column))
           << "expected JSON, found " << error.found;
  }
  if (value.type() != kind)
    return mlir::emitError(at(1, 1))
           << "expected a JSON " << json(kind).type_name() << ", found "
           << value.type_name();
  return value;
}

const json* Config::find(const char* key) const {
  const auto place = json_.find(key);
  return place == json_.end() || place->is_null() ? nullptr : &*place;
}

bool Config::has(const char* key) const { return find(key) != nullptr; }

bool Config::isNull(const char* key) const {
  return json_.contains(key) && !has(key);
}

void Config::wrong(const char* key, const std::string& expected) {
  const json* value = find(key);
  wrong_.insert(key);
  complain("'" + section_ + key + "': expected " + expected + ", found " +
           (value ? found(*value) : "none"));
}

int64_t Config::integer(const char* key, std::optional<int64_t> fallback,
                        int64_t least, int64_t end) {
  const json* value = find(key);
  if (value == nullptr && fallback) return *fallback;
  if (value != nullptr && value->is_number_integer()) {
    const int64_t number = value->get<int64_t>();
    if (number >= least && number < end) return number;
  }
  wrong(key, "a whole number from " + std::to_string(least) + " to " +
                 std::to_string(end - 1));
  return least;
}

double Config::number(const char* key, double fallback) {
  const json* value = find(key);
  if (value == nullptr) return fallback;
  if (value->is_number() && std::isfinite(value->get<double>()))
    return value->get<double>();
  wrong(key, "a number");
  return fallback;
}

double Config::dropout(const char* key, std::optional<double> forced) {
  const double own = number(key, 0.0);
  if (own < 0.0 || own >= 1.0) wrong(key, "a probability from 0 to below 1");
  return forced.value_or(own);
}

bool Config::flag(const char* key, bool fallback) {
  const json* value = find(key);
  if (value == nullptr) return fallback;
  if (value->is_boolean()) return value->get<bool>();
  wrong(key, "true or false");
  return fallback;
}

std::string Config::text(const char* key, const std::string& fallback) {
  const json* value = find(key);
  if (value == nullptr) return fallback;
  if (value->is_string()) return value->get<std::string>();
  wrong(key, "a string");
  return fallback;
}

std::vector<int64_t> Config::sizes(const char* key) {
  std::vector<int64_t> result;
  const json* value = find(key);
  if (value == nullptr || !value->is_array() || value->empty()) {
    wrong(key, "a list of sizes");
    return {1};
  }
  for (const json& item : *value) {
    const int64_t number = item.is_number_integer() ? item.get<int64_t>() : 0;
    if (number < 1 || number >= kMaxSize) {
      wrong(key, "a list of sizes");
      return {1};
    }
    result.push_back(number);
  }
  return result;
}

std::vector<int64_t> Config::indices(const char* key) {
  std::vector<int64_t> result;
  const json* value = find(key);
  if (value == nullptr) return result;
  const auto is_index = [](const json& item) {
    return item.is_number_integer() && item.get<int64_t>() >= 0;
  };
  if (!value->is_array() || !llvm::all_of(*value, is_index)) {
    wrong(key, "a list of numbers from 0 on");
    return result;
  }
  for (const json& item : *value) result.push_back(item.get<int64_t>());
  return result;
}

std::vector<std::string> Config::texts(const char* key) {
  std::vector<std::string> result;
  const json* value = find(key);
  if (value == nullptr) return result;
  if (!value->is_array() || !llvm::all_of(*value, [](const json& item) {
        return item.is_string();
      })) {
    wrong(key, "a list of strings");
    return result;
  }
  for (const json& item : *value) result.push_back(item.get<std::string>());
  return result;
}

void Config::expectOneOf(const char* key, const std::string& value,
                         llvm::ArrayRef<llvm::StringRef> known) {
  if (llvm::is_contained(known, value) || isWrong(key)) return;
  wrong_.insert(key);
  complain("'" + section_ + key + "': expected " +
           (known.size() == 1 ? "'" + known.front().str() + "'"
                              : "one of " + llvm::join(known, ", ")) +
           ", found '" + value + "'");
}

void Config::expectDivides(const char* divisor_key, int64_t divisor,
                           const char* key, int64_t value) {
  if (value % divisor != 0 && !isWrong(divisor_key) && !isWrong(key))
    complain("'" + section_ + key + "': expected a multiple of '" +
             divisor_key + "' (" + std::to_string(divisor) + "), found " +
             std::to_string(value));
}

void Config::absorb(const Config& section) {
  complaints_.insert(complaints_.end(), section.complaints_.begin(),
                     section.complaints_.end());
}

mlir::LogicalResult Config::finish() const {
  if (complaints_.empty()) return mlir::success();
  return mlir::emitError(loc_)
         << "cannot use this config: " << llvm::join(complaints_, "; ");
}

}  // namespace partita::huggingface
