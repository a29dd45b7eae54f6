// A model's configuration: typed access to config.json. Complaints are
// collected and reported together.
#ifndef PARTITA_FRONTENDS_HUGGINGFACE_CONFIG_H_
#define PARTITA_FRONTENDS_HUGGINGFACE_CONFIG_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "llvm/ADT/StringSet.h"
#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"

namespace partita::huggingface {

// Reads and parses a JSON file of at most 64 MB that contains an object (or an
// array). Errors name the line and column.
mlir::FailureOr<nlohmann::json> readJsonFile(
    const std::string& path, mlir::MLIRContext* context,
    nlohmann::json::value_t kind = nlohmann::json::value_t::object);

// Typed access to a config. Sizes must be positive and below 2^31. For a value
// of the wrong type or range, an accessor notes a complaint and returns a
// harmless value; `finish` reports all complaints together.
class Config {
 public:
  // `json` must outlive the config.
  Config(const nlohmann::json& json, mlir::Location loc,
         std::string section = "")
      : json_(json), loc_(loc), section_(std::move(section)) {}

  mlir::Location loc() const { return loc_; }
  const nlohmann::json& values() const { return json_; }
  // True if the key is present and not null.
  bool has(const char* key) const;

  int64_t size(const char* key) { return integer(key, std::nullopt, 1); }
  int64_t size(const char* key, int64_t fallback) {
    return integer(key, fallback, 1);
  }
  // A number of layers, at most 10000: the limit keeps a damaged config from
  // taking hours.
  int64_t layers(const char* key) {
    return integer(key, std::nullopt, 1, 10001);
  }
  int64_t layers(const char* key, int64_t fallback) {
    return integer(key, fallback, 1, 10001);
  }
  // A number of experts, with the same limit.
  int64_t experts(const char* key) { return layers(key); }
  int64_t experts(const char* key, int64_t fallback) {
    return layers(key, fallback);
  }
  // A number of things of which there may be none.
  int64_t count(const char* key, int64_t fallback) {
    return integer(key, fallback, 0);
  }
  double number(const char* key, double fallback);
  // A dropout probability in [0, 1): `forced` if given, else the key's value,
  // else 0.
  double dropout(const char* key, std::optional<double> forced);
  bool flag(const char* key, bool fallback);
  std::string text(const char* key, const std::string& fallback);
  std::vector<int64_t> sizes(const char* key);
  // Numbers from 0 on; the list may be empty.
  std::vector<int64_t> indices(const char* key);
  std::vector<std::string> texts(const char* key);

  // True if the key is null, which for some models differs from no key.
  bool isNull(const char* key) const;
  // True if there is a complaint about the key's value. Checks that compare it
  // with others would only repeat it.
  bool isWrong(llvm::StringRef key) const { return wrong_.contains(key); }

  // Adds a complaint unless `key` has one of these values or is wrong already.
  void expectOneOf(const char* key, const std::string& value,
                   llvm::ArrayRef<llvm::StringRef> known);
  // Adds a complaint.
  void complain(std::string complaint) {
    complaints_.push_back(std::move(complaint));
  }
  // Adds a complaint unless `divisor` divides `value` or one of them is wrong
  // already.
  void expectDivides(const char* divisor_key, int64_t divisor, const char* key,
                     int64_t value);
  // Takes over the complaints of a section's config.
  void absorb(const Config& section);

  mlir::LogicalResult finish() const;

 private:
  int64_t integer(const char* key, std::optional<int64_t> fallback,
                  int64_t least, int64_t end = int64_t{1} << 31);
  const nlohmann::json* find(const char* key) const;
  void wrong(const char* key, const std::string& expected);

  const nlohmann::json& json_;
  mlir::Location loc_;
  std::string section_;
  std::vector<std::string> complaints_;
  llvm::StringSet<> wrong_;  // keys
};

}  // namespace partita::huggingface

#endif  // PARTITA_FRONTENDS_HUGGINGFACE_CONFIG_H_
