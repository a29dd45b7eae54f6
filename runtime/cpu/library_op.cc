// Runs oneDNN primitives. Each run binds arguments by pointer and allocates
// nothing.
#include "runtime/cpu/library_op.h"

#include <algorithm>

#include "runtime/base/status_macros.h"

namespace partita::cpu {
namespace {

absl::StatusOr<DnnlPrimitive> MakeReorder(const dnnl_memory_desc_t& from,
                                          const dnnl_memory_desc_t& to,
                                          dnnl_engine_t engine) {
  PARTITA_ASSIGN_OR_RETURN(const DnnlAttr attr,
                           MakeAttr(device::Activation::kNone, nullptr));
  dnnl_primitive_desc_t handle = nullptr;
  PARTITA_RETURN_IF_ERROR(
      DnnlStatus(Dnnl().reorder_primitive_desc_create(&handle, &from, engine,
                                                      &to, engine, attr.get()),
                 "reorder"));
  const DnnlPrimitiveDesc desc(handle);
  return MakePrimitive(desc.get());
}

int64_t ScratchpadBytes(const_dnnl_primitive_t primitive) {
  const_dnnl_primitive_desc_t desc = nullptr;
  if (Dnnl().primitive_get_primitive_desc(primitive, &desc) != dnnl_success)
    return 0;
  return static_cast<int64_t>(Dnnl().memory_desc_get_size(
      Dnnl().primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0)));
}

// Runs a reorder with temporary scratch, for preparation only.
absl::Status ReorderOnce(DnnlContext& context, const dnnl_memory_desc_t& from,
                         const void* source, const dnnl_memory_desc_t& to,
                         void* target) {
  PARTITA_ASSIGN_OR_RETURN(const DnnlPrimitive reorder,
                           MakeReorder(from, to, context.engine.get()));
  PARTITA_ASSIGN_OR_RETURN(const DnnlMemory input,
                           MakeMemory(from, context.engine.get()));
  PARTITA_ASSIGN_OR_RETURN(const DnnlMemory output,
                           MakeMemory(to, context.engine.get()));
  Scratch scratch;
  PARTITA_RETURN_IF_ERROR(scratch.Reserve(ScratchpadBytes(reorder.get()) + 1));
  const_dnnl_primitive_desc_t desc = nullptr;
  PARTITA_RETURN_IF_ERROR(DnnlStatus(
      Dnnl().primitive_get_primitive_desc(reorder.get(), &desc), "reorder"));
  PARTITA_ASSIGN_OR_RETURN(const DnnlMemory scratchpad,
                           MakeMemory(*Dnnl().primitive_desc_query_md(
                                          desc, dnnl_query_scratchpad_md, 0),
                                      context.engine.get()));
  PARTITA_RETURN_IF_ERROR(DnnlStatus(
      Dnnl().memory_set_data_handle(input.get(), const_cast<void*>(source)),
      "source"));
  PARTITA_RETURN_IF_ERROR(DnnlStatus(
      Dnnl().memory_set_data_handle(output.get(), target), "target"));
  PARTITA_RETURN_IF_ERROR(DnnlStatus(
      Dnnl().memory_set_data_handle(scratchpad.get(), scratch.data()),
      "scratchpad"));
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, input.get()},
                                       {DNNL_ARG_TO, output.get()},
                                       {DNNL_ARG_SCRATCHPAD, scratchpad.get()}};
  return DnnlStatus(Dnnl().primitive_execute(
                        reorder.get(), context.stream.get(), 3, arguments),
                    "reorder");
}

// The layout that the primitive wants for an argument.
const dnnl_memory_desc_t* WantedDesc(const_dnnl_primitive_desc_t desc,
                                     int argument) {
  return Dnnl().primitive_desc_query_md(desc, dnnl_query_exec_arg_md, argument);
}

}  // namespace

absl::StatusOr<std::shared_ptr<PackedWeight>> PackConstant(
    DnnlContext& context, const Constant& constant,
    const dnnl_memory_desc_t& source, const dnnl_memory_desc_t& wanted) {
  return PackConstant(
      context, constant.identity, source, wanted, [&](void* target) {
        return ReorderOnce(context, source, constant.data, wanted, target);
      });
}

