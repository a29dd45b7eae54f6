// Combining equal parts of several tensors.
#ifndef PARTITA_RUNTIME_COMM_REDUCE_H_
#define PARTITA_RUNTIME_COMM_REDUCE_H_

#include <cstdint>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/comm/operation.h"

namespace partita::comm {

// Writes inputs[0] op inputs[1] op ... to every output, element by element, in
// this order for all, so that whoever computes it gets the same bits. Sums and
// products of 16-bit floats are computed in f32 and rounded once; integers wrap
// around; NaN wins over every number in kMax and kMin. An output may be one of
// the inputs, but not overlap one otherwise.
void Reduce(Reduction reduction, base::DType dtype,
            const std::vector<const char*>& inputs,
            const std::vector<char*>& outputs, int64_t count);

}  // namespace partita::comm

#endif  // PARTITA_RUNTIME_COMM_REDUCE_H_
