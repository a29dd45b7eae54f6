// The names of frontends/builder that handlers of operators use.
#ifndef PARTITA_FRONTENDS_ONNX_BUILDER_NAMES_H_
#define PARTITA_FRONTENDS_ONNX_BUILDER_NAMES_H_

#include "frontends/builder/emitter.h"

namespace partita::onnx {

using builder::Compare;
using builder::countUp;
using builder::Dims;
using builder::Emitter;
using builder::product;
using builder::Shape;
using builder::toString;
using builder::Val;

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_BUILDER_NAMES_H_
