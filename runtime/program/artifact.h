// The artifact: one file with a compiled program, its machine code and its
// data.
//
//   byte 0    header, 128 bytes, little endian:
//               char     magic[8]    "PARTITA\0"
//               uint32   version     kFormatVersion
//               uint32   sections    3
//               uint64   file_bytes  of the whole file
//               section  program     a flatbuffer defined by program.fbs
//               section  code        an ELF shared library with the generated
//                                    kernels; may be empty
//               section  data        constants and embedded weights; may be
//                                    empty
//               uint32   header_crc  CRC-32 of the 96 bytes before it
//               zeros to byte 128
//             where a section is
//               {uint64 offset, uint64 bytes, uint32 crc, uint32 0}
//   byte 4096 the sections, each at a multiple of 4096, zeros between them.
//             Every piece of the data section begins at a multiple of 64
//             within it.
#ifndef PARTITA_RUNTIME_PROGRAM_ARTIFACT_H_
#define PARTITA_RUNTIME_PROGRAM_ARTIFACT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/mapped_file.h"
#include "runtime/program/program_generated.h"

namespace partita::program {

inline constexpr uint32_t kFormatVersion = 9;
inline constexpr int64_t kDataAlignment = 64;

// The signature of every symbol in Program.kernels. Computes elements [begin,
// end) of the launch's range. `buffers` holds one pointer per operand of a
// piece, in order. `scratch` points to scratch_bytes (64-byte aligned) of this
// thread's own; null if scratch_bytes is 0.
using KernelFunction = void (*)(void* const* buffers, int64_t begin,
                                int64_t end, void* scratch);

// Builds the data section. Each Add returns the offset for Buffer.value (space
// constant) or EmbeddedSource.offset: a multiple of kDataAlignment.
class DataSection {
 public:
  int64_t Add(std::string bytes);
  // Adds bytes [offset, offset + bytes) of a mapped file, which must exist.
  // They are copied when the artifact is written, not before.
  int64_t AddFromFile(std::shared_ptr<const base::MappedFile> file,
                      uint64_t offset, uint64_t bytes);

  // Bytes of the section so far, padding included.
  int64_t size() const { return size_; }

  struct Piece {
    int64_t position;  // in the section
    std::string owned;
    std::shared_ptr<const base::MappedFile>
        file;  // null: the bytes are `owned`
    uint64_t file_offset = 0;
    uint64_t file_bytes = 0;

    std::string_view bytes() const;
  };
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  int64_t Append(Piece piece);

  std::vector<Piece> pieces_;
  int64_t size_ = 0;
};

struct ArtifactParts {
  // A finished flatbuffer (FinishProgramBuffer, so with its file identifier).
  std::string program;
  std::string code;  // a shared library; empty if there are no kernels
  DataSection data;
};

// Checks the program as Artifact::Open would, then writes the file, which
// appears whole or not at all. InvalidArgument with the first mistake if the
// program is not valid, which is a bug of the compiler.
absl::Status WriteArtifact(const std::string& path, const ArtifactParts& parts);

// Packs a program built with the object API (ProgramT) for
// ArtifactParts.program.
std::string SerializeProgram(const ProgramT& program);

struct OpenOptions {
  bool verify_checksums = true;
};

// An artifact in memory: mapped, checked, read only. After Open every index,
// range and size in the program is in bounds (see validate.h), so that readers
// need not check again.
class Artifact {
 public:
  // NotFound, or DataLoss/InvalidArgument with the path, what was expected and
  // what was found.
  static absl::StatusOr<Artifact> Open(const std::string& path,
                                       const OpenOptions& options = {});

  const std::string& path() const { return file_.path(); }
  const Program& program() const { return *program_; }
  std::string_view code() const { return code_; }
  std::string_view data() const { return data_; }
  int64_t file_bytes() const {
    return static_cast<int64_t>(file_.bytes().size());
  }
  const base::MappedFile& file() const { return file_; }
  // Checksum of the header, which includes the checksums of all sections. Files
  // with different checksums have different contents.
  uint32_t checksum() const { return checksum_; }

 private:
  base::MappedFile file_;
  uint32_t checksum_ = 0;
  const Program* program_ = nullptr;
  std::string_view code_;
  std::string_view data_;
};

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_ARTIFACT_H_
