// What an importer leaves behind beside shardings.
#ifndef PARTITA_DIALECTS_DIST_ANNOTATIONS_H_
#define PARTITA_DIALECTS_DIST_ANNOTATIONS_H_

namespace partita::dist {

// On a module: how many operations an importer gave `dist.shardings`.
inline constexpr char kAnnotationsAttr[] = "dist.annotations";

}  // namespace partita::dist

#endif  // PARTITA_DIALECTS_DIST_ANNOTATIONS_H_
