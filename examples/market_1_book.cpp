// Step 1 of docs/tutorial.md: the book alone.
#include "market/book.hpp"

#include <cstdio>

using namespace market;

int main() {
  book b;
  for (const order& o : {order{1, side::sell, 101, 5}, order{2, side::sell, 100, 5}, order{3, side::buy, 101, 7}})
    for (const trade& t : b.place(o)) std::printf("%d buys %d from %d at %d\n", t.buyer, t.quantity, t.seller, t.price);
}
