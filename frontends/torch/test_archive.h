// Hand-made .pt2 files for tests.
#ifndef PARTITA_FRONTENDS_TORCH_TEST_ARCHIVE_H_
#define PARTITA_FRONTENDS_TORCH_TEST_ARCHIVE_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"

namespace partita::torch {

// A zip file of stored entries, in this order. `method` is written as their
// compression method.
std::string zipOf(
    const std::vector<std::pair<std::string, std::string>>& entries,
    int method = 0);

// A program in the making. Names are names of tensors.
class TestProgram {
 public:
  using Json = nlohmann::json;

  // {"as_tensor": ...}, {"as_int": ...}, {"as_float": ...}, {"as_ints": ...}
  static Json tensor(const std::string& name);
  static Json integer(int64_t value);
  static Json real(double value);
  static Json integers(const std::vector<int64_t>& values);

  // A size below 0 is the symbol s0.
  void input(const std::string& name, const std::vector<int64_t>& sizes);
  void parameter(const std::string& name, const std::string& path,
                 const std::vector<int64_t>& sizes,
                 const std::vector<float>& values);
  // A node with one result of type f32; `module` is its module's path.
  void node(const std::string& target,
            const std::vector<std::pair<std::string, Json>>& inputs,
            const std::string& result, const std::vector<int64_t>& sizes,
            const std::string& module = "");
  void output(const std::string& name);

  // The file's entries, which a test may damage.
  std::map<std::string, std::string> entries() const;
  std::string bytes() const;
  Json& json() { return json_; }

 private:
  void describe(const std::string& name, const std::vector<int64_t>& sizes);

  Json json_ = emptyProgram();
  Json weights_ = {{"config", Json::object()}};
  std::map<std::string, std::string> data_;

  static Json emptyProgram();
};

// The bytes of a .pt2 file with these entries.
std::string archiveOf(const std::map<std::string, std::string>& entries);

}  // namespace partita::torch

#endif  // PARTITA_FRONTENDS_TORCH_TEST_ARCHIVE_H_
