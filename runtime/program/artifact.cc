// Reads and writes artifacts. Validates the header before anything it points
// to, each section's checksum before its content, and the flatbuffer's
// structure before its meaning.
#include "runtime/program/artifact.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "flatbuffers/flatbuffers.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/checksum.h"
#include "runtime/base/status_macros.h"
#include "runtime/program/validate.h"

namespace partita::program {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "the header is read as it lies in memory");

constexpr char kMagic[8] = {'P', 'A', 'R', 'T', 'I', 'T', 'A', '\0'};
constexpr int kSectionCount = 3;
constexpr const char* kSectionNames[kSectionCount] = {"program", "code",
                                                      "data"};
constexpr uint64_t kSectionAlignment = 4096;
constexpr flatbuffers::uoffset_t kMaxTables = 4 << 20;

struct Section {
  uint64_t offset;
  uint64_t bytes;
  uint32_t crc;
  uint32_t zero;
};

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t section_count;
  uint64_t file_bytes;
  Section sections[kSectionCount];
  uint32_t header_crc;
  char padding[28];
};
static_assert(sizeof(Section) == 24 && sizeof(Header) == 128);

uint32_t HeaderCrc(const Header& header) {
  return base::Crc32(
      {reinterpret_cast<const char*>(&header), offsetof(Header, header_crc)});
}

int64_t AlignUp(int64_t value, int64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// Checks the flatbuffer's structure and then its meaning.
absl::StatusOr<const Program*> CheckedProgram(std::string_view bytes,
                                              int64_t data_bytes,
                                              bool has_code) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  flatbuffers::Verifier verifier(data, bytes.size(), /*max_depth=*/64,
                                 kMaxTables);
  if (bytes.size() < 8 || !VerifyProgramBuffer(verifier)) {
    return absl::DataLossError(
        "the program section is not a valid program (its structure is "
        "damaged)");
  }
  const Program* program = GetProgram(data);
  PARTITA_RETURN_IF_ERROR(ValidateProgram(*program, data_bytes, has_code));
  return program;
}

absl::Status CheckHeader(const Header& header, std::string_view file) {
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) {
    return absl::InvalidArgumentError(
        "expected a compiled Partita model (made by 'partita compile'), found "
        "another kind of file");
  }
  if (header.version != kFormatVersion) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected format version ", kFormatVersion, ", found ", header.version,
        "; compile the model again with this version of Partita"));
  }
  if (header.header_crc != HeaderCrc(header) ||
      header.section_count != kSectionCount) {
    return absl::DataLossError(
        "the header is damaged (its checksum does not match); compile the "
        "model again");
  }
  if (header.file_bytes != file.size()) {
    return absl::DataLossError(absl::StrCat(
        "expected ", header.file_bytes, " bytes, found ", file.size(),
        "; the file was cut or extended, copy or compile it again"));
  }
  for (int i = 0; i < kSectionCount; ++i) {
    const Section& section = header.sections[i];
    if (section.offset % kSectionAlignment != 0 ||
        section.offset > file.size() ||
        section.bytes > file.size() - section.offset) {
      return absl::DataLossError(absl::StrCat(
          "the ", kSectionNames[i], " section lies outside the file"));
    }
  }
  return absl::OkStatus();
}

absl::Status WithPath(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(path, ": ", status.message()));
}

// Streams one section into the file and describes it in `section`.
class SectionWriter {
 public:
  SectionWriter(base::AtomicFile& file, Section& section)
      : file_(file), section_(section) {}

  absl::Status Begin() {
    PARTITA_RETURN_IF_ERROR(Pad(AlignUp(file_.size(), kSectionAlignment)));
    section_ = {static_cast<uint64_t>(file_.size()), 0, 0, 0};
    return absl::OkStatus();
  }
  absl::Status Append(std::string_view bytes) {
    section_.crc = base::Crc32(bytes, section_.crc);
    section_.bytes += bytes.size();
    return file_.Append(bytes);
  }
  absl::Status AppendZerosTo(int64_t position) {
    const int64_t count = position - static_cast<int64_t>(section_.bytes);
    return count > 0 ? Append(std::string(static_cast<size_t>(count), '\0'))
                     : absl::OkStatus();
  }

 private:
  absl::Status Pad(int64_t size) {
    return file_.Append(
        std::string(static_cast<size_t>(size - file_.size()), '\0'));
  }

  base::AtomicFile& file_;
  Section& section_;
};

