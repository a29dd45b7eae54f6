// Runs the clocks of simulate.h, rank by rank.
#ifndef PARTITA_COMPILER_SIMULATOR_ENGINE_H_
#define PARTITA_COMPILER_SIMULATOR_ENGINE_H_

#include <deque>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/simulator/simulate.h"
#include "compiler/simulator/steps.h"

namespace partita::simulator {

// Runs each rank until it must wait, one rank after the other. The order in
// which ranks are visited does not affect the result, because a rank's sends
// and collectives have a fixed order.
class Engine {
 public:
  Engine(const Steps& steps, const Folding& folding, const Costs& costs,
         const SimulateOptions& options);

  // Runs the simulation. Call it once.
  void Run();

  // Results of the last step. Times count from when the first rank begins it.
  double StepSeconds() const;
  const std::vector<DeviceTimes>& times() const { return times_; }
  // [class][function]: number of calls that the engine executed. Calls made
  // inside functions that only compute are not counted.
  const std::vector<std::vector<int64_t>>& calls() const { return calls_; }
  // Exposed seconds of each collective and receive, by class, function and
  // instruction.
  using Place = std::tuple<int, int, unsigned>;
  const std::map<Place, double>& exposed() const { return exposed_; }
  std::vector<std::vector<Simulation::Beginning>> TakeMain();
  std::vector<Span> TakeSpans();

 private:
  struct Frame {
    int function = -1;
    size_t step = 0;
  };
  // A collective that a rank has started, and the instruction that started it.
  struct Started {
    int meeting = -1;  // in started_
    int function = -1;
    unsigned instruction = 0;
    int name = -1;
  };
  struct Rank {
    std::vector<Frame> stack;
    double clock = 0;
    double link = 0;  // when the link has sent all earlier messages
    int steps_left = 0;
    int call = -1;                         // name of main's step
    double begin = 0, end = 0;             // of the last step
    double end_before = 0;                 // of the step before
    bool arrived = false;                  // at its current meeting
    std::map<int, int64_t> meetings_done;  // by axes
    // Collectives that this rank started: their number by axes, and those not
    // yet awaited, by depth of the stack and token.
    std::map<int, int64_t> started;
    std::map<std::pair<size_t, int>, Started> under_way;
    int last_started = -1;  // in started_
  };
  struct Message {
    double start = 0, end = 0;
  };
  // A collective that runs concurrently with other work. They run in order: one
  // begins when all ranks have started it and the one before it is done.
  struct StartedMeeting {
    struct Arrival {
      double time = 0;
      int before = -1;  // in started_
    };
    std::vector<Arrival> arrivals;
    size_t expected = 0;
    double seconds = 0;
    double begin = -1, end = -1;  // -1: not known
  };
  struct Meeting {
    size_t arrived = 0, left = 0;
    double begin = 0;  // when the last rank arrived
  };

  bool IsLast(const Rank& rank) const { return rank.steps_left == 1; }
  int MainOf(int device_class) const;
  void Begin(int device_class);
  void End(int device_class);
  // Runs a rank until it waits or has finished.
  void Advance(int device_class);
  // Executes a step. Returns false if the rank must wait.
  bool Do(int device_class, const Frame& frame, const Step& step);
  void Compute(int device_class, const Step& step);
  void DoSend(int device_class, const Frame& frame, const Step& step);
  bool DoReceive(int device_class, const Frame& frame, const Step& step);
  void DoStart(int device_class, const Frame& frame, const Step& step);
  bool DoAwait(int device_class, const Step& step);
  // Computes when the meeting begins and ends. Returns false if that is not
  // known yet.
  bool Settle(int meeting);
  bool DoCollective(int device_class, const Frame& frame, const Step& step);
  double SecondsOf(const program::Collective& collective,
                   const Folding::Group& group);
  // Advances a rank's clock to `until` and records the reason.
  void Pass(int device_class, Span::Kind kind, double until, int name);
  void Record(int device_class, Span::Kind kind, double start, double end,
              int name);

  const Steps& steps_;
  const Folding& folding_;
  const Costs& costs_;
  const SimulateOptions options_;
  std::vector<Rank> ranks_;
  std::vector<int> ready_;
  std::map<std::pair<int, int>, std::deque<Message>> sent_;
  // By axes, lowest class and sequence number.
  std::map<std::tuple<int, int, int64_t>, Meeting> meetings_;
  std::vector<StartedMeeting> started_;
  std::map<std::tuple<int, int, int64_t>, int> started_numbers_;
  std::map<std::pair<const program::Collective*, int>, double> known_;
  std::vector<double> slowness_;
  std::vector<DeviceTimes> times_;
  std::vector<std::vector<int64_t>> calls_;
  std::map<Place, double> exposed_;
  std::vector<std::vector<Simulation::Beginning>> main_;
  std::vector<Span> spans_;
};

}  // namespace partita::simulator

#endif  // PARTITA_COMPILER_SIMULATOR_ENGINE_H_
