// Checks the ELF header and the program headers.
#include "runtime/cpu/elf_check.h"

#include <elf.h>
#include <string.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace partita::cpu {
namespace {

#if defined(__x86_64__)
constexpr int kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr int kMachine = EM_AARCH64;
#else
#error "which machine code does this processor run?"
#endif

absl::Status Bad(const std::string& message) {
  return absl::InvalidArgumentError(absl::StrCat(
      "the code section is no shared library for this processor: ", message));
}

bool Inside(uint64_t offset, uint64_t bytes, uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

}  // namespace

absl::Status CheckSharedLibrary(std::string_view code) {
  Elf64_Ehdr header;
  if (code.size() < sizeof(header))
    return Bad(absl::StrCat("it has ", code.size(), " bytes"));
  memcpy(&header, code.data(), sizeof(header));
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return Bad("it is not an ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine)
    return Bad("it is for another kind of processor");
  if (header.e_type != ET_DYN) return Bad("it is another kind of ELF file");
  const uint64_t table = uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
  if (header.e_phentsize != sizeof(Elf64_Phdr) ||
      !Inside(header.e_phoff, table, code.size()))
    return Bad("it is truncated");
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    memcpy(
        &segment,
        code.data() + header.e_phoff + static_cast<size_t>(i) * sizeof(segment),
        sizeof(segment));
    if (segment.p_type != PT_LOAD && segment.p_type != PT_DYNAMIC) continue;
    if (!Inside(segment.p_offset, segment.p_filesz, code.size()))
      return Bad("it is truncated");
  }
  return absl::OkStatus();
}

}  // namespace partita::cpu
