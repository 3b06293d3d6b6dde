// The page that shows the market: one file, without anything from elsewhere.
#pragma once

#include <string_view>

namespace exchange {

inline constexpr std::string_view page = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>The exchange</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
  :root { --ink: #1d2530; --dim: #68727f; --line: #dfe4ea; --paper: #f6f8fa; --card: #fff; --buy: #0a7d4b; --sell: #b3261e; --go: #1f5fbf }
  @media (prefers-color-scheme: dark) {
    :root { --ink: #e6eaef; --dim: #98a3af; --line: #2d3743; --paper: #12171d; --card: #1a2129; --buy: #3fcf8e; --sell: #ff7a70; --go: #5b9bff }
  }
  * { box-sizing: border-box }
  body { margin: 0; font: 15px/1.45 system-ui, "DejaVu Sans", sans-serif; color: var(--ink); background: var(--paper) }
  header { display: flex; gap: 1.5rem; align-items: baseline; padding: .9rem 1.4rem; border-bottom: 1px solid var(--line); background: var(--card) }
  h1 { font-size: 1.15rem; margin: 0 } h2 { font-size: .95rem; margin: 0 0 .6rem }
  #status { margin-left: auto; color: var(--dim) } #status.on { color: var(--buy) } #status.off { color: var(--sell) }
  #last { font-size: 1.15rem; font-variant-numeric: tabular-nums }
  main { display: grid; gap: 1rem; padding: 1rem 1.4rem; grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); max-width: 78rem; margin: auto }
  section { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .9rem 1rem; min-width: 0 }
  table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums }
  th { text-align: right; font-weight: 500; color: var(--dim); font-size: .8rem }
  th, td { text-align: right; padding: .12rem .3rem }
  th:first-child, td:first-child { text-align: left }
  .buy { color: var(--buy) } .sell { color: var(--sell) }
  .bar { background: linear-gradient(to left, color-mix(in srgb, currentColor 14%, transparent) var(--share), transparent var(--share)) }
  .between td { border-top: 1px solid var(--line); border-bottom: 1px solid var(--line); color: var(--dim); text-align: center }
  .none td { color: var(--dim); text-align: center }
  form { display: grid; grid-template-columns: 1fr 1fr; gap: .6rem } label { display: grid; gap: .15rem; font-size: .8rem; color: var(--dim) }
  input { font: inherit; color: var(--ink); background: var(--paper); border: 1px solid var(--line); border-radius: 5px; padding: .4rem .5rem; width: 100% }
  button { font: inherit; font-weight: 600; color: #fff; border: 0; border-radius: 5px; padding: .5rem; cursor: pointer }
  button[value=buy] { background: #0a7d4b } button[value=sell] { background: #b3261e }
  button.small { background: none; color: var(--go); padding: 0; font-weight: 400 }
  #answer { grid-column: 1 / -1; min-height: 1.4em; margin: 0 } .scroll { max-height: 22rem; overflow: auto }
</style></head><body>
<header><h1>The exchange</h1><span id="last">no trade yet</span><span id="status">connecting</span></header>
<main>
  <section><h2>Place an order</h2>
    <form id="form">
      <label>Your name <input name="trader" required maxlength="40" autocomplete="off"></label>
      <label>Seconds to live (or empty) <input name="life" type="number" min="1" max="86400"></label>
      <label>Price <input name="price" type="number" min="1" max="1000000000" required value="100"></label>
      <label>Quantity <input name="quantity" type="number" min="1" max="1000000000" required value="10"></label>
      <button value="buy">Buy</button><button value="sell">Sell</button>
      <p id="answer" role="status"></p>
    </form></section>
  <section><h2>Book</h2>
    <table><thead><tr><th>Price</th><th>Quantity</th></tr></thead><tbody id="book"></tbody></table></section>
  <section><h2>Trades</h2><div class="scroll">
    <table><thead><tr><th>Time</th><th>Price</th><th>Quantity</th></tr></thead><tbody id="tape"></tbody></table></div></section>
  <section><h2>My orders</h2><div class="scroll">
    <table><thead><tr><th>Order</th><th>Price</th><th>Left</th><th>State</th><th></th></tr></thead><tbody id="mine"></tbody></table></div></section>
</main>
<script>
const $ = id => document.getElementById(id), mine = new Map(), rows_most = 100;
const cell = (row, text, cls) => { const c = row.insertCell(); c.textContent = text; if (cls) c.className = cls; return c };
const empty = (body, columns, text) => { const r = body.insertRow(); r.className = "none"; cell(r, text).colSpan = columns };
let trades = [], socket, wait = 250, following = "";

function show_book(book) {
  const body = $("book"); body.textContent = "";
  const most = Math.max(1, ...book.bids.concat(book.asks).map(l => l[1]));
  const rows = (levels, cls) => { for (const [price, quantity] of levels) {
    const r = body.insertRow(); cell(r, price, cls);
    cell(r, quantity, "bar " + cls).style.setProperty("--share", 100 * quantity / most + "%") } };
  rows([...book.asks].reverse(), "sell");
  const r = body.insertRow(); r.className = "between";
  cell(r, book.bids.length && book.asks.length ? "spread " + (book.asks[0][0] - book.bids[0][0])
       : book.bids.length ? "nobody sells" : book.asks.length ? "nobody buys" : "the book is empty").colSpan = 2;
  rows(book.bids, "buy");
}
function show_tape(fresh) {
  trades = [...fresh].reverse().concat(trades).slice(0, rows_most);
  const body = $("tape"); body.textContent = "";
  for (const t of trades) { const r = body.insertRow();
    cell(r, new Date(t.at).toLocaleTimeString()); cell(r, t.price, t.taker); cell(r, t.quantity) }
  if (!trades.length) return empty(body, 3, "no trades yet");
  $("last").textContent = "last " + trades[0].price; $("last").className = trades[0].taker;
}
function show_mine() {
  const body = $("mine"); body.textContent = "";
  for (const o of [...mine.values()].reverse()) { const r = body.insertRow(); r.dataset.order = o.id;
    cell(r, (o.side == "buy" ? "buy " : "sell ") + o.quantity, o.side); cell(r, o.price); cell(r, o.remaining); cell(r, o.state);
    const c = cell(r, ""); if (o.state != "open") continue;
    const b = document.createElement("button"); b.className = "small"; b.textContent = "withdraw"; c.append(b);
    b.onclick = () => fetch(`/api/orders/${o.id}?trader=${encodeURIComponent(o.trader)}`, { method: "DELETE" }) }
  if (!mine.size) empty(body, 5, "none");
}
// What comes late is older: less is left of an order, never more.
function note(o) { const before = mine.get(o.id);
  if (!before || o.remaining < before.remaining || o.state != "open") mine.set(o.id, o);
  if (mine.size > rows_most) mine.delete(mine.keys().next().value) }
function connect() {
  const s = socket = new WebSocket(`${location.origin.replace("http", "ws")}/api/feed?trader=${encodeURIComponent(following)}`);
  let first = true;
  s.onopen = () => { wait = 250; $("status").textContent = "live"; $("status").className = "on" };
  s.onmessage = e => { const m = JSON.parse(e.data); if (first) trades = []; first = false;
    show_book(m.book); show_tape(m.trades); for (const n of m.own) note(n.order); show_mine() };
  s.onclose = () => { if (s != socket) return;
    $("status").textContent = "not connected, trying again"; $("status").className = "off";
    setTimeout(() => { if (s == socket) connect() }, wait); wait = Math.min(2 * wait, 5000) };
}
function follow(name) { if (name == following) return; following = name; mine.clear(); show_mine(); const old = socket; connect(); old.close() }
$("form").trader.onchange = e => { localStorage.trader = e.target.value; follow(e.target.value) };
$("form").onsubmit = async e => { e.preventDefault();
  const f = $("form"), o = { trader: f.trader.value, side: e.submitter.value, price: +f.price.value, quantity: +f.quantity.value,
                             key: crypto.randomUUID() };
  if (f.life.value) o.good_for_ms = 1000 * f.life.value;
  const tell = (text, cls) => { $("answer").textContent = text; $("answer").className = cls };
  follow(o.trader);
  for (let tries = 0; tries < 5; ++tries) { try {  // the same key, so it is placed once
    const a = await fetch("/api/orders", { method: "POST", body: JSON.stringify(o) }), r = await a.json();
    if (a.ok) { note(r); show_mine();
      return tell(`order ${r.id}: ` + (r.remaining == 0 ? "filled" : r.remaining < r.quantity ? `${r.quantity - r.remaining} of ${r.quantity} filled` : "waits in the book"), "buy") }
    tell(r.error, "sell"); if (a.status != 503) return;
  } catch { tell("no connection, trying again", "sell") }
  await new Promise(go => setTimeout(go, 500)) } };
$("form").trader.value = following = localStorage.trader || "";
show_mine(); connect();
</script></body></html>
)html";

}  // namespace exchange
