package lab

import java.util.concurrent.CountDownLatch
import java.util.concurrent.atomic.AtomicLong
import java.util.concurrent.locks.ReentrantLock
import kotlin.concurrent.withLock
import kotlin.system.exitProcess
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Deferred
import kotlinx.coroutines.DelicateCoroutinesApi
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.GlobalScope
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.channels.SendChannel
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.isActive
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.selects.select
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.yield

/** What a style says: which dispatcher, and how the work is written. */
private class Style(name: String) {
  /** The event loop of the thread that calls runBlocking, instead of Dispatchers.Default. */
  val onLoop = name.startsWith("loop-")
  val way = name.removePrefix("loop-")
}

private fun nodes(leaves: Long): Long = if (leaves == 1L) 1 else leaves + nodes(leaves / 10)

private fun upTo(n: Long) = n * (n + 1) / 2

private class Work(private val f: Frame, private val style: Style) {
  private inline fun timed(units: Long, body: () -> Boolean): Frame.Outcome {
    val before = System.nanoTime()
    val ok = body()
    return Frame.Outcome((System.nanoTime() - before) * 1e-9, units, ok)
  }

  private suspend fun skynetTask(first: Long, leaves: Long): Long {
    if (leaves == 1L) return first
    val part = leaves / 10
    return coroutineScope { List(10) { async { skynetTask(first + it * part, part) } }.sumOf { it.await() } }
  }

  private suspend fun skynetNode(parent: SendChannel<Long>, first: Long, leaves: Long) {
    if (leaves == 1L) return parent.send(first)
    val children = Channel<Long>(10)
    val part = leaves / 10
    coroutineScope {
      for (i in 0 until 10) launch { skynetNode(children, first + i * part, part) }
      var sum = 0L
      repeat(10) { sum += children.receive() }
      parent.send(sum)
    }
  }

  /** Without structure: no parent has to be told that a child has ended. */
  @OptIn(DelicateCoroutinesApi::class)
  private suspend fun skynetNodeAlone(parent: SendChannel<Long>, first: Long, leaves: Long) {
    if (leaves == 1L) return parent.send(first)
    val children = Channel<Long>(10)
    val part = leaves / 10
    for (i in 0 until 10) GlobalScope.launch { skynetNodeAlone(children, first + i * part, part) }
    var sum = 0L
    repeat(10) { sum += children.receive() }
    parent.send(sum)
  }

  suspend fun skynet(): Frame.Outcome {
    val leaves = f.number("leaves", 1_000_000)
    return timed(nodes(leaves)) {
      val sum = if (style.way == "async") {
        coroutineScope { async { skynetTask(0, leaves) }.await() }
      } else {
        val root = Channel<Long>(1)
        coroutineScope {
          launch { if (style.way == "global") skynetNodeAlone(root, 0, leaves) else skynetNode(root, 0, leaves) }
          root.receive()
        }
      }
      sum == leaves * (leaves - 1) / 2
    }
  }

  private suspend fun sumTask(low: Long, high: Long): Long {
    if (low == high) return low
    val middle = low + (high - low) / 2
    return coroutineScope {
      val left = async { sumTask(low, middle) }
      val right = async { sumTask(middle + 1, high) }
      left.await() + right.await()
    }
  }

  suspend fun sum(): Frame.Outcome {
    val high = f.number("high", 10_000_000)
    return timed(2 * high - 1) { coroutineScope { async { sumTask(1, high) }.await() } == upTo(high) }
  }

  suspend fun pingpong(): Frame.Outcome {
    val rounds = f.number("messages", 2_000_000) / 2
    val capacity = if (style.way == "rendezvous") Channel.RENDEZVOUS else 1
    return timed(2 * rounds) {
      val ping = Channel<Long>(capacity)
      val pong = Channel<Long>(capacity)
      var last = 0L
      coroutineScope {
        launch { for (value in ping) pong.send(value + 1) }
        for (i in 0 until rounds) {
          ping.send(last)
          last = pong.receive()
        }
        ping.close()
      }
      last == rounds
    }
  }

  suspend fun manyToMany(many: Long, standard: Long): Frame.Outcome {
    val producers = f.number("producers", many)
    val consumers = f.number("consumers", many)
    val each = f.number("messages", 4_000_000) / producers
    val capacity = if (style.way == "rendezvous") Channel.RENDEZVOUS else f.number("capacity", standard).toInt()
    return timed(producers * each) {
      val channel = Channel<Long>(capacity)
      val sum = coroutineScope {
        val sums = List(consumers.toInt()) {
          async {
            var part = 0L
            for (value in channel) part += value
            part
          }
        }
        coroutineScope { for (p in 0 until producers) launch { for (i in 1..each) channel.send(i) } }
        channel.close()
        sums.awaitAll().sum()
      }
      sum == producers * upTo(each)
    }
  }

