// What share/ramie/gdb/ramie.py needs to know about this build. New names or meanings need a new `version`.
#include <ramie/inspect/dump_facts.hpp>
#include <ramie/sched/live_schedulers.hpp>
#include <ramie/sched/scheduler.hpp>
#include <ramie/stack/pool.hpp>
#include <ramie/stack/slab.hpp>
#include <ramie/task/io_wait.hpp>

#include <cstddef>

#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // fine with every compiler that knows this pragma

extern "C" {
__attribute__((used,
               visibility("default"))) ramie::detail::debug_entry ramie_debug_layout[ramie::detail::debug_entries_most];
}

namespace ramie::detail {

/// May access private members.
struct debug_access {
  template <class Put>
  static void tell(Put put) noexcept {
    put("scheduler.options", offsetof(scheduler, all_) + offsetof(crew, options));
    put("scheduler.workers", offsetof(scheduler, all_) + offsetof(crew, workers) + offsetof(worker_roster, workers_));
    put("scheduler.count", offsetof(scheduler, all_) + offsetof(crew, workers) + offsetof(worker_roster, count_));
    put("scheduler.injected", offsetof(scheduler, all_) + offsetof(crew, injected));
    put("wait.time", offsetof(wait, time_ns_));
    put("wait.site", offsetof(wait, site_));
    put("wait.since", offsetof(wait, since_ns_));
    put("wait.mode", offsetof(wait, mode_));
    put("resident_list.newest", offsetof(resident_list, newest_));
    put("ready_queue.head", offsetof(ready_queue, head_));
    put("ready_queue.tail", offsetof(ready_queue, tail_));
    put("spawn_deque.bottom", offsetof(spawn_deque, bottom_));
    put("spawn_deque.top", offsetof(spawn_deque, top_));
  }
};

void fill_debug_layout(const void* schedulers) noexcept {
  debug_entry* next = ramie_debug_layout;
  const auto put = [&](const char* name, std::uint64_t value) {
    if (next != ramie_debug_layout + debug_entries_most - 1) *next++ = {name, value};
  };
  put("version", 2);
  put("slabs", reinterpret_cast<std::uintptr_t>(slab_list()));
  put("schedulers", reinterpret_cast<std::uintptr_t>(schedulers));
  put("schedulers.most", schedulers_listed_most);
  put("mutex_reason", reinterpret_cast<std::uintptr_t>(&mutex_reason));
  put("slab.size", sizeof(slab));
  put("slab.next", offsetof(slab, next));
  put("slab.handed_out", offsetof(slab, handed_out));
  put("stack.size", sizeof(stack));
  put("stack.sp", offsetof(stack, saved) + offsetof(context, sp));
  put("stack.fp", offsetof(stack, saved) + offsetof(context, fp));
  put("stack.pc", offsetof(stack, saved) + offsetof(context, pc));
  put("stack.wait_word", offsetof(stack, wait_word));
  put("stack.parked", offsetof(stack, parked));
  put("stack.occupant", offsetof(stack, occupant));
  put("stack.waiting", offsetof(stack, waiting));
  put("stack.top", offsetof(stack, top));
  put("task.type", offsetof(task, type));
  put("task.completion", offsetof(task, completion));
  put("task.where", offsetof(task, where));
  put("task.home", offsetof(task, home));
  put("task.parent", offsetof(task, parent));
  put("task.extras", offsetof(task, extras));
  put("task.flags", offsetof(task, flags));
  put("task.strand_flag", task::strand_flag);
  put("task_type.kind", offsetof(task_type, kind));
  put("extras.name", offsetof(task_extras, name));
  put("options.name", offsetof(runtime_options, name));
  put("wait_site.reason", offsetof(wait_site, reason));
  put("wait_site.where", offsetof(wait_site, where));
  put("io_reasons", reinterpret_cast<std::uintptr_t>(&io_reason));
  put("io_reasons.end", reinterpret_cast<std::uintptr_t>(&io_reason + 1));
  put("io_wait_site.fd", offsetof(io_wait_site, fd));
  put("io_wait_site.writes", offsetof(io_wait_site, writes));
  put("owned_wait_site.owner", offsetof(owned_wait_site, owner));
  put("worker.running", offsetof(worker, running));
  put("worker.number", offsetof(worker, number));
  put("worker.owner", offsetof(worker, owner));
  put("worker.thread", offsetof(worker, thread_id));
  put("worker.idle", offsetof(worker, idle));
  put("worker.on_duty", offsetof(worker, on_duty));
  put("worker.clock", offsetof(worker, clock_ns));
  put("worker.ready", offsetof(worker, ready));
  put("worker.spawned", offsetof(worker, spawned));
  put("worker.residents", offsetof(worker, residents));
  put("resident.older", offsetof(resident, older));
  debug_access::tell(put);
}

}  // namespace ramie::detail
