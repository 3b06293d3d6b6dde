// The topology by hwloc, if ramie was configured with RAMIE_HWLOC: for machines of which hwloc knows more than /sys
// tells, and for its own ways to be told otherwise (HWLOC_XMLFILE, HWLOC_SYNTHETIC).
#include <ramie/sched/topology.hpp>

#if defined(RAMIE_HWLOC)
#include <ramie/sched/node_parts.hpp>

#include <hwloc.h>

#include <memory>
#endif

namespace ramie::detail {

#if defined(RAMIE_HWLOC)

namespace {

/// The logical number of what of that type is above, or -1.
long above(hwloc_topology_t t, hwloc_obj_t pu, hwloc_obj_type_t type) {
  const hwloc_obj_t found = hwloc_get_ancestor_obj_by_type(t, type, pu);
  return found == nullptr ? -1 : static_cast<long>(found->logical_index);
}

/// Index of the first node of the CPU's memory, or -1.
long node_of(hwloc_obj_t pu) { return pu->nodeset == nullptr ? -1 : hwloc_bitmap_first(pu->nodeset); }

/// How far nodes are from each other, if hwloc knows: the first matrix of latencies that it has.
class latencies {
 public:
  explicit latencies(hwloc_topology_t raw) : raw_{raw} {
    unsigned room = 1;
    if (hwloc_distances_get_by_type(raw, HWLOC_OBJ_NUMANODE, &room, &matrix_, HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) !=
        0)
      matrix_ = nullptr;
  }
  ~latencies() {
    if (matrix_ != nullptr) hwloc_distances_release(raw_, matrix_);
  }
  latencies(const latencies&) = delete;
  latencies& operator=(const latencies&) = delete;

  /// 0: not known.
  [[nodiscard]] unsigned between(long from, long to) const noexcept {
    const long row = number_of(from), column = number_of(to);
    if (row < 0 || column < 0) return 0;
    return static_cast<unsigned>(
        matrix_->values[static_cast<unsigned>(row) * matrix_->nbobjs + static_cast<unsigned>(column)]);
  }

 private:
  [[nodiscard]] long number_of(long node) const noexcept {
    for (unsigned i = 0; matrix_ != nullptr && i < matrix_->nbobjs; ++i)
      if (static_cast<long>(matrix_->objs[i]->os_index) == node) return i;
    return -1;
  }
  hwloc_topology_t raw_;
  hwloc_distances_s* matrix_ = nullptr;
};

}  // namespace

topology topology::of_hwloc(const std::vector<int>& cpus) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return of_system(cpus);
  const std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)> owned{raw, &hwloc_topology_destroy};
  if (hwloc_topology_load(raw) != 0) return of_system(cpus);
  topology t;
  node_parts parts;
  for (const int cpu : cpus) {
    const hwloc_obj_t pu = hwloc_get_pu_obj_by_os_index(raw, static_cast<unsigned>(cpu));
    if (pu == nullptr) continue;
    // Small cores share the second level; and where there is no third, the second is the last one.
    const long third = above(raw, pu, HWLOC_OBJ_L3CACHE), second = above(raw, pu, HWLOC_OBJ_L2CACHE);
    const long core = third >= 0 && second >= 0 ? second : above(raw, pu, HWLOC_OBJ_CORE);
    t.add(cpu, core, third >= 0 ? third : second, parts.of(node_of(pu), above(raw, pu, HWLOC_OBJ_PACKAGE)));
  }
  if (t.cpus() == 0) return of_system(cpus);  // it describes another machine
  const latencies known{raw};
  parts.connect(t, [&](long from, long to) { return known.between(from, to); });
  t.finish();
  return t;
}

#else

topology topology::of_hwloc(const std::vector<int>& cpus) { return of_system(cpus); }

#endif

}  // namespace ramie::detail
