// The terms that core shares with the dialects: dialects/terms defines them.
#ifndef PARTITA_COMPILER_CORE_TERMS_H_
#define PARTITA_COMPILER_CORE_TERMS_H_

#include "dialects/terms/collective_kind.h"
#include "dialects/terms/reduction.h"
#include "dialects/terms/sharding_rule.h"

namespace partita::core {

using terms::AttentionFactors;
using terms::CollectiveKind;
using terms::DimFactors;
using terms::Factor;
using terms::FactorKind;
using terms::IsHalo;
using terms::IsPartial;
using terms::IsPartialInSome;
using terms::IsReduced;
using terms::NameOf;
using terms::Reduction;
using terms::ShardingRule;
using terms::TensorFactors;

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_TERMS_H_
