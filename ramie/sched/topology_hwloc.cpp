// The topology by hwloc, if ramie was configured with RAMIE_HWLOC: for machines of which hwloc knows more than /sys
// tells, and for its own ways to be told otherwise (HWLOC_XMLFILE, HWLOC_SYNTHETIC).
#include <ramie/sched/topology.hpp>

#if defined(RAMIE_HWLOC)
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

}  // namespace

topology topology::of_hwloc(const std::vector<int>& cpus) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return of_system(cpus);
  const std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)> owned{raw, &hwloc_topology_destroy};
  if (hwloc_topology_load(raw) != 0) return of_system(cpus);
  topology t;
  for (const int cpu : cpus) {
    const hwloc_obj_t pu = hwloc_get_pu_obj_by_os_index(raw, static_cast<unsigned>(cpu));
    if (pu == nullptr) continue;
    // Small cores share the second level; and where there is no third, the second is the last one.
    const long third = above(raw, pu, HWLOC_OBJ_L3CACHE), second = above(raw, pu, HWLOC_OBJ_L2CACHE);
    const long core = third >= 0 && second >= 0 ? second : above(raw, pu, HWLOC_OBJ_CORE);
    const long node = node_of(pu);
    t.add(cpu, core, third >= 0 ? third : second, node);
  }
  if (t.cpus() == 0) return of_system(cpus);  // it describes another machine
  unsigned matrices = 1;
  hwloc_distances_s* matrix = nullptr;
  if (hwloc_distances_get_by_type(raw, HWLOC_OBJ_NUMANODE, &matrices, &matrix, HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) ==
          0 &&
      matrices == 1) {
    for (unsigned i = 0; i < matrix->nbobjs; ++i)
      for (unsigned j = 0; j < matrix->nbobjs; ++j)
        t.set_distance(static_cast<long>(matrix->objs[i]->os_index), static_cast<long>(matrix->objs[j]->os_index),
                       static_cast<unsigned>(matrix->values[i * matrix->nbobjs + j]));
    hwloc_distances_release(raw, matrix);
  }
  t.finish();
  return t;
}

#else

topology topology::of_hwloc(const std::vector<int>& cpus) { return of_system(cpus); }

#endif

}  // namespace ramie::detail
