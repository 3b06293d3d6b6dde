#include <ramie/context/loaded_object.hpp>

#include <dlfcn.h>
#include <link.h>

namespace ramie::detail {

#if defined(DLFO_STRUCT_HAS_EH_DBASE)

bool find_loaded_object(std::uintptr_t address, loaded_object& found) noexcept {
  dl_find_object object{};
  if (::_dl_find_object(reinterpret_cast<void*>(address), &object) != 0) return false;
  found.base = object.dlfo_link_map->l_addr;
  found.path = object.dlfo_link_map->l_name == nullptr ? "" : object.dlfo_link_map->l_name;
  found.eh_frame_header = static_cast<const char*>(object.dlfo_eh_frame);
  return true;
}

#else

bool find_loaded_object(std::uintptr_t address, loaded_object& found) noexcept {
  struct search {
    std::uintptr_t address;
    loaded_object* found;
  } wanted{address, &found};
  return ::dl_iterate_phdr(
             [](dl_phdr_info* info, std::size_t, void* opaque) {
               auto& looking = *static_cast<search*>(opaque);
               const char* header = nullptr;
               bool here = false;
               for (int i = 0; i < info->dlpi_phnum; ++i) {
                 const auto& part = info->dlpi_phdr[i];
                 const std::uintptr_t start = info->dlpi_addr + part.p_vaddr;
                 if (part.p_type == PT_GNU_EH_FRAME) header = reinterpret_cast<const char*>(start);
                 if (part.p_type == PT_LOAD && looking.address >= start && looking.address < start + part.p_memsz)
                   here = true;
               }
               if (here) *looking.found = {info->dlpi_addr, info->dlpi_name, header};
               return here ? 1 : 0;
             },
             &wanted) != 0;
}

#endif

}  // namespace ramie::detail
