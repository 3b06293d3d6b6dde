#include <ramie/inspect/symbols.hpp>

#include <ramie/context/loaded_object.hpp>

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace ramie::detail {

symbol_finder::~symbol_finder() {
  for (std::size_t i = 0; i < count_; ++i)
    if (files_[i].bytes != nullptr) ::munmap(const_cast<char*>(files_[i].bytes), files_[i].size);
}

symbol_finder::file& symbol_finder::open(std::uintptr_t base, const char* path) noexcept {
  for (std::size_t i = 0; i < count_; ++i)
    if (files_[i].base == base) return files_[i];
  static file none;
  if (count_ == files_most) return none;
  file& f = files_[count_++];
  f.base = base;
  f.path = path;
  const int fd = ::open(*path == '\0' ? "/proc/self/exe" : path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return f;
  struct stat about{};
  if (::fstat(fd, &about) == 0 && about.st_size >= static_cast<off_t>(sizeof(Elf64_Ehdr))) {
    const auto size = static_cast<std::size_t>(about.st_size);
    void* bytes = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes != MAP_FAILED) {
      f.bytes = static_cast<const char*>(bytes);
      f.size = size;
    }
  }
  ::close(fd);
  return f;
}

void symbol_finder::look_up(const file& f, code_place& place) noexcept {
  if (f.bytes == nullptr) return;
  const auto inside = [&](std::uint64_t offset, std::uint64_t size) {
    return offset <= f.size && size <= f.size - offset;
  };
  Elf64_Ehdr header;
  std::memcpy(&header, f.bytes, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_shentsize != sizeof(Elf64_Shdr) ||
      !inside(header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr)))
    return;
  const auto section = [&](std::size_t i) {
    Elf64_Shdr s;
    std::memcpy(&s, f.bytes + header.e_shoff + i * sizeof s, sizeof s);
    return s;
  };
  for (const std::uint32_t wanted : {std::uint32_t{SHT_SYMTAB}, std::uint32_t{SHT_DYNSYM}}) {
    for (std::size_t i = 0; i < header.e_shnum; ++i) {
      const Elf64_Shdr symbols = section(i);
      if (symbols.sh_type != wanted || symbols.sh_link >= header.e_shnum) continue;
      const Elf64_Shdr names = section(symbols.sh_link);
      if (!inside(symbols.sh_offset, symbols.sh_size) || !inside(names.sh_offset, names.sh_size)) continue;
      for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols.sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym s;
        std::memcpy(&s, f.bytes + symbols.sh_offset + at, sizeof s);
        const unsigned type = s.st_info & 0xfu;
        if ((type != STT_FUNC && type != STT_OBJECT && type != STT_NOTYPE) || s.st_shndx == SHN_UNDEF ||
            place.offset < s.st_value || place.offset >= s.st_value + s.st_size || s.st_name >= names.sh_size)
          continue;
        const char* name = f.bytes + names.sh_offset + s.st_name;
        if (std::memchr(name, 0, names.sh_size - s.st_name) == nullptr) continue;
        place.function = name;
        place.into = place.offset - s.st_value;
        return;
      }
    }
  }
}

code_place symbol_finder::find(std::uintptr_t address) noexcept {
  remembered& slot = cache_[(address >> 2) % cache_.size()];
  if (slot.address == address && address != 0) return slot.place;
  code_place place;
  loaded_object object;
  if (!find_loaded_object(address, object)) {
    place.offset = address;
    return place;
  }
  place.offset = address - object.base;
  place.path = object.path;
  look_up(open(object.base, object.path), place);
  slot = {address, place};
  return place;
}

}  // namespace ramie::detail
