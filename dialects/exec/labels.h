// Attributes that name operations and kernels for people.
#ifndef PARTITA_DIALECTS_EXEC_LABELS_H_
#define PARTITA_DIALECTS_EXEC_LABELS_H_

namespace partita::exec {

// An operation's Instruction.layer in runtime/program/program.fbs.
inline constexpr char kLayerAttr[] = "layer";
// A kernel function's Kernel.label in runtime/program/program.fbs.
inline constexpr char kLabelAttr[] = "kernel.label";
// Names, on a kernel function without a body, the kernel that it is a part of.
// The body of that kernel describes the work.
inline constexpr char kPartOfAttr[] = "kernel.part_of";
// Metadata of the fused location of a joined launch; its parts are the
// locations of the pieces.
inline constexpr char kPieces[] = "pieces";

}  // namespace partita::exec

#endif  // PARTITA_DIALECTS_EXEC_LABELS_H_
