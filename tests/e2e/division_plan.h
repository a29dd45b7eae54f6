// The plan of a division under which models are tested.
#ifndef PARTITA_TESTS_E2E_DIVISION_PLAN_H_
#define PARTITA_TESTS_E2E_DIVISION_PLAN_H_

#include <utility>

#include "absl/status/statusor.h"
#include "compiler/plan/plan.h"
#include "tests/e2e/divisions.h"

namespace partita::e2e {

inline absl::StatusOr<plan::Plan> PlanOf(const Division& division) {
  plan::Plan plan;
  auto mesh = plan::ParseMeshOption(division.mesh);
  if (!mesh.ok()) return mesh.status();
  plan.mesh = *std::move(mesh);
  auto entries = plan::ParseShardOption(division.shard, plan.mesh);
  if (!entries.ok()) return entries.status();
  plan.shard = *std::move(entries);
  if (division.attention[0] != '\0') {
    auto attention = plan::ParseAttentionOption(division.attention);
    if (!attention.ok()) return attention.status();
    plan.attention = *attention;
  }
  if (division.experts[0] != '\0') {
    auto experts = plan::ParseExpertsOption(division.experts);
    if (!experts.ok()) return experts.status();
    plan.experts = *experts;
  }
  return plan;
}

}  // namespace partita::e2e

#endif  // PARTITA_TESTS_E2E_DIVISION_PLAN_H_