absl::StatusOr<std::shared_ptr<PackedWeight>> PackConstant(
    DnnlContext& context, const void* identity,
    const dnnl_memory_desc_t& source, const dnnl_memory_desc_t& wanted,
    const std::function<absl::Status(void* target)>& fill,
    absl::string_view layout) {
  auto range = context.packed.equal_range(identity);
  for (auto it = range.first; it != range.second;) {
    std::shared_ptr<PackedWeight> weight = it->second.lock();
    if (weight == nullptr) {
      it = context.packed.erase(it);
      continue;
    }
    if (weight->layout == layout &&
        Dnnl().memory_desc_equal(&weight->desc, &wanted) != 0 &&
        Dnnl().memory_desc_equal(&weight->source, &source) != 0)
      return weight;
    ++it;
  }
  auto weight = std::make_shared<PackedWeight>();
  weight->source = source;
  weight->desc = wanted;
  weight->layout = std::string(layout);
  weight->bytes = static_cast<int64_t>(Dnnl().memory_desc_get_size(&wanted));
  PARTITA_ASSIGN_OR_RETURN(weight->data, AllocatePages(weight->bytes));
  weight->total = &context.packed_bytes;
  context.packed_bytes += weight->bytes;
  PARTITA_RETURN_IF_ERROR(fill(weight->data));
  context.packed.emplace(identity, weight);
  return weight;
}

PackedWeight::~PackedWeight() {
  if (data == nullptr) return;
  FreePages(data, bytes);
  if (total != nullptr) *total -= bytes;
}

absl::StatusOr<std::unique_ptr<DnnlContext>> DnnlContext::Create() {
  PARTITA_RETURN_IF_ERROR(OpenDnnl());
  auto context = std::make_unique<DnnlContext>();
  dnnl_engine_t engine = nullptr;
  PARTITA_RETURN_IF_ERROR(
      DnnlStatus(Dnnl().engine_create(&engine, dnnl_cpu, 0), "engine"));
  context->engine.reset(engine);
  dnnl_stream_t stream = nullptr;
  PARTITA_RETURN_IF_ERROR(DnnlStatus(
      Dnnl().stream_create(&stream, engine, dnnl_stream_default_flags),
      "stream"));
  context->stream.reset(stream);
  return context;
}

absl::StatusOr<std::unique_ptr<DnnlOp>> DnnlOp::Create(
    DnnlContext& context, DnnlPrimitiveDesc desc,
    const std::vector<DnnlOperand>& operands) {
  std::unique_ptr<DnnlOp> op(new DnnlOp(context));
  PARTITA_ASSIGN_OR_RETURN(op->primitive_, MakePrimitive(desc.get()));
  const char* description = nullptr;
  if (Dnnl().primitive_desc_query(desc.get(), dnnl_query_impl_info_str, 0,
                                  &description) == dnnl_success) {
    op->description_ = description;
  }
  const dnnl_memory_desc_t& scratchpad =
      *Dnnl().primitive_desc_query_md(desc.get(), dnnl_query_scratchpad_md, 0);
  op->scratch_bytes_ =
      AlignUp(static_cast<int64_t>(Dnnl().memory_desc_get_size(&scratchpad)));
  PARTITA_ASSIGN_OR_RETURN(op->scratchpad_,
                           MakeMemory(scratchpad, context.engine.get()));
  for (const DnnlOperand& operand : operands)
    PARTITA_RETURN_IF_ERROR(op->AddArgument(desc.get(), operand));
  op->exec_arguments_.push_back({DNNL_ARG_SCRATCHPAD, op->scratchpad_.get()});
  return op;
}

absl::Status DnnlOp::CheckReorder(const Argument& argument) {
  return ScratchpadBytes(argument.reorder.get()) == 0
             ? absl::OkStatus()
             : absl::UnimplementedError(
                   "oneDNN has no reorder without scratch for this layout");
}

absl::Status DnnlOp::StageResidual(const DnnlOperand& operand,
                                   Argument& argument) {
  argument.output_index = operand.output_index;
  return Stage(operand.desc, operand, argument);
}

