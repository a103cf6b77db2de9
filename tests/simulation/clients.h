// Clients and operators: they start, signal, cancel, terminate and look; they change pools.
#pragma once

#include "tests/simulation/world.h"

namespace permit::simulation {

class Clients {
 public:
  explicit Clients(World& world);

  // Registers the pools that an operator has set.
  void begin();
  void step();
  void operate();
  // The server was started again with other settings.
  void change_settings();
  // Opens every pool again and tells the parents to finish.
  void open_pools();
  void finish_parents();

 private:
  void start();
  void start_again();
  void start_another();
  void start_section();
  void call();
  void start_permit_by_id();
  void signal();
  void signal_again();
  void release_late();
  void signal_with_start();
  void cancel();
  void terminate();
  void describe();
  void force_release();
  void set_pool(const PoolPlan& pool, int capacity);
  void look();
  void drain(const PoolPlan& pool, service::Pools::Drain drain, const SlotName& slot);
  void remove_waiter();
  WorkflowExecution some_run();
  const RunTrace* some_permit(bool open);
  const RunTrace* some_orphan();
  StartWorkflowExecutionRequest start_request();
  void send_start(const StartWorkflowExecutionRequest& request,
                  const std::shared_ptr<Promise>& promise);

  class Transport;

  World& world_;
  std::shared_ptr<Transport> transport_;
  int calls_ = 0;
  std::vector<std::pair<StartWorkflowExecutionRequest, std::shared_ptr<Promise>>> starts_;
  std::vector<std::pair<SignalWorkflowExecutionRequest, std::shared_ptr<Promise>>> signals_;
};

}  // namespace permit::simulation