  suspend fun selectFour(): Frame.Outcome {
    val each = f.number("messages", 2_000_000) / 4
    val capacity = if (style.way == "rendezvous") Channel.RENDEZVOUS else f.number("capacity", 128).toInt()
    return timed(4 * each) {
      val (a, b, c, d) = List(4) { Channel<Long>(capacity) }
      var sum = 0L
      coroutineScope {
        for (channel in listOf(a, b, c, d)) launch { for (i in 1..each) channel.send(i) }
        for (i in 0 until 4 * each) {
          sum += select<Long> {
            a.onReceive { it }
            b.onReceive { it }
            c.onReceive { it }
            d.onReceive { it }
          }
        }
      }
      sum == 4 * upTo(each)
    }
  }

  suspend fun mutex(): Frame.Outcome {
    val fibers = f.number("fibers", 4)
    val count = f.number("count", 1_000_000)
    val mutex = Mutex()
    val lock = ReentrantLock()
    var counter = 0L
    return timed(fibers * count) {
      coroutineScope {
        for (i in 0 until fibers) {
          if (style.way == "lock") launch { for (j in 0 until count) lock.withLock { ++counter } }
          else launch { for (j in 0 until count) mutex.withLock { ++counter } }
        }
      }
      counter == fibers * count
    }
  }

  suspend fun yields(): Frame.Outcome {
    val fibers = f.number("fibers", 2)
    val count = f.number("count", 2_000_000)
    return timed(fibers * count) {
      coroutineScope { for (i in 0 until fibers) launch { for (j in 0 until count) yield() } }
      true
    }
  }

  suspend fun spawn(batch: Int): Frame.Outcome {
    val count = f.number("count", 1_000_000)
    return timed(count) {
      var sum = 0L
      coroutineScope {
        val tasks = ArrayList<Deferred<Long>>(batch)
        for (first in 0 until count step batch.toLong()) {
          for (i in first until minOf(count, first + batch)) tasks += async { i }
          for (task in tasks) sum += task.await()
          tasks.clear()
        }
      }
      sum == upTo(count - 1)
    }
  }

  suspend fun memory(): Frame.Outcome {
    val count = f.number("count", 1_000_000)
    val before = Frame.residentBytes()
    val gate = CompletableDeferred<Unit>()
    val ended = AtomicLong()
    val start = System.nanoTime()
    return coroutineScope {
      val all = CoroutineScope(Dispatchers.Default)
      val parked = CountDownLatch(count.toInt())
      for (i in 0 until count) {
        all.launch {
          parked.countDown()
          gate.await()
          ended.incrementAndGet()
        }
      }
      while (parked.count > 0) delay(1)
      val seconds = (System.nanoTime() - start) * 1e-9
      val grown = Frame.residentBytes() - before
      val ending = System.nanoTime()
      gate.complete(Unit)
      while (ended.get() < count) delay(1)
      Frame.Outcome(seconds, count, all.isActive, mapOf("resident_bytes_per_fiber" to grown.toDouble() / count,
        "wake_and_end_ns_per_fiber" to (System.nanoTime() - ending).toDouble() / count))
    }
  }

  suspend fun once(): Frame.Outcome = when (f.workload) {
    "skynet" -> skynet()
    "sum" -> sum()
    "pingpong" -> pingpong()
    "stream" -> manyToMany(1, 128)
    "mpmc" -> manyToMany(4, 1024)
    "select" -> selectFour()
    "mutex" -> mutex()
    "yield" -> yields()
    "spawn" -> spawn(if (style.way == "batch") 100 else 1)
    "memory" -> memory()
    else -> throw IllegalArgumentException("there is no workload ${f.workload}")
  }
}

private fun unit(workload: String) = when (workload) {
  "sum" -> "process"
  "mutex" -> "lock"
  "yield" -> "switch"
  "skynet", "spawn", "memory" -> "fiber"
  else -> "message"
}

fun main(words: Array<String>) {
  val frame = Frame(words)
  val style = Style(frame.style)
  val work = Work(frame, style)
  exitProcess(frame.measure("kotlin", System.getProperty("java.version"), unit(frame.workload)) {
    // On Default, the thread that waits is none of the workers.
    if (style.onLoop) runBlocking { work.once() } else runBlocking(Dispatchers.Default) { work.once() }
  })
}