absl::Status WriteSections(base::AtomicFile& file, const ArtifactParts& parts,
                           Header& header) {
  SectionWriter program(file, header.sections[0]);
  PARTITA_RETURN_IF_ERROR(program.Begin());
  PARTITA_RETURN_IF_ERROR(program.Append(parts.program));
  SectionWriter code(file, header.sections[1]);
  PARTITA_RETURN_IF_ERROR(code.Begin());
  PARTITA_RETURN_IF_ERROR(code.Append(parts.code));
  SectionWriter data(file, header.sections[2]);
  PARTITA_RETURN_IF_ERROR(data.Begin());
  for (const DataSection::Piece& piece : parts.data.pieces()) {
    PARTITA_RETURN_IF_ERROR(data.AppendZerosTo(piece.position));
    PARTITA_RETURN_IF_ERROR(data.Append(piece.bytes()));
  }
  return data.AppendZerosTo(parts.data.size());
}

}  // namespace

std::string_view DataSection::Piece::bytes() const {
  return file == nullptr ? std::string_view(owned)
                         : file->bytes().substr(file_offset, file_bytes);
}

int64_t DataSection::Append(Piece piece) {
  const int64_t position = size_;
  piece.position = position;
  size_ = AlignUp(position + static_cast<int64_t>(piece.bytes().size()),
                  kDataAlignment);
  pieces_.push_back(std::move(piece));
  return position;
}

int64_t DataSection::Add(std::string bytes) {
  Piece piece;
  piece.owned = std::move(bytes);
  return Append(std::move(piece));
}

int64_t DataSection::AddFromFile(std::shared_ptr<const base::MappedFile> file,
                                 uint64_t offset, uint64_t bytes) {
  Piece piece;
  piece.file = std::move(file);
  piece.file_offset = offset;
  piece.file_bytes = bytes;
  return Append(std::move(piece));
}

std::string SerializeProgram(const ProgramT& program) {
  flatbuffers::FlatBufferBuilder builder;
  FinishProgramBuffer(builder, Program::Pack(builder, &program));
  return std::string(reinterpret_cast<const char*>(builder.GetBufferPointer()),
                     builder.GetSize());
}

absl::Status WriteArtifact(const std::string& path,
                           const ArtifactParts& parts) {
  absl::StatusOr<const Program*> program =
      CheckedProgram(parts.program, parts.data.size(), !parts.code.empty());
  if (!program.ok()) return WithPath(path, program.status());
  Header header = {};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kFormatVersion;
  header.section_count = kSectionCount;
  PARTITA_ASSIGN_OR_RETURN(std::unique_ptr<base::AtomicFile> file,
                           base::AtomicFile::Create(path));
  PARTITA_RETURN_IF_ERROR(file->Append(std::string(sizeof(Header), '\0')));
  PARTITA_RETURN_IF_ERROR(WriteSections(*file, parts, header));
  header.file_bytes = static_cast<uint64_t>(file->size());
  header.header_crc = HeaderCrc(header);
  PARTITA_RETURN_IF_ERROR(file->WriteAt(
      0, {reinterpret_cast<const char*>(&header), sizeof(header)}));
  return file->Commit();
}

absl::StatusOr<Artifact> Artifact::Open(const std::string& path,
                                        const OpenOptions& options) {
  Artifact artifact;
  PARTITA_ASSIGN_OR_RETURN(artifact.file_, base::MappedFile::Open(path));
  const std::string_view file = artifact.file_.bytes();
  Header header;
  if (file.size() < sizeof(header)) {
    const bool ours =
        !file.empty() &&
        file.substr(0, 8) == std::string_view(kMagic, 8).substr(0, file.size());
    return absl::DataLossError(absl::StrCat(
        path, ": expected a compiled Partita model, found ", file.size(),
        " bytes",
        ours ? " of one that was cut; copy or compile it again" : ""));
  }
  std::memcpy(&header, file.data(), sizeof(header));
  if (absl::Status status = CheckHeader(header, file); !status.ok())
    return WithPath(path, status);
  std::string_view sections[kSectionCount];
  for (int i = 0; i < kSectionCount; ++i) {
    sections[i] =
        file.substr(header.sections[i].offset, header.sections[i].bytes);
    if (options.verify_checksums &&
        base::Crc32(sections[i]) != header.sections[i].crc) {
      return absl::DataLossError(
          absl::StrCat(path, ": the ", kSectionNames[i],
                       " section is damaged (its checksum does not match); "
                       "copy or compile the file again"));
    }
  }
  artifact.checksum_ = header.header_crc;
  artifact.code_ = sections[1];
  artifact.data_ = sections[2];
  absl::StatusOr<const Program*> program =
      CheckedProgram(sections[0], static_cast<int64_t>(sections[2].size()),
                     !sections[1].empty());
  if (!program.ok()) return WithPath(path, program.status());
  artifact.program_ = *program;
  return artifact;
}

}  // namespace partita::program
