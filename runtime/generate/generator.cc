// Rows of the cache are slots: a loop fills free slots with prompts and adds a
// token to all others.
#include "runtime/generate/generator.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace partita::generate {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class Generator {
 public:
  Generator(CachedModel& model,
            const std::vector<std::vector<int64_t>>& prompts,
            const GenerateOptions& options)
      : model_(model),
        prompts_(prompts),
        options_(options),
        sampler_(options.sampling),
        slots_(static_cast<size_t>(model.rows())),
        scores_(static_cast<size_t>(model.vocabulary())) {
    report_.tokens.resize(prompts.size());
  }

  absl::StatusOr<GenerateReport> Run() {
    begin_ = Clock::now();
    while (true) {
      for (size_t row = 0; row < slots_.size(); ++row)
        // A text may end with its first token.
        while (!slots_[row].busy && next_ < prompts_.size())
          PARTITA_RETURN_IF_ERROR(Fill(row));
      if (std::none_of(slots_.begin(), slots_.end(),
                       [](const Slot& slot) { return slot.busy; }))
        return report_;
      PARTITA_RETURN_IF_ERROR(Step());
    }
  }

 private:
  struct Slot {
    bool busy = false;
    size_t text = 0;
    std::vector<int64_t> tokens;  // in the cache, and the newest one
  };

  absl::Status Fill(size_t row) {
    Slot& slot = slots_[row];
    slot = {options_.max_new_tokens > 0, next_, {}};
    const std::vector<int64_t>& prompt = prompts_[next_++];
    if (!slot.busy) return absl::OkStatus();
    const Clock::time_point begin = Clock::now();
    PARTITA_ASSIGN_OR_RETURN(
        const float* scores,
        model_.ReadPrompt(static_cast<int64_t>(row), prompt));
    report_.prompt_seconds += SecondsSince(begin);
    report_.prompt_tokens += static_cast<int64_t>(prompt.size());
    if (model_.start()) {
      slot.tokens = {*model_.start()};
    } else {
      slot.tokens = prompt;
      Append(slot, scores);
    }
    return absl::OkStatus();
  }

  absl::Status Step() {
    const Clock::time_point begin = Clock::now();
    std::vector<int64_t> tokens(slots_.size(), 0),
        positions(slots_.size(), model_.length());
    for (size_t row = 0; row < slots_.size(); ++row) {
      if (!slots_[row].busy) continue;
      tokens[row] = slots_[row].tokens.back();
      positions[row] = static_cast<int64_t>(slots_[row].tokens.size()) - 1;
    }
    PARTITA_ASSIGN_OR_RETURN(const float* scores,
                             model_.AddTokens(tokens, positions));
    for (size_t row = 0; row < slots_.size(); ++row)
      if (slots_[row].busy)
        Append(slots_[row],
               scores + row * static_cast<size_t>(model_.vocabulary()));
    report_.token_seconds += SecondsSince(begin);
    ++report_.steps;
    return absl::OkStatus();
  }

  // Chooses the next token of the slot's text; ends the text if it is the last.
  void Append(Slot& slot, const float* scores) {
    scores_.assign(scores, scores + model_.vocabulary());
    const int64_t token =
        sampler_.Choose(static_cast<int64_t>(slot.text), slot.tokens, scores_);
    slot.tokens.push_back(token);
    std::vector<int64_t>& added = report_.tokens[slot.text];
    added.push_back(token);
    if (report_.new_tokens++ == 0)
      report_.first_token_seconds = SecondsSince(begin_);
    slot.busy = static_cast<int64_t>(added.size()) < options_.max_new_tokens &&
                std::find(options_.end.begin(), options_.end.end(), token) ==
                    options_.end.end() &&
                !(options_.stops && options_.stops(slot.text, added));
  }

  CachedModel& model_;
  const std::vector<std::vector<int64_t>>& prompts_;
  const GenerateOptions& options_;
  Sampler sampler_;
  std::vector<Slot> slots_;
  std::vector<float> scores_;
  size_t next_ = 0;  // prompt
  Clock::time_point begin_;
  GenerateReport report_;
};

}  // namespace

absl::Status CheckPrompts(const CachedModel& model,
                          const std::vector<std::vector<int64_t>>& prompts,
                          const GenerateOptions& options) {
  for (size_t i = 0; i < prompts.size(); ++i) {
    const auto wrong = [&](const std::string& what) {
      return absl::InvalidArgumentError(
          absl::StrCat("prompt ", i + 1, ": ", what));
    };
    const int64_t size = static_cast<int64_t>(prompts[i].size());
    if (size == 0) return wrong("expected at least one token, found none");
    for (const int64_t token : prompts[i])
      if (token < 0 || token >= model.vocabulary())
        return wrong(
            absl::StrCat("expected tokens from 0 to ", model.vocabulary() - 1,
                         ", as the model's vocabulary has, found ", token,
                         "; a tokenizer of another model gives such tokens"));
    // The cache has the prompt or the start token, and all new tokens but the
    // last. The sum may be more than an int64_t holds.
    const int64_t written = model.start() ? 1 : size;
    if (size > model.length() ||
        options.max_new_tokens - 1 > model.length() - written)
      return wrong(absl::StrCat(
          "expected a prompt and new tokens that fit a cache of ",
          model.length(), " tokens, found ", size, " and ",
          options.max_new_tokens,
          "; shorten the prompt, lower --max-new-tokens, or compile with a "
          "larger --cache-length"));
  }
  return absl::OkStatus();
}

absl::StatusOr<GenerateReport> Generate(
    CachedModel& model, const std::vector<std::vector<int64_t>>& prompts,
    const GenerateOptions& options) {
  PARTITA_RETURN_IF_ERROR(CheckPrompts(model, prompts, options));
  return Generator(model, prompts, options).Run();
}

}  // namespace partita::generate
