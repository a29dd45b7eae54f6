// Permutations without a table, and positions as JSON.
#include "runtime/data/order.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/random_fill.h"

namespace partita::data {
namespace {

constexpr int kRounds = 6;
constexpr int kStateVersion = 1;

uint64_t EpochKey(uint64_t seed, int64_t epoch) {
  return base::RandomWord(seed, static_cast<uint64_t>(epoch));
}

// Formats a field for messages.
std::string Shown(const nlohmann::json& state, const char* name) {
  const auto field = state.find(name);
  if (field == state.end()) return "none";
  return field->dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

// The value of a field that is a number in [0, limit], or -1.
int64_t Count(const nlohmann::json& state, const char* name, int64_t limit) {
  const auto field = state.find(name);
  if (field == state.end() || !field->is_number_unsigned()) return -1;
  const uint64_t value = field->get<uint64_t>();
  return value <= static_cast<uint64_t>(limit) ? static_cast<int64_t>(value)
                                               : -1;
}

}  // namespace

Permutation::Permutation(int64_t count, uint64_t key)
    : count_(static_cast<uint64_t>(count)), key_(key) {
  while (half_bits_ < 31 && (uint64_t{1} << (2 * half_bits_)) < count_)
    ++half_bits_;
}

uint64_t Permutation::Encrypt(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_;
  uint64_t right = value & mask;
  for (uint64_t round = 0; round < kRounds; ++round) {
    const uint64_t mixed =
        left ^ (base::RandomWord(key_, round << 32 | right) & mask);
    left = right;
    right = mixed;
  }
  return left << half_bits_ | right;
}

int64_t Permutation::operator()(int64_t index) const {
  uint64_t value = static_cast<uint64_t>(index);
  do {
    value = Encrypt(value);
  } while (value >= count_);
  return static_cast<int64_t>(value);
}

Order::Order(std::string kind, std::string data, int64_t count,
             const OrderOptions& options)
    : kind_(std::move(kind)),
      data_(std::move(data)),
      count_(count),
      options_(options),
      permutation_(count, EpochKey(options.seed, 0)) {}

void Order::MoveTo(int64_t epoch, int64_t position) {
  if (epoch != epoch_)
    permutation_ = Permutation(count_, EpochKey(options_.seed, epoch));
  epoch_ = epoch;
  position_ = position;
}

absl::Status Order::Begin(int64_t batch) {
  if (batch > count_)
    return absl::InvalidArgumentError(absl::StrCat(
        data_, ": expected at least ", batch, " samples, one batch, found ",
        count_, "; give more data or compile the model for a smaller batch"));
  if (options_.epochs > 0 &&
      (epoch_ >= options_.epochs ||
       (epoch_ + 1 == options_.epochs && batch > count_ - position_)))
    return absl::OutOfRangeError(absl::StrCat(data_, ": all ", options_.epochs,
                                              " epochs of ", count_,
                                              " samples are used up"));
  if (batch > count_ - position_) MoveTo(epoch_ + 1, 0);
  return absl::OkStatus();
}

int64_t Order::Sample(int64_t row) const {
  const int64_t index = position_ + row;
  return options_.shuffle ? permutation_(index) : index;
}

std::string Order::State() const {
  nlohmann::json state = {
      {"version", kStateVersion}, {"kind", kind_},
      {"samples", count_},        {"shuffle", options_.shuffle},
      {"epoch", epoch_},          {"position", position_}};
  if (options_.shuffle) state["seed"] = options_.seed;
  return state.dump();
}

absl::Status Order::Restore(const std::string& text) {
  const nlohmann::json state = nlohmann::json::parse(text, nullptr, false);
  if (!state.is_object())
    return absl::InvalidArgumentError(absl::StrCat(
        data_, ": expected the state of a data source, a JSON object, found ",
        text.empty() ? "nothing" : "something else"));
  nlohmann::json wanted = {{"version", kStateVersion},
                           {"kind", kind_},
                           {"samples", count_},
                           {"shuffle", options_.shuffle}};
  if (options_.shuffle) wanted["seed"] = options_.seed;
  for (const auto& [name, value] : wanted.items())
    if (state.find(name) == state.end() || state[name] != value)
      return absl::InvalidArgumentError(absl::StrCat(
          data_, ": the saved position is that of other data: expected ", name,
          " ", value.dump(), ", found ", Shown(state, name.c_str()),
          "; resume with the data, the sequence length and the seed that the "
          "run began with"));
  const int64_t epoch = Count(state, "epoch", int64_t{1} << 62);
  const int64_t position = Count(state, "position", count_);
  if (epoch < 0 || position < 0)
    return absl::InvalidArgumentError(absl::StrCat(
        data_, ": the saved position is damaged: expected an epoch and a ",
        "position of at most ", count_, ", found ", Shown(state, "epoch"),
        " and ", Shown(state, "position")));
  MoveTo(epoch, position);
  return absl::OkStatus();
}

}  // namespace partita::data
