#include "frontends/torch/json_reader.h"

#include <cmath>
#include <limits>

namespace partita::torch {
namespace {

constexpr size_t kMaxJsonBytes = size_t{1} << 30;
// Values nest by graphs within graphs; deeper ones would exhaust the stack.
constexpr int kMaxDepth = 256;

// Stops at the first syntax error, or at too many levels.
class SyntaxChecker : public nlohmann::json_sax<Json> {
 public:
  std::string error;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool key(string_t&) override { return true; }
  bool start_object(std::size_t) override { return enter(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t where, const std::string&,
                   const nlohmann::detail::exception&) override {
    error =
        "expected JSON, found a syntax error at byte " + std::to_string(where);
    return false;
  }

 private:
  bool enter() {
    if (++depth_ <= kMaxDepth) return true;
    error = "expected JSON of at most 256 levels, found more";
    return false;
  }
  bool leave() {
    --depth_;
    return true;
  }
  int depth_ = 0;
};

}  // namespace

Json parseJson(std::string_view text, std::string& error) {
  const Json none = Json(Json::value_t::discarded);
  if (text.size() > kMaxJsonBytes) {
    error = "expected at most 1 GB of JSON, found " +
            std::to_string(text.size()) + " bytes";
    return none;
  }
  SyntaxChecker checker;
  if (!Json::sax_parse(text.begin(), text.end(), &checker)) {
    error = checker.error;
    return none;
  }
  Json value = Json::parse(text.begin(), text.end(), nullptr, false);
  if (value.is_object()) return value;
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
