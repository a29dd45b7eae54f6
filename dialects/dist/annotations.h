// Attributes that importers and the training-step passes leave for the passes
// that divide the model.
#ifndef PARTITA_DIALECTS_DIST_ANNOTATIONS_H_
#define PARTITA_DIALECTS_DIST_ANNOTATIONS_H_

namespace partita::dist {

// On a module: the number of operations that an importer gave `dist.shardings`.
inline constexpr char kAnnotationsAttr[] = "dist.annotations";

// On a call in @main with operands (momentum, gradient) that returns beta *
// momentum + (1 - beta) * gradient: the parameter's name, and beta. Devices
// that hold partial gradients may exchange them in one bit per element.
inline constexpr char kOneBitAttr[] = "nn.one_bit";
inline constexpr char kBetaAttr[] = "nn.beta";

}  // namespace partita::dist

#endif  // PARTITA_DIALECTS_DIST_ANNOTATIONS_H_
