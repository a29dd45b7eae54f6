// The post-processors of tokenizer.json: add tokens such as [CLS] around those
// of the text.
#ifndef PARTITA_RUNTIME_TOKENIZER_POST_PROCESSOR_H_
#define PARTITA_RUNTIME_TOKENIZER_POST_PROCESSOR_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace partita::tokenizer {

class PostProcessor {
 public:
  // Null adds nothing. InvalidArgument names what is wrong.
  static absl::StatusOr<PostProcessor> Read(const nlohmann::json* value);

  std::vector<int64_t> Apply(const std::vector<int64_t>& tokens) const;

 private:
  absl::Status Add(const nlohmann::json& value);
  absl::Status AddTemplate(const nlohmann::json& value);
  absl::Status AddPair(const nlohmann::json& value);

  std::vector<int64_t> before_, after_;
};

}  // namespace partita::tokenizer

#endif  // PARTITA_RUNTIME_TOKENIZER_POST_PROCESSOR_H_
