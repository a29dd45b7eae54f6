// A folder that `partita generate -o` wrote, loaded: the programs for tokens
// and for prompts, which share the cache.
#ifndef PARTITA_RUNTIME_GENERATE_LOADED_MODEL_H_
#define PARTITA_RUNTIME_GENERATE_LOADED_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/executor/rank_group.h"
#include "runtime/generate/generator.h"
#include "runtime/session/options.h"

namespace partita::generate {

// The contents of generation.json.
struct Description {
  struct Prompts {
    std::string file;
    int64_t length = 0;  // tokens of the prompts that it reads
  };
  int64_t rows = 0, length = 0;
  std::string tokens;            // file
  std::vector<Prompts> prompts;  // shortest first
  std::vector<int64_t> end;
  std::optional<int64_t> start;
  std::string tokenizer;  // file; empty: none
};

// Reads FOLDER/generation.json; its files get paths. NotFound if there is none,
// InvalidArgument if it is damaged.
absl::StatusOr<Description> ReadDescription(const std::string& folder);

class LoadedModel : public CachedModel {
 public:
  // `options.model` is the folder.
  static absl::StatusOr<std::unique_ptr<LoadedModel>> Open(
      const session::SessionOptions& options);

  const Description& description() const { return description_; }
  int64_t rows() const override { return description_.rows; }
  int64_t length() const override { return description_.length; }
  int64_t vocabulary() const override { return vocabulary_; }
  std::optional<int64_t> start() const override { return description_.start; }
  absl::StatusOr<const float*> ReadPrompt(
      int64_t row, const std::vector<int64_t>& prompt) override;
  absl::StatusOr<const float*> AddTokens(
      const std::vector<int64_t>& tokens,
      const std::vector<int64_t>& positions) override;

  // Loads the program for prompts of this many tokens now, not when the first
  // one is read.
  absl::Status Prepare(int64_t tokens);

 private:
  // A program with memory for its inputs and outputs.
  struct Program {
    std::unique_ptr<executor::RankGroup> ranks;
    std::vector<std::vector<int64_t>> inputs;  // of i64
    // Holds the output; aligned, so that the output is written in place.
    std::unique_ptr<char, void (*)(void*)> memory{nullptr, nullptr};

    absl::Status Bind();
    // The elements of an input; null if there is none of this name.
    std::vector<int64_t>* Input(const std::string& name);
    absl::StatusOr<const float*> Run();
  };

  LoadedModel(const session::SessionOptions& options, Description description)
      : options_(options),
        description_(std::move(description)),
        prompts_(description_.prompts.size()) {}
  absl::StatusOr<Program> Load(const std::string& file,
                               const executor::RankGroup* states) const;
  // Compares generation.json with the program for tokens.
  absl::Status CheckDescription() const;
  absl::StatusOr<size_t> ProgramFor(int64_t tokens);

  const session::SessionOptions options_;
  const Description description_;
  int64_t vocabulary_ = 0;
  Program tokens_;
  std::vector<Program> prompts_;         // loaded when they are needed
  std::vector<int64_t> source_lengths_;  // of each row's prompt
};

}  // namespace partita::generate

#endif  // PARTITA_RUNTIME_GENERATE_LOADED_MODEL_H_
