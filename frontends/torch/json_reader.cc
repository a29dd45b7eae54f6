#include "frontends/torch/json_reader.h"

#include <cmath>
#include <limits>

#include "runtime/base/checked_json.h"

namespace partita::torch {
namespace {

constexpr size_t kMaxJsonBytes = size_t{1} << 30;

}  // namespace

Json parseJson(std::string_view text, std::string& error) {
  const Json none = Json(Json::value_t::discarded);
  if (text.size() > kMaxJsonBytes) {
    error = "expected at most 1 GB of JSON, found " +
            std::to_string(text.size()) + " bytes";
    return none;
  }
  base::JsonError fault;
  Json value = base::ParseJson(text, fault);
  if (value.is_object()) return value;
  if (value.is_discarded()) {
    error = "expected JSON, found " + fault.found;
    if (fault.position > 0)
      error += " at byte " + std::to_string(fault.position);
    return none;
  }
  error = std::string("expected a JSON object, found ") + value.type_name();
  return none;
}

bool JsonReader::fail(const std::string& message) {
  if (failed()) return false;
  for (const std::string& part : path_) {
    if (!error_.empty()) error_ += '.';
    error_ += part;
  }
  error_ += (error_.empty() ? "" : ": ") + message;
  return false;
}

const Json* JsonReader::optional(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto member = object.find(key);
  return member == object.end() || member->is_null() ? nullptr : &*member;
}

const Json* JsonReader::required(const Json& object, const char* key) {
  const Json* member = optional(object, key);
  if (!member)
    fail(object.is_object() ? std::string("expected a member '") + key + "'"
                            : std::string("expected an object with '") + key +
                                  "', found " + object.type_name());
  return member;
}

bool JsonReader::read(const Json& value, std::string& text) {
  if (!value.is_string())
    return fail(std::string("expected a string, found ") + value.type_name());
  text = value.get<std::string>();
  return true;
}

bool JsonReader::read(const Json& value, int64_t& number) {
  const bool fits =
      value.is_number_unsigned()
          ? value.get<uint64_t>() <=
                static_cast<uint64_t>(std::numeric_limits<int64_t>::max())
          : value.is_number_integer();
  if (!fits)
    return fail(std::string("expected an integer of 64 bits, found ") +
                value.type_name());
  number = value.get<int64_t>();
  return true;
}

bool JsonReader::read(const Json& value, double& number) {
  if (value.is_string()) {
    const std::string text = value.get<std::string>();
    const double infinity = std::numeric_limits<double>::infinity();
    if (text == "Infinity")
      number = infinity;
    else if (text == "-Infinity")
      number = -infinity;
    else if (text == "NaN")
      number = std::numeric_limits<double>::quiet_NaN();
    else
      return fail("expected a number, found '" + text + "'");
    return true;
  }
  if (!value.is_number())
    return fail(std::string("expected a number, found ") + value.type_name());
  number = value.get<double>();
  return true;
}

bool JsonReader::read(const Json& value, bool& truth) {
  if (!value.is_boolean())
    return fail(std::string("expected true or false, found ") +
                value.type_name());
  truth = value.get<bool>();
  return true;
}

}  // namespace partita::torch
