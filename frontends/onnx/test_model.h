// Writes small ONNX files for tests: the wire format by hand, message by
// message.
#ifndef PARTITA_FRONTENDS_ONNX_TEST_MODEL_H_
#define PARTITA_FRONTENDS_ONNX_TEST_MODEL_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace partita::onnx {

// One encoded message that grows field by field.
class Message {
 public:
  Message& varint(uint32_t field, uint64_t value);
  Message& bytes(uint32_t field, const std::string& value);
  Message& message(uint32_t field, const Message& value) {
    return bytes(field, value.encoded_);
  }
  Message& real(uint32_t field, float value);

  const std::string& encoded() const { return encoded_; }

 private:
  void raw(uint64_t value);

  std::string encoded_;
};

// Numbers of the DataTypes in tests.
inline constexpr int kF32 = 1, kI64 = 7, kString = 8;

Message attribute(const std::string& name, int64_t value);
Message attribute(const std::string& name, const std::vector<int64_t>& values);
Message attribute(const std::string& name, const Message& graph);
Message node(const std::string& op, const std::vector<std::string>& inputs,
             const std::vector<std::string>& outputs,
             const std::vector<Message>& attributes = {},
             const std::string& domain = "", const std::string& name = "");
// The node with an entry of metadata_props.
Message withMetadata(Message node, const std::string& key,
                     const std::string& value);
// A dimension is a number, a name, or empty.
Message valueInfo(const std::string& name, int type,
                  const std::vector<std::string>& dims);
Message floats(const std::string& name, const std::vector<int64_t>& dims,
               const std::vector<float>& values);
Message int64s(const std::string& name, const std::vector<int64_t>& dims,
               const std::vector<int64_t>& values);
Message external(const std::string& name, const std::vector<int64_t>& dims,
                 const std::string& location, const std::string& offset = "0");
Message graph(const std::vector<Message>& nodes,
              const std::vector<Message>& inputs,
              const std::vector<Message>& outputs,
              const std::vector<Message>& initializers = {});
Message model(const Message& graph, int64_t opset = 17,
              const std::vector<Message>& functions = {});

// Device annotations. `dims` are (axis, num_shards); `groups` is a map of
// device groups.
using Groups = std::vector<std::pair<int64_t, std::vector<int64_t>>>;
Message shardedDim(int64_t axis, int64_t shards, int64_t size = -1);
Message shardingSpec(const std::string& tensor,
                     const std::vector<int64_t>& devices, const Groups& groups,
                     const std::vector<Message>& dims);
// The node with an annotation for this configuration.
Message onDevices(Message node, const std::string& configuration,
                  const std::vector<Message>& specs);
// The model with this configuration.
Message withDevices(Message model, const std::string& configuration,
                    int64_t devices);

// Two layers on 2 x 2 devices. The grid's rows divide the rows of x, and its
// columns the hidden width. The sum is divided as its last user specifies.
// Sizes are not divisible.
Message dividedPerceptron();

}  // namespace partita::onnx

#endif  // PARTITA_FRONTENDS_ONNX_TEST_MODEL_H_
