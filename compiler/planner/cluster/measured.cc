// Interpolates measured rates, and names the tables.
#include "compiler/planner/cluster/measured.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "compiler/core/precision.h"

namespace partita::planner {
namespace {

constexpr std::array<const char*, 4> kForms = {"nn", "nt", "tn", "packed"};
constexpr std::array<const char*, 3> kKinds = {"pointwise", "window",
                                               "depthwise"};
constexpr std::array<const char*, 3> kDirections = {"forward", "input_grad",
                                                    "weight_grad"};
constexpr std::array<const char*, 5> kCollectives = {
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "exchange"};

template <size_t N>
bool Contains(const std::array<const char*, N>& names,
              const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string> SplitWords(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text)
    if (c == ' ')
      words.emplace_back();
    else
      words.back() += c;
  return words;
}

// Position of a size between two measured sizes: the index of the lower one,
// and the fraction of the way to the next, in logarithms.
struct Place {
  size_t below = 0;
  double share = 0;
};
Place PlaceOf(const std::vector<double>& sizes, double at) {
  Place place;
  if (at <= sizes.front() || sizes.size() == 1) return place;
  while (place.below + 2 < sizes.size() && sizes[place.below + 1] <= at)
    ++place.below;
  const double low = sizes[place.below], high = sizes[place.below + 1];
  place.share = std::min(1.0, std::log(at / low) / std::log(high / low));
  return place;
}

}  // namespace

double RateTable::At(const std::vector<double>& at) const {
  std::vector<Place> places;
  for (size_t d = 0; d < sizes.size(); ++d)
    places.push_back(PlaceOf(sizes[d], at[d]));
  double sum = 0;
  for (size_t corner = 0; corner < (size_t{1} << places.size()); ++corner) {
    double weight = 1;
    size_t index = 0;
    for (size_t d = 0; d < places.size(); ++d) {
      const bool above = (corner >> d & 1) != 0;
      weight *= above ? places[d].share : 1 - places[d].share;
      index = index * sizes[d].size() +
              std::min(places[d].below + above, sizes[d].size() - 1);
    }
    if (weight > 0) sum += weight * std::log(rates[index]);
  }
  return std::exp(sum);
}

double RateTable::Seconds(double bytes) const {
  return std::max(bytes, sizes[0].front()) / At({bytes});
}

std::string ProductName(const std::string& precision, ProductForm form) {
  return "product " + precision + " " + kForms[static_cast<size_t>(form)];
}

std::string ConvName(const std::string& precision, const std::string& direction,
                     ConvKind kind) {
  return "convolution " + precision + " " + direction + " " +
         kKinds[static_cast<size_t>(kind)];
}

std::string CollectiveName(const std::string& kind, int devices) {
  return kind + " " + std::to_string(devices);
}

std::string AttentionName(bool backward) {
  return backward ? "attention backward" : "attention forward";
}

int DimensionsOf(const std::string& name) {
  const std::vector<std::string> words = SplitWords(name);
  for (const std::string& known :
       {AttentionName(false), AttentionName(true), std::string(kCopyName),
        std::string(kUpdateName), std::string(kSendName)})
    if (name == known) return 1;
  if (words.size() == 2 && Contains(kCollectives, words[0]) &&
      !words[1].empty() && words[1].size() < 9 &&
      words[1].find_first_not_of("0123456789") == std::string::npos)
    return 1;
  if (words.size() == 3 && words[0] == "product" &&
      Contains(core::kPrecisionNames, words[1]) && Contains(kForms, words[2]))
    return 3;
  if (words.size() == 4 && words[0] == "convolution" &&
      Contains(core::kPrecisionNames, words[1]) &&
      Contains(kDirections, words[2]) && Contains(kKinds, words[3]))
    return words[3] == kKinds[static_cast<size_t>(ConvKind::kDepthwise)] ? 2
                                                                         : 3;
  return 0;
}

const RateTable* FindTable(const RateTables& tables, const std::string& name) {
  const auto found = tables.find(name);
  return found == tables.end() ? nullptr : &found->second;
}

}  // namespace partita::planner
