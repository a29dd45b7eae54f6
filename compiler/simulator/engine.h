// The clocks of simulate.h, rank by rank.
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

// Ranks run one after the other, each until it must wait. As sends and
// collectives of a rank stand in one order, the outcome is the same in whatever
// order ranks are looked at.
class Engine {
 public:
  Engine(const Steps& steps, const Folding& folding, const Costs& costs,
         const SimulateOptions& options);

  // Once.
  void Run();

  // What follows is of the last step; times count from its beginning, that is
  // the first rank's.
  double StepSeconds() const;
  const std::vector<DeviceTimes>& times() const { return times_; }
  // How often the engine went through a function, calls from functions that
  // only compute excepted: [class][function].
  const std::vector<std::vector<int64_t>>& calls() const { return calls_; }
  // Exposed seconds of a collective or a receive: by class, function and
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
  // Where a collective stands that a rank has started.
  struct Started {
    int meeting = -1;  // in started_
    int function = -1;
    unsigned instruction = 0;
    int name = -1;
  };
  struct Rank {
    std::vector<Frame> stack;
    double clock = 0;
    double link = 0;  // until when what it sent before is on its way
    int steps_left = 0;
    int call = -1;                         // name of main's step
    double begin = 0, end = 0;             // of the last step
    double end_before = 0;                 // of the step before
    bool arrived = false;                  // at the meeting it stands at
    std::map<int, int64_t> meetings_done;  // by axes
    // Collectives that it started: how many, and those not awaited, by the
    // depth of the stack and the token.
    std::map<int, int64_t> started;
    std::map<std::pair<size_t, int>, Started> under_way;
    int last_started = -1;  // in started_
  };
  struct Message {
    double start = 0, end = 0;
  };
  // Collectives that are started are executed in their order: one begins when
  // all have started it and are done with the one before.
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
    double begin = 0;  // when the last one arrived
  };

  bool IsLast(const Rank& rank) const { return rank.steps_left == 1; }
  int MainOf(int device_class) const;
  void Begin(int device_class);
  void End(int device_class);
  // Goes on until it waits or is done.
  void Advance(int device_class);
  // False where it waits.
  bool Do(int device_class, const Frame& frame, const Step& step);
  void Compute(int device_class, const Step& step);
  void DoSend(int device_class, const Frame& frame, const Step& step);
  bool DoReceive(int device_class, const Frame& frame, const Step& step);
  void DoStart(int device_class, const Frame& frame, const Step& step);
  bool DoAwait(int device_class, const Step& step);
  // Whether it is known when it begins and ends.
  bool Settle(int meeting);
  bool DoCollective(int device_class, const Frame& frame, const Step& step);
  double SecondsOf(const program::Collective& collective,
                   const Folding::Group& group);
  // Lets a rank's time pass and says what for.
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
  // By axes, lowest class and number.
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