absl::Status DnnlOp::Sum(const_dnnl_primitive_desc_t desc,
                         const DnnlOperand& operand) {
  // In another layout the primitive would add to its staging copy, not to the
  // output buffer.
  if (Dnnl().memory_desc_equal(WantedDesc(desc, DNNL_ARG_DST), &operand.desc) ==
      0)
    return absl::UnimplementedError(
        "expected the residual to have the output's layout, found another");
  Argument argument;
  argument.index = operand.index;
  argument.output = false;
  argument.output_index = operand.output_index;
  argument.summed = true;
  PARTITA_ASSIGN_OR_RETURN(argument.memory,
                           MakeMemory(operand.desc, context_.engine.get()));
  PARTITA_ASSIGN_OR_RETURN(argument.buffer,
                           MakeMemory(operand.desc, context_.engine.get()));
  PARTITA_ASSIGN_OR_RETURN(
      argument.reorder,
      MakeReorder(operand.desc, operand.desc, context_.engine.get()));
  PARTITA_RETURN_IF_ERROR(CheckReorder(argument));
  arguments_.push_back(std::move(argument));
  return absl::OkStatus();
}

absl::Status DnnlOp::AddArgument(const_dnnl_primitive_desc_t desc,
                                 const DnnlOperand& operand) {
  if (operand.argument == kSummed) return Sum(desc, operand);
  const dnnl_memory_desc_t* const known = WantedDesc(desc, operand.argument);
  // A primitive does not know the layout of zero points.
  const dnnl_memory_desc_t& wanted = known->ndims == 0 ? operand.desc : *known;
  Argument argument;
  argument.index = operand.index;
  argument.output = operand.output;
  PARTITA_ASSIGN_OR_RETURN(argument.memory,
                           MakeMemory(wanted, context_.engine.get()));
  const Constant& constant = operand.constant;
  const bool same = Dnnl().memory_desc_equal(&wanted, &operand.desc) != 0;
  if (constant.identity != nullptr &&
      (!same || constant.data != constant.identity)) {
    PARTITA_ASSIGN_OR_RETURN(
        argument.packed,
        PackConstant(context_, constant, operand.desc, wanted));
    PARTITA_RETURN_IF_ERROR(Point(argument, argument.packed->data));
  } else if (!same) {
    PARTITA_RETURN_IF_ERROR(Stage(wanted, operand, argument));
  } else if (operand.output_index >= 0) {
    PARTITA_RETURN_IF_ERROR(StageResidual(operand, argument));
  }
  exec_arguments_.push_back({operand.argument, argument.memory.get()});
  arguments_.push_back(std::move(argument));
  return absl::OkStatus();
}

absl::Status DnnlOp::Stage(const dnnl_memory_desc_t& wanted,
                           const DnnlOperand& operand, Argument& argument) {
  PARTITA_ASSIGN_OR_RETURN(argument.buffer,
                           MakeMemory(operand.desc, context_.engine.get()));
  const dnnl_memory_desc_t& from = operand.output ? wanted : operand.desc;
  const dnnl_memory_desc_t& to = operand.output ? operand.desc : wanted;
  PARTITA_ASSIGN_OR_RETURN(argument.reorder,
                           MakeReorder(from, to, context_.engine.get()));
  PARTITA_RETURN_IF_ERROR(AddReorderScratch(argument));
  argument.staging_offset = scratch_bytes_;
  scratch_bytes_ +=
      AlignUp(static_cast<int64_t>(Dnnl().memory_desc_get_size(&wanted)));
  description_ += operand.output ? "+reorder_out" : "+reorder_in";
  return absl::OkStatus();
}

