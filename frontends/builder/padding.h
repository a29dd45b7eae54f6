// Padding between the elements of a tensor.
#ifndef PARTITA_FRONTENDS_BUILDER_PADDING_H_
#define PARTITA_FRONTENDS_BUILDER_PADDING_H_

#include "frontends/builder/emitter.h"

namespace partita::builder {

// Puts `between[i]` copies of the scalar `value` between neighbours along
// dimension i. Entries are not negative.
Val spreadApart(Emitter& e, Val x, Val value, Dims between);

}  // namespace partita::builder

#endif  // PARTITA_FRONTENDS_BUILDER_PADDING_H_
