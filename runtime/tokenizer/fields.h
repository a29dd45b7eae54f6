// Reads the fields of JSON objects in tokenizer.json.
#ifndef PARTITA_RUNTIME_TOKENIZER_FIELDS_H_
#define PARTITA_RUNTIME_TOKENIZER_FIELDS_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace partita::tokenizer {

inline constexpr int64_t kMostTokens = int64_t{1} << 24;

// Getters note the first field that is wrong and return a usable value.
class Fields {
 public:
  // `where` names the object in messages, as "model".
  Fields(const nlohmann::json& object, std::string where)
      : object_(object), where_(std::move(where)) {
    if (!object.is_object())
      wrong_ = absl::StrCat(where_, ": expected an object");
  }

  // Null if absent, or null in the file.
  const nlohmann::json* Find(const char* key) const {
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  std::string Text(const char* key, const std::string& fallback) {
    const nlohmann::json* found = Find(key);
    if (found == nullptr) return fallback;
    if (found->is_string()) return found->get<std::string>();
    Wrong(key, "a string");
    return fallback;
  }
  bool Flag(const char* key, bool fallback) {
    const nlohmann::json* found = Find(key);
    if (found == nullptr) return fallback;
    if (found->is_boolean()) return found->get<bool>();
    Wrong(key, "true or false");
    return fallback;
  }
  int64_t Count(const char* key, int64_t fallback) {
    const nlohmann::json* found = Find(key);
    if (found == nullptr) return fallback;
    if (IsCount(*found)) return found->get<int64_t>();
    Wrong(key, absl::StrCat("a number from 0 to ", kMostTokens - 1));
    return fallback;
  }
  // A list or an object; an empty one after a complaint.
  const nlohmann::json& List(const char* key) {
    static const nlohmann::json kNone = nlohmann::json::array();
    const nlohmann::json* found = Find(key);
    if (found != nullptr && found->is_array()) return *found;
    Wrong(key, "a list");
    return kNone;
  }
  static bool IsCount(const nlohmann::json& value) {
    return value.is_number_integer() && value.get<int64_t>() >= 0 &&
           value.get<int64_t>() < kMostTokens;
  }
  void Wrong(const std::string& key, const std::string& expected) {
    if (wrong_.empty())
      wrong_ = absl::StrCat(where_, ".", key, ": expected ", expected);
  }
  // The first complaint.
  absl::Status Check() const {
    return wrong_.empty() ? absl::OkStatus()
                          : absl::InvalidArgumentError(wrong_);
  }

 private:
  const nlohmann::json& object_;
  const std::string where_;
  std::string wrong_;
};

// A step of an unknown "type".
inline absl::Status UnknownType(const std::string& where,
                                const std::string& type,
                                const std::string& known) {
  return absl::InvalidArgumentError(absl::StrCat(
      where, ".type: expected one of ", known, "; found '", type, "'"));
}

}  // namespace partita::tokenizer

#endif  // PARTITA_RUNTIME_TOKENIZER_FIELDS_H_
