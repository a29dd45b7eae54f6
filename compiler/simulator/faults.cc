// Parses faults and computes their slowdowns.
#include "compiler/simulator/faults.h"

#include <algorithm>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace partita::simulator {
namespace {

absl::Status Bad(const std::string& text, const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat("--fault: expected device=RANK:SHARE, link=RANK-RANK:SHARE "
                   "or link=RANK:SHARE, SHARE being the part of the speed that "
                   "is left, as in link=0-1:0.1, found '",
                   text, "'", what.empty() ? "" : ": ", what));
}

absl::StatusOr<int64_t> ParseRank(const std::string& text,
                                  const std::string& rank, int64_t devices) {
  int64_t value = -1;
  if (!absl::SimpleAtoi(rank, &value) || value < 0)
    return Bad(text, absl::StrCat("'", rank, "' is no rank"));
  if (value >= devices)
    return Bad(text, absl::StrCat("the program has ranks 0 to ", devices - 1));
  return value;
}

absl::Status AddFault(const std::string& text, int64_t devices,
                      Faults& faults) {
  const size_t equals = text.find('='), colon = text.rfind(':');
  if (equals == std::string::npos || colon == std::string::npos ||
      colon < equals)
    return Bad(text, "");
  const std::string kind = text.substr(0, equals),
                    where = text.substr(equals + 1, colon - equals - 1);
  double share = 0;
  if (!absl::SimpleAtod(text.substr(colon + 1), &share) ||
      !(share > 0 && share <= 1))
    return Bad(text, "the share must be above 0 and at most 1");
  if (kind == "device") {
    PARTITA_ASSIGN_OR_RETURN(const int64_t rank,
                             ParseRank(text, where, devices));
    if (!faults.devices.emplace(rank, share).second)
      return Bad(text, "the device has a fault already");
    return absl::OkStatus();
  }
  if (kind != "link") return Bad(text, "");
  const size_t dash = where.find('-', 1);
  PARTITA_ASSIGN_OR_RETURN(const int64_t one,
                           ParseRank(text, where.substr(0, dash), devices));
  std::pair<int64_t, int64_t> link(one, -1);
  if (dash != std::string::npos) {
    PARTITA_ASSIGN_OR_RETURN(const int64_t other,
                             ParseRank(text, where.substr(dash + 1), devices));
    if (one == other) return Bad(text, "a link has two ends");
    link = {std::min(one, other), std::max(one, other)};
  }
  if (!faults.links.emplace(link, share).second)
    return Bad(text, "the link has a fault already");
  return absl::OkStatus();
}

}  // namespace

double Faults::Slowness(int64_t rank) const {
  const auto found = devices.find(rank);
  return found == devices.end() ? 1 : 1 / found->second;
}

double Faults::LinkSlowness(int64_t from, int64_t to) const {
  double slowness = 1;
  const std::pair<int64_t, int64_t> places[] = {
      {from, -1}, {to, -1}, {std::min(from, to), std::max(from, to)}};
  for (const auto& place : places) {
    const auto found = links.find(place);
    if (found != links.end()) slowness = std::max(slowness, 1 / found->second);
  }
  return slowness;
}

double Faults::GroupSlowness(const std::vector<int64_t>& ranks) const {
  if (links.empty() || ranks.size() < 2) return 1;
  const std::set<int64_t> members(ranks.begin(), ranks.end());
  double slowness = 1;
  for (const auto& [link, share] : links)
    if (members.count(link.first) > 0 &&
        (link.second < 0 || members.count(link.second) > 0))
      slowness = std::max(slowness, 1 / share);
  return slowness;
}

absl::StatusOr<Faults> ParseFaults(const std::vector<std::string>& texts,
                                   int64_t devices) {
  Faults faults;
  for (const std::string& text : texts)
    PARTITA_RETURN_IF_ERROR(AddFault(text, devices, faults));
  return faults;
}

}  // namespace partita::simulator
