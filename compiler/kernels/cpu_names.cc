// Checks names against LLVM's tables of processors.
#include "compiler/kernels/cpu_names.h"

#include <memory>
#include <utility>
#include <vector>

#include "llvm/ADT/STLExtras.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/TargetParser/X86TargetParser.h"

namespace partita::kernels {
namespace {

llvm::Triple hostTriple() {
  return llvm::Triple(llvm::sys::getDefaultTargetTriple());
}

std::unique_ptr<llvm::MCSubtargetInfo> subtarget(llvm::StringRef cpu) {
  llvm::InitializeNativeTarget();
  const llvm::Triple triple = hostTriple();
  std::string error;
  const llvm::Target* target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) return nullptr;
  return std::unique_ptr<llvm::MCSubtargetInfo>(
      target->createMCSubtargetInfo(triple, cpu, ""));
}

// Names of processors that run code of this machine's architecture. LLVM's
// tables for x86 include 32-bit processors.
std::vector<std::string> knownCpus() {
  std::vector<std::string> names;
  if (hostTriple().getArch() == llvm::Triple::x86_64) {
    llvm::SmallVector<llvm::StringRef> values;
    llvm::X86::fillValidCPUArchList(values, /*Only64Bit=*/true);
    for (llvm::StringRef name : values) names.push_back(name.str());
  } else if (auto any = subtarget("")) {
    for (const llvm::SubtargetSubTypeKV& entry :
         any->getAllProcessorDescriptions())
      names.push_back(std::string(entry.Key));
  }
  return names;
}

}  // namespace

std::string checkCpu(const std::string& cpu) {
  if (cpu == "host") return "";
  const std::vector<std::string> names = knownCpus();
  if (llvm::is_contained(names, cpu)) return "";
  std::vector<std::pair<unsigned, std::string>> ranked;
  for (llvm::StringRef name : names) {
    // A name that begins with `cpu` is probably meant.
    const bool begins = !cpu.empty() && name.starts_with(cpu);
    ranked.push_back({begins ? 0 : name.edit_distance(cpu), name.str()});
  }
  llvm::sort(ranked);
  constexpr size_t kShown = 5;
  std::string nearest;
  for (const auto& [distance, name] : llvm::ArrayRef(ranked).take_front(kShown))
    nearest += (nearest.empty() ? "" : ", ") + name;
  return "expected 'host' or the name of a processor, found '" + cpu +
         "'; the nearest known are " + nearest;
}

std::string requiredFeatures(const std::string& cpu) {
  std::vector<std::string> names;
  if (cpu == "host") {
    for (const auto& feature : llvm::sys::getHostCPUFeatures())
      if (feature.second) names.push_back(feature.first().str());
  } else if (hostTriple().isX86()) {
    llvm::SmallVector<llvm::StringRef> features;
    llvm::X86::getFeaturesForCPU(cpu, features);
    for (llvm::StringRef feature : features) names.push_back(feature.str());
  } else if (auto known = subtarget(cpu)) {
    for (const llvm::SubtargetFeatureKV& feature :
         known->getEnabledProcessorFeatures())
      names.push_back(std::string(feature.Key));
  }
  llvm::sort(names);
  std::string features;
  for (const std::string& name : names)
    features += (features.empty() ? "+" : ",+") + name;
  return features;
}

}  // namespace partita::kernels
