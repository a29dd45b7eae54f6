// Parses twice: first without building values, to check syntax and depth.
#include "runtime/base/checked_json.h"

namespace partita::base {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 256;

// Stops at the first error.
class SyntaxChecker : public nlohmann::json_sax<json> {
 public:
  JsonError error;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool key(string_t&) override { return true; }
  bool start_object(std::size_t) override { return Enter(); }
  bool start_array(std::size_t) override { return Enter(); }
  bool end_object() override { return Leave(); }
  bool end_array() override { return Leave(); }
  bool parse_error(std::size_t where, const std::string&,
                   const nlohmann::detail::exception& problem) override {
    // The text is "[json.exception...] parse error at line 1, column 2: <the
    // expected and found tokens>".
    const std::string text = problem.what();
    const size_t start = text.find(": ");
    error = {start == std::string::npos ? text : text.substr(start + 2), where};
    return false;
  }

 private:
  bool Enter() {
    if (++depth_ <= kMaxDepth) return true;
    error.found = "more than 256 levels";
    return false;
  }
  bool Leave() {
    --depth_;
    return true;
  }
  int depth_ = 0;
};

}  // namespace

json ParseJson(std::string_view text, JsonError& error) {
  SyntaxChecker checker;
  if (json::sax_parse(text.begin(), text.end(), &checker))
    return json::parse(text.begin(), text.end(), nullptr, false);
  error = checker.error;
  return json(json::value_t::discarded);
}

}  // namespace partita::base
