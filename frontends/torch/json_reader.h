// Typed access to JSON values. Keeps the first error, with its path.
#ifndef PARTITA_FRONTENDS_TORCH_JSON_READER_H_
#define PARTITA_FRONTENDS_TORCH_JSON_READER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"

namespace partita::torch {

using Json = nlohmann::json;

// Parses text. Returns a discarded value and sets `error` if it is not JSON of
// an object, or larger than 1 GB.
Json parseJson(std::string_view text, std::string& error);

class JsonReader {
 public:
  // Names a part of the path while it lives.
  class Inside {
   public:
    Inside(JsonReader& reader, std::string part) : reader_(reader) {
      reader.path_.push_back(std::move(part));
    }
    ~Inside() { reader_.path_.pop_back(); }
    Inside(const Inside&) = delete;

   private:
    JsonReader& reader_;
  };

  // Returns false always.
  bool fail(const std::string& message);
  bool failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }

  // A member that is not null; null if absent.
  static const Json* optional(const Json& object, const char* key);
  // A member that must exist; fails and returns null otherwise.
  const Json* required(const Json& object, const char* key);

  bool read(const Json& value, std::string& text);
  bool read(const Json& value, int64_t& number);
  // Infinities and NaN are strings.
  bool read(const Json& value, double& number);
  bool read(const Json& value, bool& truth);
  template <typename T>
  bool readMember(const Json& object, const char* key, T& value) {
    const Json* member = required(object, key);
    Inside inside(*this, key);
    return member && read(*member, value);
  }

  // Calls read(element) for each element of an array.
  template <typename F>
  bool forEach(const Json& array, F read_element) {
    if (!array.is_array()) return fail("expected an array");
    size_t index = 0;
    for (const Json& element : array) {
      Inside inside(*this, std::to_string(index++));
      if (!read_element(element)) return false;
    }
    return true;
  }
  template <typename F>
  bool forEachMember(const Json& object, F read_member) {
    if (!object.is_object()) return fail("expected an object");
    for (auto member = object.begin(); member != object.end(); ++member) {
      Inside inside(*this, member.key());
      if (!read_member(member.key(), member.value())) return false;
    }
    return true;
  }

 private:
  std::vector<std::string> path_;
  std::string error_;
};

}  // namespace partita::torch

#endif  // PARTITA_FRONTENDS_TORCH_JSON_READER_H_
