// The tensor maps of a kernel's parts (dialects/exec/kernel_parts.h).
#ifndef PARTITA_COMPILER_KERNELS_PART_MAPS_H_
#define PARTITA_COMPILER_KERNELS_PART_MAPS_H_

namespace partita::kernels {

// Attribute of a kernel function: a list of the maps of each part, in launch
// order. Absent if no part has maps. split_launches removes it and gives each
// launch its own.
inline constexpr char kPartMapsAttr[] = "kernel.part_maps";

}  // namespace partita::kernels

#endif  // PARTITA_COMPILER_KERNELS_PART_MAPS_H_
