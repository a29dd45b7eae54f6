// Decides which operations exchange axes between two factors.
//
// Attention whose queries are divided needs all keys. Either every device
// gathers the keys and values, or queries, keys and values move from rows to
// heads and the result moves back (DeepSpeed-Ulysses, Jacobs et al., 2023).
#ifndef PARTITA_COMPILER_CORE_CHOOSE_EXCHANGES_H_
#define PARTITA_COMPILER_CORE_CHOOSE_EXCHANGES_H_

#include <vector>

#include "compiler/core/propagate.h"

namespace partita::core {

enum class ExchangeChoice {
  kCheapest,  // exchanges where fewer bytes move and the shards are even
  kNever,
  kAlways
};

// Sets Op::exchanges of each operation whose rule has an exchange and whose
// operands divide the factor that it moves from.
void ChooseExchanges(const std::vector<Sharding>& shardings,
                     ExchangeChoice choice, Graph& graph);

}  // namespace partita::core

#endif  // PARTITA_COMPILER_CORE_CHOOSE_EXCHANGES_H_
