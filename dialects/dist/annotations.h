// What importers, and who makes a training step, leave behind for who divides
// the model.
#ifndef PARTITA_DIALECTS_DIST_ANNOTATIONS_H_
#define PARTITA_DIALECTS_DIST_ANNOTATIONS_H_

namespace partita::dist {

// On a module: how many operations an importer gave `dist.shardings`.
inline constexpr char kAnnotationsAttr[] = "dist.annotations";

// On a call in @main of (momentum, gradient), whose result updates the
// momentum and is beta * momentum + (1 - beta) * gradient: the parameter's
// name, and beta. Devices that have shares of the gradient may exchange it in
// one bit.
inline constexpr char kOneBitAttr[] = "nn.one_bit";
inline constexpr char kBetaAttr[] = "nn.beta";

}  // namespace partita::dist

#endif  // PARTITA_DIALECTS_DIST_ANNOTATIONS_H_
