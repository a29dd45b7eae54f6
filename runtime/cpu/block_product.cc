// Block products as oneDNN matmuls that are prepared for one thread.
#include "runtime/cpu/block_product.h"

#include <cstring>
#include <utility>

#include "runtime/base/status_macros.h"
#include "runtime/cpu/memory.h"
#include "runtime/cpu/threads.h"

namespace partita::cpu {
namespace {

struct Layouts {
  dnnl_memory_desc_t lhs, rhs, out;
};

// A dimension of size 1 gets the stride of a dense layout, which oneDNN
// recognises.
absl::StatusOr<dnnl_memory_desc_t> MakeMatrix(base::DType dtype, int64_t rows,
                                              int64_t columns,
                                              std::array<int64_t, 2> strides) {
  if (columns == 1 && (rows == 1 || strides[0] != 1)) strides[1] = 1;
  if (rows == 1) strides[0] = columns * strides[1];
  if (columns == 1 && strides[0] == 1 && rows > 1) strides[1] = rows;
  return MakeMemoryDesc(dtype, {rows, columns}, {strides[0], strides[1]});
}

absl::StatusOr<Layouts> LayoutsOf(const BlockProductDesc& desc) {
  Layouts layouts;
  PARTITA_ASSIGN_OR_RETURN(
      layouts.lhs, MakeMatrix(desc.dtype, desc.m, desc.k, desc.lhs_strides));
  PARTITA_ASSIGN_OR_RETURN(
      layouts.rhs, MakeMatrix(desc.dtype, desc.k, desc.n, desc.rhs_strides));
  PARTITA_ASSIGN_OR_RETURN(layouts.out, MakeMatrix(desc.out_dtype, desc.m,
                                                   desc.n, desc.out_strides));
  return layouts;
}

absl::StatusOr<DnnlPrimitiveDesc> Describe(const DnnlContext& context,
                                           const Layouts& layouts, bool adds) {
  PARTITA_ASSIGN_OR_RETURN(
      const DnnlAttr attr,
      MakeAttr(device::Activation::kNone, adds ? &layouts.out : nullptr,
               /*sums=*/true));
  dnnl_matmul_desc_t matmul;
  PARTITA_RETURN_IF_ERROR(
      DnnlStatus(Dnnl().matmul_desc_init(&matmul, &layouts.lhs, &layouts.rhs,
                                         nullptr, &layouts.out),
                 "matrix product"));
  // The number of threads is a part of the primitive.
  const OpenMpThreads one(1);
  return MakePrimitiveDesc(&matmul, attr.get(), context.engine.get());
}

std::string ImplementationOf(const DnnlPrimitiveDesc& desc) {
  const char* name = nullptr;
  return Dnnl().primitive_desc_query(desc.get(), dnnl_query_impl_info_str, 0,
                                     &name) == dnnl_success
             ? name
             : "";
}

absl::Status Point(const DnnlMemory& memory, const void* data) {
  return DnnlStatus(
      Dnnl().memory_set_data_handle(memory.get(), const_cast<void*>(data)),
      "argument");
}

}  // namespace

absl::StatusOr<dnnl_memory_desc_t> BlockProduct::RhsLayout(
    const BlockProductDesc& desc) {
  return MakeMatrix(desc.dtype, desc.k, desc.n, desc.rhs_strides);
}

absl::StatusOr<dnnl_memory_desc_t> BlockProduct::PackedLayout(
    const DnnlContext& context, const BlockProductDesc& desc) {
  PARTITA_ASSIGN_OR_RETURN(Layouts layouts, LayoutsOf(desc));
  PARTITA_ASSIGN_OR_RETURN(layouts.rhs,
                           MakeAnyMemoryDesc(desc.dtype, {desc.k, desc.n}));
  PARTITA_ASSIGN_OR_RETURN(const DnnlPrimitiveDesc primitive,
                           Describe(context, layouts, desc.adds));
  return *Dnnl().primitive_desc_query_md(
      primitive.get(), dnnl_query_exec_arg_md, DNNL_ARG_WEIGHTS);
}

absl::StatusOr<BlockProduct> BlockProduct::Create(
    const DnnlContext& context, const BlockProductDesc& desc,
    const dnnl_memory_desc_t* packed, int threads) {
  PARTITA_ASSIGN_OR_RETURN(Layouts layouts, LayoutsOf(desc));
  if (packed != nullptr) layouts.rhs = *packed;
  PARTITA_ASSIGN_OR_RETURN(const DnnlPrimitiveDesc primitive,
                           Describe(context, layouts, desc.adds));
  BlockProduct product;
  product.stream_ = context.stream.get();
  product.description_ = ImplementationOf(primitive);
  if (packed != nullptr && product.description_.rfind("ref", 0) == 0)
    return absl::UnimplementedError(
        "oneDNN has only a reference implementation for the packed matrices");
  {
    const OpenMpThreads one(1);
    PARTITA_ASSIGN_OR_RETURN(product.primitive_,
                             MakePrimitive(primitive.get()));
  }
  const dnnl_memory_desc_t& scratchpad = *Dnnl().primitive_desc_query_md(
      primitive.get(), dnnl_query_scratchpad_md, 0);
  product.scratch_bytes_ =
      AlignUp(static_cast<int64_t>(Dnnl().memory_desc_get_size(&scratchpad)));
  for (int thread = 0; thread < threads; ++thread) {
    Arguments arguments;
    dnnl_engine_t engine = context.engine.get();
    PARTITA_ASSIGN_OR_RETURN(arguments.lhs, MakeMemory(layouts.lhs, engine));
    if (packed == nullptr) {
      PARTITA_ASSIGN_OR_RETURN(arguments.rhs, MakeMemory(layouts.rhs, engine));
    }
    PARTITA_ASSIGN_OR_RETURN(arguments.out, MakeMemory(layouts.out, engine));
    PARTITA_ASSIGN_OR_RETURN(arguments.scratchpad,
                             MakeMemory(scratchpad, engine));
    product.arguments_.push_back(std::move(arguments));
  }
  return product;
}

absl::Status BlockProduct::Run(int thread, const void* lhs, const void* rhs,
                               void* out, char* scratch) {
  const DnnlMemory& memory = arguments_[static_cast<size_t>(thread)].rhs;
  PARTITA_RETURN_IF_ERROR(Point(memory, rhs));
  return RunPacked(thread, lhs, memory.get(), out, scratch);
}

absl::Status BlockProduct::RunPacked(int thread, const void* lhs,
                                     dnnl_memory_t rhs, void* out,
                                     char* scratch) {
  const Arguments& arguments = arguments_[static_cast<size_t>(thread)];
  PARTITA_RETURN_IF_ERROR(Point(arguments.lhs, lhs));
  PARTITA_RETURN_IF_ERROR(Point(arguments.out, out));
  PARTITA_RETURN_IF_ERROR(Point(arguments.scratchpad, scratch));
  const dnnl_exec_arg_t list[] = {
      {DNNL_ARG_SRC, arguments.lhs.get()},
      {DNNL_ARG_WEIGHTS, rhs},
      {DNNL_ARG_DST, arguments.out.get()},
      {DNNL_ARG_SCRATCHPAD, arguments.scratchpad.get()}};
  return DnnlStatus(
      Dnnl().primitive_execute(primitive_.get(), stream_, 4, list),
      description_.c_str());
}

}  // namespace partita::cpu
