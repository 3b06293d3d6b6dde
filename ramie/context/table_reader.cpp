#include <ramie/context/table_reader.hpp>

namespace ramie::detail {

std::uintptr_t table_reader::pointer(std::uint8_t how, std::uintptr_t data) noexcept {
  if (how == omitted) return 0;
  const auto here = reinterpret_cast<std::uintptr_t>(at);
  std::uintptr_t value = 0;
  switch (how & format) {
    case 0x00:
    case 0x04:
    case 0x0c: value = get<std::uint64_t>(); break;
    case 0x01: value = unsigned_leb(); break;
    case 0x02: value = get<std::uint16_t>(); break;
    case 0x03: value = get<std::uint32_t>(); break;
    case 0x09: value = static_cast<std::uintptr_t>(signed_leb()); break;
    case 0x0a: value = static_cast<std::uintptr_t>(std::intptr_t{get<std::int16_t>()}); break;
    case 0x0b: value = static_cast<std::uintptr_t>(std::intptr_t{get<std::int32_t>()}); break;
    default: break;
  }
  if ((how & relative) == 0x10 && value != 0) value += here;
  if ((how & relative) == 0x30) value += data;
  return value;
}

std::uintptr_t table_reader::followed(std::uint8_t how, std::uintptr_t data) noexcept {
  const std::uintptr_t value = pointer(how, data);
  if (value == 0 || how == omitted || (how & indirect) == 0) return value;
  return table_reader{reinterpret_cast<const char*>(value)}.get<std::uintptr_t>();
}

}  // namespace ramie::detail
