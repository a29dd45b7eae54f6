// Looks up oneDNN's functions.
#include "runtime/cpu/dnnl_library.h"

#include "absl/status/statusor.h"
#include "runtime/base/library.h"
#include "runtime/base/status_macros.h"
#include "runtime/cpu/threads.h"

namespace partita::cpu {
namespace {

absl::StatusOr<DnnlLibrary> Open() {
  // oneDNN uses libgomp, which reads its configuration when it is loaded.
  PARTITA_RETURN_IF_ERROR(OpenOpenMp());
  PARTITA_ASSIGN_OR_RETURN(
      const base::Library library,
      base::Library::Open({"libdnnl.so.2"}, "oneDNN 2",
                          "install it (Debian 12: libdnnl2)"));
  DnnlLibrary functions;
#define PARTITA_DNNL_LOAD(name) \
  PARTITA_RETURN_IF_ERROR(library.Load("dnnl_" #name, &functions.name));
  PARTITA_DNNL_FUNCTIONS(PARTITA_DNNL_LOAD)
#undef PARTITA_DNNL_LOAD
  return functions;
}

const absl::StatusOr<DnnlLibrary>& Opened() {
  static const auto* const opened = new absl::StatusOr<DnnlLibrary>(Open());
  return *opened;
}

}  // namespace

absl::Status OpenDnnl() { return Opened().status(); }

const DnnlLibrary& Dnnl() { return *Opened(); }

}  // namespace partita::cpu