// Reorders of integers sum them for zero points.
absl::Status DnnlOp::AddReorderScratch(Argument& argument) {
  const int64_t bytes = ScratchpadBytes(argument.reorder.get());
  if (bytes == 0) return absl::OkStatus();
  const_dnnl_primitive_desc_t desc = nullptr;
  PARTITA_RETURN_IF_ERROR(DnnlStatus(
      Dnnl().primitive_get_primitive_desc(argument.reorder.get(), &desc),
      "reorder"));
  PARTITA_ASSIGN_OR_RETURN(argument.reorder_scratch,
                           MakeMemory(*Dnnl().primitive_desc_query_md(
                                          desc, dnnl_query_scratchpad_md, 0),
                                      context_.engine.get()));
  argument.reorder_scratch_offset = scratch_bytes_;
  scratch_bytes_ += AlignUp(bytes);
  return absl::OkStatus();
}

absl::Status DnnlOp::Point(Argument& argument, void* data) {
  if (argument.current == data) return absl::OkStatus();
  argument.current = data;
  return DnnlStatus(Dnnl().memory_set_data_handle_v2(
                        argument.memory.get(), data, context_.stream.get()),
                    "argument");
}

absl::Status DnnlOp::Reorder(const Argument& argument, void* buffer,
                             char* scratch) {
  PARTITA_RETURN_IF_ERROR(
      DnnlStatus(Dnnl().memory_set_data_handle_v2(argument.buffer.get(), buffer,
                                                  context_.stream.get()),
                 "reorder's argument"));
  const dnnl_exec_arg_t arguments[] = {
      {argument.output ? DNNL_ARG_TO : DNNL_ARG_FROM, argument.buffer.get()},
      {argument.output ? DNNL_ARG_FROM : DNNL_ARG_TO, argument.memory.get()},
      {DNNL_ARG_SCRATCHPAD, argument.reorder_scratch.get()}};
  const bool has_scratch = argument.reorder_scratch != nullptr;
  if (has_scratch)
    PARTITA_RETURN_IF_ERROR(DnnlStatus(
        Dnnl().memory_set_data_handle_v2(
            argument.reorder_scratch.get(),
            scratch + argument.reorder_scratch_offset, context_.stream.get()),
        "reorder's scratchpad"));
  return DnnlStatus(
      Dnnl().primitive_execute(argument.reorder.get(), context_.stream.get(),
                               has_scratch ? 3 : 2, arguments),
      "reorder");
}

absl::Status DnnlOp::Run(void* const* buffers, char* scratch) {
  if (scratchpad_current_ != scratch) {
    scratchpad_current_ = scratch;
    PARTITA_RETURN_IF_ERROR(
        DnnlStatus(Dnnl().memory_set_data_handle_v2(scratchpad_.get(), scratch,
                                                    context_.stream.get()),
                   "scratchpad"));
  }
  for (Argument& argument : arguments_) {
    if (argument.packed != nullptr) continue;
    const bool in_output =
        argument.output_index >= 0 &&
        buffers[argument.index] == buffers[argument.output_index];
    if (argument.summed) {
      if (in_output) continue;
      PARTITA_RETURN_IF_ERROR(Point(argument, buffers[argument.output_index]));
      PARTITA_RETURN_IF_ERROR(
          Reorder(argument, buffers[argument.index], scratch));
      continue;
    }
    const bool staged =
        argument.reorder != nullptr && (argument.output_index < 0 || in_output);
    PARTITA_RETURN_IF_ERROR(
        Point(argument, staged ? scratch + argument.staging_offset
                               : buffers[argument.index]));
    if (staged && !argument.output)
      PARTITA_RETURN_IF_ERROR(
          Reorder(argument, buffers[argument.index], scratch));
  }
  PARTITA_RETURN_IF_ERROR(DnnlStatus(
      Dnnl().primitive_execute(primitive_.get(), context_.stream.get(),
                               static_cast<int>(exec_arguments_.size()),
                               exec_arguments_.data()),
      description_.c_str()));
  for (const Argument& argument : arguments_) {
    if (argument.output && argument.reorder != nullptr)
      PARTITA_RETURN_IF_ERROR(
          Reorder(argument, buffers[argument.index], scratch));
  }
  return absl::OkStatus();
}

bool DnnlOp::Packed(int index) const {
  return std::any_of(
      arguments_.begin(), arguments_.end(), [&](const Argument& argument) {
        return argument.index == index && argument.packed != nullptr;
      });
}

}  // namespace partita::cpu
