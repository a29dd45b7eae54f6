// Writes small ONNX files for tests: the wire format by hand, message by
// message.
#include "frontends/onnx/test_model.h"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace partita::onnx {

void Message::raw(uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    encoded_ += static_cast<char>(value | 0x80);
  encoded_ += static_cast<char>(value);
}

Message& Message::varint(uint32_t field, uint64_t value) {
  raw(uint64_t{field} << 3);
  raw(value);
  return *this;
}

Message& Message::bytes(uint32_t field, const std::string& value) {
  raw(uint64_t{field} << 3 | 2);
  raw(value.size());
  encoded_ += value;
  return *this;
}

Message& Message::real(uint32_t field, float value) {
  raw(uint64_t{field} << 3 | 5);
  encoded_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  return *this;
}

Message attribute(const std::string& name, int64_t value) {
  return Message().bytes(1, name).varint(3, value).varint(20, 2);
}

Message attribute(const std::string& name, const std::vector<int64_t>& values) {
  Message message;
  message.bytes(1, name);
  for (int64_t value : values) message.varint(8, value);
  return message.varint(20, 7);
}

Message attribute(const std::string& name, const Message& graph) {
  return Message().bytes(1, name).message(6, graph).varint(20, 5);
}

Message node(const std::string& op, const std::vector<std::string>& inputs,
             const std::vector<std::string>& outputs,
             const std::vector<Message>& attributes, const std::string& domain,
             const std::string& name) {
  Message message;
  for (const std::string& input : inputs) message.bytes(1, input);
  for (const std::string& output : outputs) message.bytes(2, output);
  message.bytes(3, name).bytes(4, op);
  for (const Message& attribute : attributes) message.message(5, attribute);
  return message.bytes(7, domain);
}

Message withMetadata(Message node, const std::string& key,
                     const std::string& value) {
  return node.message(9, Message().bytes(1, key).bytes(2, value));
}

Message valueInfo(const std::string& name, int type,
                  const std::vector<std::string>& dims) {
  Message shape;
  for (const std::string& dim : dims) {
    bool is_number = std::all_of(dim.begin(), dim.end(), [](unsigned char c) {
      return std::isdigit(c) != 0;
    });
    if (dim.empty()) {
      shape.message(1, Message());
      continue;
    }
    shape.message(1, is_number ? Message().varint(1, std::stoll(dim))
                               : Message().bytes(2, dim));
  }
  Message tensor = Message().varint(1, type).message(2, shape);
  return Message().bytes(1, name).message(2, Message().message(1, tensor));
}

namespace {

Message tensor(const std::string& name, const std::vector<int64_t>& dims,
               int type) {
  Message message;
  for (int64_t dim : dims) message.varint(1, dim);
  return message.varint(2, type).bytes(8, name);
}

template <typename T>
std::string bytesOf(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(T));
}

}  // namespace

Message floats(const std::string& name, const std::vector<int64_t>& dims,
               const std::vector<float>& values) {
  return tensor(name, dims, kF32).bytes(9, bytesOf(values));
}

Message int64s(const std::string& name, const std::vector<int64_t>& dims,
               const std::vector<int64_t>& values) {
  return tensor(name, dims, kI64).bytes(9, bytesOf(values));
}

Message external(const std::string& name, const std::vector<int64_t>& dims,
                 const std::string& location, const std::string& offset) {
  auto entry = [](const std::string& key, const std::string& value) {
    return Message().bytes(1, key).bytes(2, value);
  };
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  return tensor(name, dims, kF32)
      .message(13, entry("location", location))
      .message(13, entry("offset", offset))
      .message(13, entry("length", std::to_string(4 * count)))
      .varint(14, 1);
}

Message graph(const std::vector<Message>& nodes,
              const std::vector<Message>& inputs,
              const std::vector<Message>& outputs,
              const std::vector<Message>& initializers) {
  Message message;
  for (const Message& node : nodes) message.message(1, node);
  message.bytes(2, "graph");
  for (const Message& tensor : initializers) message.message(5, tensor);
  for (const Message& input : inputs) message.message(11, input);
  for (const Message& output : outputs) message.message(12, output);
  return message;
}

Message model(const Message& graph, int64_t opset,
              const std::vector<Message>& functions) {
  Message message;
  message.varint(1, 10).message(7, graph).message(
      8, Message().bytes(1, "").varint(2, opset));
  for (const Message& function : functions) message.message(25, function);
  return message;
}

Message shardedDim(int64_t axis, int64_t shards, int64_t size) {
  Message factor;
  if (size >= 0) factor.varint(1, size);
  return Message().varint(1, axis).message(2, factor.varint(3, shards));
}

Message shardingSpec(const std::string& tensor,
                     const std::vector<int64_t>& devices, const Groups& groups,
                     const std::vector<Message>& dims) {
  Message message;
  message.bytes(1, tensor);
  for (int64_t device : devices) message.varint(2, device);
  for (const auto& [key, members] : groups) {
    Message entry;
    entry.varint(1, key);
    for (int64_t device : members) entry.varint(2, device);
    message.message(3, entry);
  }
  for (const Message& dim : dims) message.message(4, dim);
  return message;
}

Message onDevices(Message node, const std::string& configuration,
                  const std::vector<Message>& specs) {
  Message message;
  message.bytes(1, configuration);
  for (const Message& spec : specs) message.message(2, spec);
  return node.message(10, message);
}

Message withDevices(Message model, const std::string& configuration,
                    int64_t devices) {
  return model.message(26,
                       Message().bytes(1, configuration).varint(2, devices));
}

namespace {

std::vector<float> madeUp(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(i * 37 % 101) / 101 - 0.5f);
  return values;
}

}  // namespace

Message dividedPerceptron() {
  const Groups rows = {{-1, {0, 1}}, {-2, {2, 3}}};
  const Groups columns = {{-1, {0, 2}}, {-2, {1, 3}}};
  auto over = [&](const std::string& tensor, const Groups& groups,
                  int64_t axis) {
    return shardingSpec(tensor, {-1, -2}, groups, {shardedDim(axis, 2)});
  };
  const Message grid =
      shardingSpec("t", {0, 1, 2, 3}, {}, {shardedDim(0, 2), shardedDim(1, 2)});
  return withDevices(
      model(
          graph({onDevices(node("MatMul", {"x", "l1.weight"}, {"s"}), "tp",
                           {over("x", rows, 0), over("l1.weight", columns, 1)}),
                 onDevices(node("Add", {"s", "l1.bias"}, {"t"}), "tp", {grid}),
                 node("Relu", {"t"}, {"u"}),
                 onDevices(node("MatMul", {"u", "l2.weight"}, {"v"}), "tp",
                           {over("l2.weight", columns, 0), over("v", rows, 0)}),
                 onDevices(node("Softmax", {"v"}, {"y"}), "tp",
                           {over("v", columns, -1)})},
                {valueInfo("x", kF32, {"5", "6"})}, {valueInfo("y", kF32, {})},
                {floats("l1.weight", {6, 9}, madeUp(54)),
                 floats("l1.bias", {9}, madeUp(9)),
                 floats("l2.weight", {9, 7}, madeUp(63))})),
      "tp", 4);
}

}  // namespace partita::onnx
